"""What an installed tree promises beside its functions: hardened_try.py TREE SOURCE [FOLDER].

FOLDER: the Python package as it is built.

Every library and program of the tree is built with full RELRO, the stack protector and FORTIFY; the bill of materials
names each part that is compiled in, and the notices hold its licence.
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest

TREE, SOURCE, *MORE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
# The largest text of a file that may call nothing of the C library that could be guarded.
SMALL = 16 << 10


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words], capture_output=True, text=True, check=True).stdout


def ours():
    """The ELF files of the tree, those of the engines left out."""
    for root in (TREE, *MORE):
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink() and "engine" not in path.relative_to(root).parts:
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF" and path.suffix != ".o":
                        yield path


class Hardened(unittest.TestCase):
    def test_there_are_libraries_and_programs(self):
        names = {path.name.partition(".so")[0] for path in ours()}
        self.assertGreaterEqual(names, {"libcorelane", "corelane"})
        if MORE:
            self.assertTrue([name for name in names if name.startswith("_native.")])

    def test_every_file_has_full_relro_and_no_executable_stack(self):
        for path in ours():
            with self.subTest(path.name):
                headers, dynamic = readelf("-l", path), readelf("-d", path)
                self.assertIn("GNU_RELRO", headers)
                self.assertRegex(dynamic, r"\(BIND_NOW\)|\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*\bNOW\b")
                self.assertRegex(headers, r"GNU_STACK .* RW +0x")
                self.assertIn("Elf file type is DYN", headers)

    def test_every_file_guards_its_stack_and_its_calls(self):
        guarded = 0
        for path in ours():
            symbols = set(re.findall(r"\bUND (\w+)", readelf("--dyn-syms", path)))
            text = re.search(r"\.text +PROGBITS +\w+ +\w+ +(\w+)", readelf("-S", path))
            if int(text.group(1), 16) < SMALL and "__stack_chk_fail" not in symbols:
                continue
            with self.subTest(path.name):
                self.assertIn("__stack_chk_fail", symbols)
            guarded += any(re.fullmatch(r"__\w+_chk", name) for name in symbols)
        self.assertGreater(guarded, 2, "files that call guarded functions of the C library")


class Bill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        documents = TREE / "share" / "doc" / "corelane"
        cls.bill = json.loads((documents / "corelane.cdx.json").read_text(encoding="utf-8"))
        cls.notices = (documents / "NOTICES.txt").read_text(encoding="utf-8")
        cls.parts = {part["name"]: part for part in cls.bill["components"]}

    def test_main_fields(self):
        self.assertEqual((self.bill["bomFormat"], self.bill["specVersion"]), ("CycloneDX", "1.5"))
        own = self.bill["metadata"]["component"]
        self.assertEqual((own["name"], own["licenses"]), ("corelane", [{"license": {"id": "Apache-2.0"}}]))
        api = (SOURCE / "include/corelane/base/api.h").read_text(encoding="utf-8")
        self.assertIn(f'CORELANE_VERSION_STRING "{own["version"]}"', api)
        for part in self.bill["components"]:
            with self.subTest(part["name"]):
                self.assertEqual(part["type"], "library")
                self.assertTrue(part["licenses"][0]["license"]["name"])
                self.assertRegex(part["purl"], r"^pkg:(deb/debian|pypi|github)/")
        references = [part["bom-ref"] for part in self.bill["components"]]
        self.assertEqual(len(set(references)), len(references))
        self.assertEqual(self.bill["dependencies"][0], {"ref": "corelane", "dependsOn": references})

    def test_each_part_of_the_page_is_listed(self):
        page = (SOURCE / "docs/dependencies.md").read_text(encoding="utf-8")
        wanted = {"nanobind", "robin-map", "onnx"}
        for line in page.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if len(cells) == 4 and re.match(r"(links|headers)(?! \(demo)", cells[2]):
                wanted.update(n for n in re.findall(r"`([^`]+)`", cells[0]) if not n.endswith("-compiler"))
        self.assertGreater(len(wanted), 12)
        self.assertEqual(wanted - set(self.parts), set())
        if list(TREE.rglob("libopenvino.so*")):
            self.assertLessEqual({"openvino", "onnxruntime"}, set(self.parts))

    def test_pinned_packages_have_their_version(self):
        for name in ("engine", "python"):
            text = (SOURCE / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
            for package, version in re.findall(r"^([\w.-]+)==([^\s\\]+)", text, re.M):
                if package in self.parts:
                    self.assertEqual(self.parts[package]["version"], version)

    def test_each_part_has_its_notice(self):
        heads = re.findall(r"={100}\n(\S+)[^\n]*\n={100}\n\n(.+?)(?=\n={100}\n|\Z)", self.notices, re.S)
        texts = {head: text.strip() for head, text in heads}
        self.assertEqual(set(self.parts) - set(texts), set())
        for name in self.parts:
            self.assertGreater(len(texts[name]), 300, f"the licence of {name} is not in the notices")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
