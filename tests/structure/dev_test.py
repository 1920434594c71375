"""`./dev` itself, with stand-ins for the programs that it starts: where paths lead, and what is checked first."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Writes its name, folder and words to the log, a line each. cpack makes a package.
STAND_IN = """#!/bin/sh
case "$*" in *purelib*) echo "$SITE"; exit 0 ;; *-m\\ pip\\ --version*) exit 0 ;; esac
case $0 in
  */dpkg-query) echo installed; exit 0 ;;
  */cpack) mkdir -p packages; : >packages/corelane-rknnrt_1.deb ;;
esac
{ printf '%s\\n' "$(basename "$0")" "in $PWD"; for word in "$@"; do printf '%s\\n' "$word"; done; } >>"$LOG"
"""


class Dev(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.top = Path(kept.name).resolve()
        self.tree = self.top / "a tree"
        self.log = self.top / "log"
        (self.top / "bin").mkdir()
        (self.top / "called from").mkdir()
        for name in ("cmake", "cpack", "ctest", "dpkg-query", "apt-get"):
            self.stand_in(self.top / "bin" / name)
        shutil.copytree(ROOT / "requirements", self.tree / "requirements")
        for name in ("dev", "CMakePresets.json"):
            shutil.copy2(ROOT / name, self.tree)
        self.stand_in(self.tree / ".venv/bin/python")
        for file in (ROOT / "requirements").glob("*.txt"):
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            (self.tree / ".venv" / f".installed-{file.stem}").write_text(digest + "\n", encoding="utf-8")
        for folder in ("build", "build-package", "build-clang", "build-tsan"):
            self.stand_in(self.tree / folder / "bin/page_reader")
            (self.tree / folder / "build.ninja").touch()
            (self.tree / folder / ".configured").touch()

    def stand_in(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STAND_IN, encoding="utf-8")
        path.chmod(0o755)

    def dev(self, *words, program=None, code=0):
        """What it started last, as lines: name, "in FOLDER", words."""
        self.log.write_text("", encoding="utf-8")
        done = subprocess.run([program or self.tree / "dev", *words], cwd=self.top / "called from", check=False,
                              capture_output=True, text=True, timeout=30,
                              env={"PATH": f"{self.top}/bin:{os.environ['PATH']}", "LOG": str(self.log),
                                   "SITE": str(self.top / "site"), "JOBS": "1"})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        if code:
            self.assertIn("dev: next:", done.stderr)
        return self.log.read_text(encoding="utf-8").splitlines()

    def test_paths_of_programs_are_relative_to_the_callers_folder(self):
        here = f"in {self.top}/called from"
        started = self.dev("python", "sub/script.py", "-x", "a b")
        self.assertEqual(started[-5:], ["python", here, "sub/script.py", "-x", "a b"])
        started = self.dev("demo", "--page", "scan.png")
        self.assertEqual(started[-8:], ["page_reader", here, "--models-dir", f"{self.top}/site", "--out",
                                        f"{self.tree}/out/demo", "--page", "scan.png"])

    def test_a_link_to_it_serves_as_well(self):
        (self.top / "links").mkdir()
        (self.top / "links" / "first").symlink_to("../a tree/dev")
        (self.top / "links" / "second").symlink_to(self.top / "links" / "first")
        for name in ("first", "second"):
            started = self.dev("python", "script.py", program=self.top / "links" / name)
            self.assertEqual(started[-3:], ["python", f"in {self.top}/called from", "script.py"])

    def test_package_in_a_path_with_blanks(self):
        started = self.dev("package")
        folder = f"{self.tree}/build-package"
        self.assertIn(f"-DPACKAGES={folder}/packages", started)
        self.assertIn(f"-DWORK_DIR={folder}/try", started)
        self.assertTrue((self.tree / "out/packages/corelane-rknnrt_1.deb").is_file())

    def test_check_looks_at_the_history_and_ends_with_the_sanitizers_tests(self):
        """`check` runs the steps in one shell: none may change what the next one reads."""
        for name in ("check_docs.py", "tidy.py"):
            (self.tree / "tools").mkdir(exist_ok=True)
            (self.tree / "tools" / name).touch()
        for name in ("include", "src", "apps", "examples", "benchmarks", "tests"):
            (self.tree / name).mkdir()
        dev = self.tree / "dev"
        text = dev.read_text(encoding="utf-8")
        dev.write_text(text.replace("\ncommand=", "\nneed() { :; }\ncommand="), encoding="utf-8")  # All is installed.
        self.stand_in(self.top / "bin/clang-format-16")
        self.stand_in(self.tree / ".venv/bin/ruff")
        (self.tree / "CHANGELOG.md").write_text("## 0.1.0\n", encoding="utf-8")
        git = ["git", "-C", self.tree, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        for words in (["init", "-q"], ["add", "CHANGELOG.md"], ["commit", "-q", "-m", "docs: cut the changelog"]):
            subprocess.run([*git, *words], check=True, timeout=30)
        started = self.dev("check")
        ctest = started.index("ctest")
        self.assertEqual(started[ctest:ctest + 4],
                         ["ctest", f"in {self.top}/called from", "--test-dir", f"{self.tree}/build-tsan"])

    def test_options_are_checked_before_anything_is_deleted_or_started(self):
        (self.tree / "out").mkdir()
        for words in (("clean", "--al"), ("clean", "--all", "x"), ("package", "arm"), ("package", "aarch64", "x"),
                      ("setup", "build", "nothing"), ("build", "relase"), ("build", "release", "x"), ("docs", "x"),
                      ("wheel", "x"), ("format", "--chek"), ("format", "--check", "x"), ("fuzz", "long"),
                      ("fuzz", "1", "x"), ("tidy", "--chnged"), ("tidy", "--changed", "x"), ("check", "x"), ("claen",)):
            with self.subTest(words=words):
                self.assertEqual(self.dev(*words, code=1), [])
                for kept in ("build", "build-package", "out", ".venv"):
                    self.assertTrue((self.tree / kept).is_dir(), kept)
        self.dev("clean")
        self.assertFalse((self.tree / "build").exists() or (self.tree / "out").exists())
        self.assertTrue((self.tree / ".venv").is_dir())


if __name__ == "__main__":
    unittest.main()
