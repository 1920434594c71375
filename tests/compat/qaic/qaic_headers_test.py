"""The object runtime's headers and its clients compile without a warning, and misuse does not compile.

qaic_headers_test.py G++ GCC CLANG++ MADE_HEADERS HEADERS

All clients go through each compiler (clang where it is found) as C++17 and C++20, in one source for each of
these: what they include comes first, then each of them in a namespace of its own. That a client includes what
it needs, its own build shows. Each header is compiled alone.
"""
import concurrent.futures
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
GXX, GCC, CLANGXX = sys.argv[1:4]
MADE, HEADERS = (Path(folder).resolve() for folder in sys.argv[4:6])
INCLUDES = [f"-I{MADE}", f"-I{HEADERS}", f"-I{HERE / 'clients'}"]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wnon-virtual-dtor", "-Wshadow", "-Wconversion",
            "-Wno-missing-field-initializers"]
STANDARD = ("algorithm array atomic chrono condition_variable cstdint cstdlib cstring exception filesystem fstream "
            "functional iomanip iostream limits map memory mutex optional random sstream stdexcept string thread "
            "unordered_map utility vector").split()
CONFIGURATIONS = [(compiler, f"-std=c++{year}") for compiler in (GXX, CLANGXX) if not compiler.endswith("NOTFOUND")
                  for year in (17, 20)]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stderr


class Compiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.standard = cls.precompiled(CONFIGURATIONS[0], "standard.h", [f"<{name}>" for name in STANDARD])
        cls.classes = cls.precompiled(CONFIGURATIONS[0], "classes.h", ['"QAicApi.hpp"'])

    @classmethod
    def precompiled(cls, configuration, name, includes):
        compiler, standard = configuration
        header = cls.folder / f"{Path(compiler).name}{standard}" / name
        header.parent.mkdir(exist_ok=True)
        header.write_text("".join(f"#include {each}\n" for each in includes), encoding="utf-8")
        suffix = ".pch" if "clang" in Path(compiler).name else ".gch"
        status, errors = run(compiler, standard, *WARNINGS, *INCLUDES, "-x", "c++-header", header,
                             "-o", f"{header}{suffix}")
        if status != 0:
            raise RuntimeError(errors)
        return header

    def compile(self, configuration, source, *options, precompiled=None):
        compiler, standard = configuration
        before = ["-include", precompiled] if precompiled else []
        return run(compiler, standard, *WARNINGS, *INCLUDES, *before, "-fsyntax-only", *options, source)

    def check_all(self, jobs, precompiled=None):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            done = pool.map(lambda job: self.compile(*job, precompiled=precompiled), jobs)
            for job, (status, errors) in zip(jobs, done):
                with self.subTest(configuration=job[0], source=job[1].name):
                    self.assertEqual(0, status, errors)

    def test_all_clients_in_each_standard_by_each_compiler(self):
        clients = [*sorted((HERE / "clients").glob("*.cpp")), HERE / "spellings.cpp"]
        self.assertGreaterEqual(len(clients), 13)
        text = [path.read_text(encoding="utf-8") for path in clients]
        included = sorted({row for one in text for row in re.findall(r"^#include .*$", one, re.M)})
        source = self.folder / "all_clients.cpp"
        source.write_text("\n".join([*included, "#define main client_main", *(
            f'namespace client_{number} {{\n#include "{path}"\n}}' for number, path in enumerate(clients))]) + "\n",
            encoding="utf-8")
        self.check_all([(each, source) for each in CONFIGURATIONS])

    @unittest.skipIf(CLANGXX.endswith("NOTFOUND"), "clang is not installed")
    def test_statements_in_each_namespace_by_clang(self):
        # g++ builds them in both namespaces and both standards.
        parts = sorted((HERE / "statements").glob("*.cpp"))
        self.assertGreaterEqual(len(parts), 6)
        jobs = []
        for year, definition in ((17, ""), (20, "#define CORELANE_OPENRT\n")):
            source = self.folder / f"statements_{year}.cpp"
            source.write_text(definition + "".join(f'#include "{path}"\n' for path in parts), encoding="utf-8")
            jobs.append(((CLANGXX, f"-std=c++{year}"), source))
        self.check_all(jobs)

    def test_each_header_alone(self):
        headers = [path for folder in (MADE, HEADERS) for path in folder.rglob("QAic*.h*")]
        self.assertGreaterEqual(len(headers), 28)
        # Other names of a header are compiled together.
        names = [path for path in headers if re.fullmatch(r"(///.*\n)+#pragma once\n\n#include .*\n",
                                                          path.read_text(encoding="utf-8"))]
        groups = [[path] for path in headers if path not in names] + [names]
        sources = []
        for number, group in enumerate(groups):
            source = self.folder / f"alone_{number}.cpp"
            source.write_text("".join(f'#include "{path}"\n' for path in group), encoding="utf-8")
            sources.append(source)
        self.check_all([(CONFIGURATIONS[0], source) for source in sources], self.standard)

    def test_c11(self):
        client = HERE / "clients/table_client.c"
        status, errors = run(GCC, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror",
                             "-D_POSIX_C_SOURCE=200809L", *INCLUDES, "-fsyntax-only", client)
        self.assertEqual(0, status, errors)

    def test_misuse_does_not_compile(self):
        source = HERE / "qaic_must_not_compile.cpp"
        status, errors = self.compile(CONFIGURATIONS[0], source, "-DCASE=0", precompiled=self.classes)
        self.assertEqual(0, status, errors)
        cases = re.findall(r"^#elif CASE == (\d+) +// (.+)$", source.read_text(encoding="utf-8"), re.M)
        self.assertEqual([str(n) for n in range(1, len(cases) + 1)], [number for number, _ in cases])
        for number, reason in cases:
            with self.subTest(case=number):
                status, errors = self.compile(CONFIGURATIONS[0], source, f"-DCASE={number}",
                                              precompiled=self.classes)
                self.assertNotEqual(0, status, f"case {number} compiles")
                self.assertRegex(errors, reason)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
