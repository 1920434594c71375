"""The plugin libggml-rknn.so in an unmodified host: ggml's own test-backend-ops, built from the pinned source
distribution by build_host.py.

usage: ggml_host_test.py <libggml-rknn.so> <librknnrt.so> <C++ compiler> [<unittest arguments>]

test-backend-ops says "passed" where no plugin was loaded, so that each test looks at the device's line, at how
many cases ran, and at what the plugin counted itself.
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

import build_host

PLUGIN, LIBRARY, COMPILER = "", "", "c++"
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Done:
    """What a run of test-backend-ops said."""

    def __init__(self, done, stats):
        self.code = done.returncode
        self.text = COLOUR.sub("", done.stdout)
        self.log = done.stderr
        self.stats = stats
        passed = re.search(r"(\d+)/(\d+) tests passed", self.text)
        self.passed, self.compared = (int(n) for n in passed.groups()) if passed else (0, 0)
        # Cases that the CPU lacks are not compared, but were claimed.
        cases = re.findall(r"^  MUL_MAT\w*\(.*$", self.text, re.M)
        self.claimed = sum("not supported" not in case or "RKNN" not in case.split("not supported")[1]
                           for case in cases)

    def listed(self):
        return "loaded RKNN backend" in self.log and re.search(r"^Backend \d/\d: RKNN$", self.text, re.M)


class Host(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = build_host.host(os.environ.get("CORELANE_GGML_CACHE", HERE.parents[1] / ".cache" / "ggml"))

    def run_host(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            stats = pathlib.Path(folder) / "stats"
            done = subprocess.run(
                [self.programs / "test-backend-ops", *arguments], capture_output=True, text=True, timeout=1500,
                env={**os.environ, "GGML_BACKEND_PATH": PLUGIN, "GGML_RKNN_LIBRARY": LIBRARY,
                     "GGML_RKNN_STATS": str(stats), **environment}, check=False)
            return Done(done, json.loads(stats.read_text(encoding="utf-8")) if stats.exists() else None)

    def expect_passed(self, done, compared):
        self.assertEqual(done.code, 0, done.text[-2000:] + done.log[-2000:])
        self.assertTrue(done.listed(), done.log)
        self.assertNotIn("FAIL", done.text)
        self.assertEqual(done.passed, done.compared)
        self.assertGreaterEqual(done.compared, compared)
        self.assertGreaterEqual(done.stats["products"]["all"], done.compared)


class MulMat(Host):
    def test_all_cases_as_a_user_has_them(self):
        done = self.run_host("test", "-b", "RKNN", "-o", "MUL_MAT")
        self.expect_passed(done, 950)
        self.assertGreaterEqual(done.claimed, 1000)
        self.assertEqual(done.stats["products"]["failed"], 0)
        print(f"{done.claimed} cases claimed, {done.passed} compared with the CPU and passed, "
              f"{done.stats['products']['all']} products on the NPU", file=sys.stderr)

    def pass_part(self, types, compared, **environment):
        """The cases of these types of the first matrix, with 16 columns of the result."""
        done = self.run_host("test", "-b", "RKNN", "-o", "MUL_MAT", "-p", f"type_a={types},type_b=f32,m=16",
                             **environment)
        self.expect_passed(done, compared)
        return done

    def test_bf16_and_f32_by_option(self):
        self.pass_part("(bf16|f32)", 90, GGML_RKNN_TYPE="f16")

    def test_f16_as_int8_by_option(self):
        self.pass_part("f16", 60, GGML_RKNN_TYPE="int8")

    def test_other_numbers_of_cores(self):
        self.pass_part("(f16|q8_0)", 100, GGML_RKNN_CORES="1")

    def test_products_that_fail_are_computed_on_the_cpu_and_told_once(self):
        done = self.pass_part("(f16|q8_0)", 100, CORELANE_FAULTS="crash=0.05,seed=3")
        self.assertGreater(done.stats["products"]["failed"], 0)
        self.assertEqual(len(re.findall(r"^RKNN: rknn_matmul_run returned", done.log, re.M)), 1)

    def test_accelerator_by_option(self):
        done = self.run_host("test", "-b", "RKNN", "-o", "MUL_MAT", "-p", "type_a=f16,type_b=f32,m=16,n=16",
                             GGML_RKNN_DEVICE="accel")
        self.expect_passed(done, 2)

    def test_no_other_operator_is_claimed(self):
        done = self.run_host("support", "-b", "RKNN", "--output", "csv")
        rows = list(csv.DictReader(io.StringIO(done.text)))
        self.assertGreater(len(rows), 10000)
        claimed = {row["op_name"] for row in rows if row["supported"] == "1"}
        self.assertIn("MUL_MAT", claimed)
        # Groups of nodes that end in a view are asked by their last node alone in this mode; run, they are
        # passed or not supported.
        for name in claimed - {"MUL_MAT"}:
            done = self.run_host("test", "-b", "RKNN", "-o", name)
            self.assertEqual(done.code, 0, name)
            self.assertNotIn("FAIL", done.text)


class Loading(Host):
    """What cannot serve says so in one line, and the host goes on with its CPU."""

    def refused(self, **environment):
        done = self.run_host("test", "-b", "RKNN", "-o", "MUL_MAT", "-p", "nothing", **environment)
        self.assertEqual(done.code, 0)
        self.assertFalse(done.listed())
        self.assertIn("Testing 1 devices", done.text)
        lines = [line for line in done.log.splitlines() if line.startswith("RKNN: ")]
        self.assertEqual(len(lines), 1, done.log)
        return lines[0]

    def test_no_library(self):
        self.assertIn("cannot load /nowhere/librknnrt.so", self.refused(GGML_RKNN_LIBRARY="/nowhere/librknnrt.so"))

    def test_a_broken_library(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(b"\x7fELF and no more")
            file.flush()
            self.assertIn(f"cannot load {file.name}", self.refused(GGML_RKNN_LIBRARY=file.name))

    def test_a_library_without_products(self):
        self.assertIn("has no function rknn_matmul_create_dynamic_shape", self.refused(GGML_RKNN_LIBRARY="libm.so.6"))

    def test_a_library_whose_device_makes_no_products(self):
        done = self.run_host("test", "-b", "RKNN", "-o", "MUL_MAT", "-p", "nothing", CORELANE_RKNN_INNER="null")
        self.assertFalse(done.listed())
        self.assertIn("loads, but makes no matrix products", done.log)


class Declarations(Host):
    def test_ours_are_those_of_the_hosts_sources(self):
        tree = self.programs.parents[1] / "llama.cpp" / "ggml"
        done = subprocess.run([COMPILER, "-std=c++17", "-fsyntax-only", f"-I{SOURCE}", f"-I{tree}/include",
                               f"-I{tree}/src", HERE / "ggml_abi_check.cpp"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_plugin_asks_the_linker_for_nothing_of_a_host_or_of_the_house(self):
        needed = subprocess.run(["readelf", "-d", PLUGIN], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(needed, r"NEEDED.*(ggml|corelane|rknn|dnnl|openvino)")


if __name__ == "__main__":
    PLUGIN, LIBRARY, COMPILER = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
