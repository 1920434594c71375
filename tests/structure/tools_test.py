"""The tools of `./dev test` and `./dev docs`: what they count, and what they do not let through."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_docs  # noqa: E402
import count_tests  # noqa: E402
import pin_hashes  # noqa: E402
import tidy  # noqa: E402


class CountTests(unittest.TestCase):
    def closing_line(self, *cases):
        """(exit code, last line) for ctest cases (status, output, why it was skipped)."""
        def element(index, status, out, skip):
            mark = f'<skipped message="{skip}"/>' if skip else ""
            return f'<testcase name="t{index}" status="{status}">{mark}<system-out>{out}</system-out></testcase>'

        body = "".join(element(i, *case) for i, case in enumerate(cases))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "tests.xml")
            path.write_text(f"<testsuite>{body}</testsuite>", encoding="utf-8")
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                code = count_tests.main(path)
        return code, out.getvalue().splitlines()[-1]

    def test_cases_of_a_passing_program_are_counted(self):
        out = "[==========] 12 tests from 3 test suites ran. (5 ms total)\n[  PASSED  ] 12 tests.\n"
        self.assertEqual((0, "12 passed, 0 failed"), self.closing_line(("run", out, "")))

    def test_failed_cases_of_a_program_are_counted(self):
        out = "[  PASSED  ] 3 tests.\n[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] A.B\n[  FAILED  ] A.C\n"
        self.assertEqual((1, "3 passed, 2 failed"), self.closing_line(("fail", out, "")))

    def test_crash_is_one_failure(self):
        self.assertEqual((1, "0 passed, 1 failed"), self.closing_line(("fail", "Segmentation fault", "")))

    def test_crash_after_all_cases_passed_is_a_failure(self):
        self.assertEqual((1, "3 passed, 1 failed"),
                         self.closing_line(("fail", "[  PASSED  ] 3 tests.\n", "")))

    def test_program_without_cases_counts_as_one(self):
        self.assertEqual((0, "2 passed, 0 failed"), self.closing_line(("run", "", ""), ("run", "ok", "")))

    def test_unittest_cases_are_counted(self):
        out = "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n"
        self.assertEqual((1, "3 passed, 2 failed"), self.closing_line(("fail", out, "")))

    def test_skipped_test_is_neither(self):
        self.assertEqual((0, "1 passed, 0 failed"), self.closing_line(
            ("run", "", ""), ("notrun", "", "SKIP_RETURN_CODE=77"), ("disabled", "Disabled", "")))

    def test_program_that_is_missing_is_a_failure(self):
        self.assertEqual((1, "0 passed, 1 failed"), self.closing_line(("notrun", "", "Unable to find executable")))

    def test_no_test_at_all_is_a_failure(self):
        self.assertEqual((1, "0 passed, 1 failed"), self.closing_line())


class CheckDocs(unittest.TestCase):
    def findings(self, **pages):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in pages.items():
                (root / f"{name}.md").write_text(text, encoding="utf-8")
            return list(check_docs.broken(root))

    def test_link_to_a_page_and_its_heading_passes(self):
        self.assertEqual([], self.findings(a="[b](b.md#two-words) [c](https://example.org)", b="# Two words\n"))

    def test_link_that_leads_nowhere_is_found(self):
        self.assertEqual(1, len(self.findings(a="[b](b.md)")))

    def test_heading_that_is_missing_is_found(self):
        self.assertEqual(1, len(self.findings(a="[b](b.md#three)", b="# Two\n")))

    def test_link_in_code_is_no_link(self):
        self.assertEqual([], self.findings(a="`[b](b.md)`\n```\n[c](c.md)\n```\n"))

    def test_package_without_a_reason_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "requirements").mkdir()
            (root / "docs" / "dependencies.md").write_text("`numpy` counts.\n", encoding="utf-8")
            (root / "requirements" / "test.txt").write_text("# why\nnumpy==1.0\nscipy==1.0\n", encoding="utf-8")
            found = list(check_docs.unexplained(root))
        self.assertEqual(1, len(found))
        self.assertIn("scipy", found[0])

    def test_each_python_package_is_pinned_with_its_hashes(self):
        root = Path(__file__).resolve().parents[2]
        self.assertIn("pip install $quiet --disable-pip-version-check --require-hashes",
                      (root / "dev").read_text(encoding="utf-8"))
        seen = 0
        for _, path in pin_hashes.lists([]):
            lines = path.read_text(encoding="utf-8").splitlines()
            for line, after in zip(lines, [*lines[1:], ""]):
                if pin_hashes.PIN.match(line):
                    seen += 1
                    self.assertRegex(line, r"^[\w.-]+==[\w.]+ \\$", path.name)
                    self.assertRegex(after, r"^    --hash=sha256:[0-9a-f]{64}( \\)?$", path.name)
        self.assertGreater(seen, 80)

    def test_hashes_are_written_under_their_package(self):
        text = "# why\nNumpy==2 \\\n    --hash=sha256:old\nsix_x==1.0  # a reason\n"
        hashes = {("numpy", "2"): {"bb", "aa"}, ("six-x", "1.0"): {"cc"}}
        self.assertEqual(pin_hashes.written(text, hashes),
                         "# why\nNumpy==2 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
                         "six_x==1.0 \\\n    --hash=sha256:cc\n")

    def test_proof_that_is_missing_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "src").mkdir()
            (root / "docs" / "compatibility.md").write_text(
                "`Shape.Grows` `Shape.*` `Shape.Shrinks` `Colour.*` `shape.grows`\n", encoding="utf-8")
            (root / "src" / "shape_test.cpp").write_text("TEST(Shape,\n     Grows) {}\n", encoding="utf-8")
            found = list(check_docs.unproven(root))
        self.assertEqual(["Shape.Shrinks", "Colour.*"], [line.split()[-1] for line in found])


class Tidy(unittest.TestCase):
    # Stands in for clang-tidy: it finds each line "flaw", warns where two files say "clash", dies of "crash".
    CHECKER = """#!{python}
import pathlib, re, sys
source = sys.argv[-1]
names = re.findall('include "(.*)"', pathlib.Path(source).read_text()) or [source]
texts = {{name: pathlib.Path(name).read_text() for name in names}}
pathlib.Path({log!r}).open("a").write(" ".join(pathlib.Path(name).name for name in names) + "\\n")
found = [f"{{name}}:1:1: error: a flaw [bugprone-flaw]" for name, text in texts.items() if "flaw" in text]
if sum("clash" in text for text in texts.values()) > 1:
    found.append(f"{{source}}:1:1: error: a clash [clang-diagnostic-error]")
if found: print("\\n".join(found))
sys.exit(bool(found) or any("crash" in text for text in texts.values()))
"""

    def checked(self, patterns=(), **files):
        """(exit status, what is printed, the sources of each run) for sources of these texts."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "build").mkdir()
            entries = []
            for name, text in files.items():
                path = root / f"{name}.cpp"
                path.write_text(text, encoding="utf-8")
                command = f"c++ -DA -o {name}.o -c {path}"
                entries.append({"directory": folder, "command": command, "file": str(path)})
            (root / "build" / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
            (root / "log").touch()
            checker = root / "checker"
            checker.write_text(self.CHECKER.format(python=sys.executable, log=str(root / "log")), encoding="utf-8")
            checker.chmod(0o755)
            out = io.StringIO()
            with mock.patch.object(tidy, "TIDY", str(checker)), mock.patch.object(tidy, "TOGETHER", 4), \
                 mock.patch.object(sys, "argv", ["tidy.py", "-j", "1", str(root / "build"), *patterns]), \
                 contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                code = tidy.main()
            return code, out.getvalue().replace(folder, ""), (root / "log").read_text().splitlines()

    def test_sources_that_are_compiled_alike_are_checked_in_few_runs(self):
        code, out, runs = self.checked(a="", b="flaw", c="", d="", e="")
        self.assertEqual((1, ["a.cpp b.cpp", "c.cpp d.cpp e.cpp"]), (code, runs))
        self.assertEqual("/b.cpp:1:1: error: a flaw [bugprone-flaw]\n5 sources, 1 findings\n", out)

    def test_sources_that_do_not_compile_together_are_checked_apart(self):
        code, out, runs = self.checked(a="clash", b="clash", c="flaw")
        self.assertEqual((1, ["a.cpp b.cpp c.cpp", "a.cpp", "b.cpp c.cpp"]), (code, runs))
        self.assertEqual("/c.cpp:1:1: error: a flaw [bugprone-flaw]\n3 sources, 1 findings\n", out)

    def test_only_what_a_pattern_names_is_checked(self):
        self.assertEqual((0, "1 sources, 0 findings\n", ["b.cpp"]), self.checked(["/b.cpp$"], a="flaw", b=""))

    def test_pattern_that_no_source_matches_is_a_failure(self):
        self.assertEqual((2, "", []), self.checked(["/no_such_source"], a="", b=""))

    def test_run_without_an_answer_is_a_failure(self):
        self.assertEqual((2, "2 sources, 0 findings\n", ["a.cpp b.cpp", "a.cpp", "b.cpp"]),
                         self.checked(a="", b="crash"))


if __name__ == "__main__":
    unittest.main()
