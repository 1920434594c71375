"""Compiles each case of must_not_compile.cpp alone and checks that it fails for the reason it names.

usage: must_not_compile_test.py <compiler> <include folder> [compiler options...]
"""

import concurrent.futures
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).with_name("must_not_compile.cpp")
HEADER = SOURCE.with_suffix(".h")
COMPILE = []


def compiled(case):
    """(exit status, errors) of the source with CASE = `case`."""
    done = subprocess.run([*COMPILE, f"-DCASE={case}", SOURCE], capture_output=True, text=True, timeout=300)
    return done.returncode, "\n".join(row for row in done.stderr.splitlines() if "error:" in row)


class MustNotCompile(unittest.TestCase):
    def test_good_use_compiles(self):
        status, errors = compiled(0)
        self.assertEqual(0, status, errors)

    def test_each_misuse_is_refused_for_the_reason_it_names(self):
        cases = re.findall(r"^#elif CASE == (\d+) +// (.+)$", SOURCE.read_text(encoding="utf-8"), re.M)
        self.assertEqual([str(n) for n in range(1, len(cases) + 1)], [number for number, _ in cases])
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for (number, reason), (status, errors) in zip(cases, pool.map(compiled, [n for n, _ in cases])):
                with self.subTest(case=number):
                    self.assertNotEqual(0, status, f"case {number} compiles")
                    self.assertRegex(errors, reason)


if __name__ == "__main__":
    COMPILE[:] = [sys.argv[1], "-std=c++20", "-Wall", "-Werror", "-Wno-unused-variable", "-fsyntax-only",
                  f"-I{sys.argv[2]}", *sys.argv[3:]]
    with tempfile.TemporaryDirectory() as folder:
        # The headers are compiled once: g++ looks for .gch beside the named file, clang for .pch.
        copy = Path(folder, HEADER.name)
        copy.write_bytes(HEADER.read_bytes())
        suffix = ".pch" if "clang" in Path(sys.argv[1]).name else ".gch"
        options = [o for o in COMPILE if o not in ("-fsyntax-only", "-Werror")]
        subprocess.run([*options, "-x", "c++-header", str(copy), "-o", f"{copy}{suffix}"], check=True, timeout=300)
        COMPILE += ["-include", str(copy)]
        unittest.main(argv=sys.argv[:1])
