"""Compiles include/rknn as every language a client may use, and sees that a wrong fact is noticed.

usage: rknn_headers_test.py <include/rknn> <rknn_abi.json> <c compiler> <c++ compiler> [further pairs]

Compilers that are not there are left out of the further pairs. Standard library only.
"""

import copy
import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import rknn_abi_sources

INCLUDE, FACTS, PAIRS = None, None, []
C, CPP = ("c11", "c17"), ("c++11", "c++14", "c++17", "c++20")
STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-unused-function")


def compiles(compiler, language, standard, text, *options):
    """What the compiler says; "" when it accepts the text."""
    run = subprocess.run([compiler, "-x", language, f"-std={standard}", *STRICT, *options, f"-I{INCLUDE}",
                          "-fsyntax-only", "-"], input=text, capture_output=True, text=True, timeout=60)
    return run.stderr or "refused" if run.returncode else ""


def dialects():
    for c, cpp in PAIRS:
        yield from ((c, "c", standard) for standard in C)
        yield from ((cpp, "c++", standard) for standard in CPP)


class HeadersTest(unittest.TestCase):
    def test_EachHeaderStandsAloneInEachLanguage(self):
        for compiler, language, standard in dialects():
            for header in rknn_abi_sources.HEADERS:
                with self.subTest(compiler=compiler, standard=standard, header=header):
                    text = f'#include "{header}"\n#include "{header}"\nint main(void) {{ return 0; }}\n'
                    self.assertEqual(compiles(compiler, language, standard, text), "")

    def test_FactsHoldInEachLanguage(self):
        text = rknn_abi_sources.layout(FACTS)
        for compiler, language, standard in dialects():
            with self.subTest(compiler=compiler, standard=standard):
                self.assertEqual(compiles(compiler, language, standard, text), "")

    def test_FactsHoldOnOtherMachines(self):
        clang = next((c for c, _ in PAIRS if "clang" in Path(c).name), None)
        if clang is None:
            self.skipTest("no clang here, which compiles for every machine without a sysroot")
        text = rknn_abi_sources.layout(FACTS)
        for target in ("aarch64-linux-gnu", "armv7a-linux-gnueabihf", "x86_64-linux-gnu"):
            with self.subTest(target=target):
                self.assertEqual(compiles(clang, "c", "c11", text, f"--target={target}", "-ffreestanding"), "")

    def test_AWrongFactIsNoticed(self):
        def changed(change):
            facts = copy.deepcopy(FACTS)
            change(facts)
            return rknn_abi_sources.layout(facts)

        def named(facts, name):
            return next(s for s in facts["structs"] if s["name"] == name)

        wrong = {
            "size": lambda f: named(f, "rknn_mem_size").update(sizeof=60),
            "offset": lambda f: named(f, "rknn_input")["fields"][5].update(offset=24),
            "field size": lambda f: named(f, "rknn_output")["fields"][0].update(size=4),
            "field type": lambda f: named(f, "rknn_tensor_attr")["fields"][10].update(type="uint32_t"),
            "array": lambda f: named(f, "rknn_tensor_attr")["fields"][2].update(type="uint32_t[8]"),
            "tag": lambda f: named(f, "rknn_tensor_mem").update(struct_tag="_rknn_tensor_mem"),
            "enumerator": lambda f: f["enums"][0]["values"][1].update(value=2),
            "macro": lambda f: f["macros"]["RKNN_ERR_CTX_INVALID"].update(value=-8),
            "parameter": lambda f: f["functions"][0]["params"][2].update(type="uint64_t"),
            "result": lambda f: f["functions"][2].update(returns="void"),
            "payload": lambda f: f["query_payload"][0].update(expected_size_lp64=4),
            "guard": lambda f: f["include_guards"].update({"rknn_api.h": "RKNN_API_H"}),
        }
        c, cpp = PAIRS[0]
        for what, change in wrong.items():
            for compiler, language, standard in ((c, "c", "c11"), (cpp, "c++", "c++11")):
                with self.subTest(what=what, language=language):
                    self.assertNotEqual(compiles(compiler, language, standard, changed(change)), "")


if __name__ == "__main__":
    INCLUDE = sys.argv[1]
    FACTS = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    given = list(zip(sys.argv[3::2], sys.argv[4::2]))
    PAIRS = [p for i, p in enumerate(given) if i == 0 or all(map(shutil.which, p))]
    unittest.main(argv=sys.argv[:1], verbosity=2)
