"""The tools of `./dev test` and `./dev docs`: what they count, and what they do not let through."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_docs  # noqa: E402
import count_tests  # noqa: E402
import pin_hashes  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
