"""A host's programs with the plugin, for the tests beside this file: how they are started, and what they and the
plugin itself said. A host says "passed" where no plugin was loaded, so that no test believes an exit status alone.
"""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("CORELANE_GGML_CACHE", ROOT / ".cache" / "ggml"))
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Built:
    """What the tests run: paths, from the command line."""

    plugin = library = compiler = ""


def main():
    """usage: <test> <libggml-rknn.so> <librknnrt.so> <C++ compiler> [<unittest arguments>]"""
    Built.plugin, Built.library = map(os.path.abspath, sys.argv[1:3])
    Built.compiler = sys.argv[3]
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[4:]])


def skip(test, why):
    """Leaves a class of tests out, and says so where its user sees it."""
    print(f"SKIP {test.__name__}: {why}", file=sys.stderr)
    raise unittest.SkipTest(why)


class Done:
    """What a program said."""

    def __init__(self, done, stats):
        self.code = done.returncode
        self.text = COLOUR.sub("", done.stdout)
        self.log = COLOUR.sub("", done.stderr)
        self.stats = stats

    def loaded(self):
        return "loaded RKNN backend" in self.log

    def told(self):
        """The plugin's own lines."""
        return [line for line in self.log.splitlines() if line.startswith("RKNN: ")]


def run(command, folder=None, kind=Done, **environment):
    """Runs a program with the plugin. `environment` comes last, and None takes a variable away."""
    with tempfile.TemporaryDirectory() as place:
        stats = pathlib.Path(place) / "stats"
        variables = {**os.environ, "GGML_BACKEND_PATH": Built.plugin, "GGML_RKNN_LIBRARY": Built.library,
                     "GGML_RKNN_STATS": str(stats), **environment}
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=3600,
                              env={name: value for name, value in variables.items() if value is not None},
                              stdin=subprocess.DEVNULL, check=False)
        return kind(done, json.loads(stats.read_text(encoding="utf-8")) if stats.exists() else None)


class OpsDone(Done):
    """What test-backend-ops said."""

    def __init__(self, done, stats):
        super().__init__(done, stats)
        passed = re.search(r"(\d+)/(\d+) tests passed", self.text)
        self.passed, self.compared = (int(n) for n in passed.groups()) if passed else (0, 0)
        # Cases that the CPU lacks are not compared, but were claimed.
        cases = re.findall(r"^  MUL_MAT\w*\(.*$", self.text, re.M)
        self.claimed = sum("not supported" not in case or "RKNN" not in case.split("not supported")[1]
                           for case in cases)

    def listed(self):
        return self.loaded() and re.search(r"^Backend \d/\d: RKNN$", self.text, re.M)


class BackendOps:
    """A host's own test-backend-ops. A class of tests that takes this has `host`: an object with command(program) and
    folder(), where the host looks for its CPU."""

    def ops(self, *arguments, **environment):
        return run([*self.host.command("test-backend-ops"), *arguments], self.host.folder(), OpsDone, **environment)

    def expect_passed(self, done, compared):
        self.assertEqual(done.code, 0, done.text[-2000:] + done.log[-2000:])
        self.assertTrue(done.listed(), done.log)
        self.assertNotIn("FAIL", done.text)
        self.assertEqual(done.passed, done.compared)
        self.assertGreaterEqual(done.compared, compared)
        self.assertGreaterEqual(done.stats["products"]["all"], done.compared)

    def pass_part(self, cases, compared, **environment):
        """The cases whose text has something that matches."""
        done = self.ops("test", "-b", "RKNN", "-o", "MUL_MAT", "-p", cases, **environment)
        self.expect_passed(done, compared)
        return done

    def pass_all(self, claimed, compared):
        done = self.ops("test", "-b", "RKNN", "-o", "MUL_MAT")
        self.expect_passed(done, compared)
        self.assertGreaterEqual(done.claimed, claimed)
        self.assertEqual(done.stats["products"]["failed"], 0)
        print(f"{done.claimed} cases claimed, {done.passed} compared with the CPU and passed, "
              f"{done.stats['products']['all']} products on the NPU", file=sys.stderr)

    def pass_with_failures(self, cases, compared, share):
        """`share`: of the NPU's runs that fail."""
        done = self.pass_part(cases, compared, CORELANE_FAULTS=f"crash={share},seed=3")
        self.assertGreater(done.stats["products"]["failed"], 0)
        self.assertEqual(len(re.findall(r"^RKNN: rknn_matmul_run returned", done.log, re.M)), 1)

    def claim_products_alone(self):
        done = self.ops("support", "-b", "RKNN", "--output", "csv")
        rows = list(csv.DictReader(io.StringIO(done.text)))
        self.assertGreater(len(rows), 10000)
        claimed = {row["op_name"] for row in rows if row["supported"] == "1"}
        self.assertIn("MUL_MAT", claimed)
        # Groups of nodes that end in a view are asked by their last node alone in this mode; run, they are
        # passed or not supported.
        for name in claimed - {"MUL_MAT"}:
            done = self.ops("test", "-b", "RKNN", "-o", name)
            self.assertEqual(done.code, 0, name)
            self.assertNotIn("FAIL", done.text)

    def refused(self, **environment):
        """The one line of a plugin that cannot serve, where the host goes on with its CPU."""
        done = self.ops("test", "-b", "RKNN", "-o", "MUL_MAT", "-p", "nothing", **environment)
        self.assertEqual(done.code, 0)
        self.assertFalse(done.listed())
        self.assertIn("Testing 1 devices", done.text)
        self.assertEqual(len(done.told()), 1, done.log)
        return done.told()[0]
