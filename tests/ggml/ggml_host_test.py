"""The plugin libggml-rknn.so in an unmodified host: ggml's own test-backend-ops, built from the pinned source
distribution by build_host.py.

usage: ggml_host_test.py <libggml-rknn.so> <librknnrt.so> <C++ compiler> [<unittest arguments>]

Each test looks at the device's line, at how many cases ran, and at what the plugin counted itself.
"""
import pathlib
import subprocess
import tempfile
import unittest

import build_host
import plugged
from plugged import Built

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"


class Host(plugged.BackendOps, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = build_host.BuiltHost(plugged.CACHE)


class MulMat(Host):
    def test_all_cases_as_a_user_has_them(self):
        self.pass_all(claimed=1000, compared=950)

    def test_bf16_and_f32_by_option(self):
        self.pass_part("type_a=(bf16|f32),type_b=f32,m=16", 90, GGML_RKNN_TYPE="f16")

    def test_f16_as_int8_by_option(self):
        self.pass_part("type_a=f16,type_b=f32,m=16", 60, GGML_RKNN_TYPE="int8")

    def test_matrices_that_are_no_weights_do_not_become_int4(self):
        done = self.pass_part("type_a=(q4_0|mxfp4|iq4_nl),type_b=f32,m=16", 60, GGML_RKNN_TYPE="int4x4")
        self.assertEqual(done.stats["offloaded"]["int4"], 0)

    def test_other_numbers_of_cores(self):
        self.pass_part("type_a=(f16|q8_0),type_b=f32,m=16", 100, GGML_RKNN_CORES="1")

    def test_products_that_fail_are_computed_on_the_cpu_and_told_once(self):
        self.pass_with_failures("type_a=(f16|q8_0),type_b=f32,m=16", 100, 0.05)

    def test_accelerator_by_option(self):
        self.pass_part("type_a=f16,type_b=f32,m=16,n=16", 2, GGML_RKNN_DEVICE="accel")

    def test_no_other_operator_is_claimed(self):
        self.claim_products_alone()


class Loading(Host):
    """What cannot serve says so in one line, and the host goes on with its CPU."""

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
        done = self.ops("test", "-b", "RKNN", "-o", "MUL_MAT", "-p", "nothing", CORELANE_RKNN_INNER="null")
        self.assertFalse(done.listed())
        self.assertIn("loads, but makes no matrix products", done.log)


class Declarations(Host):
    def test_ours_are_those_of_the_hosts_sources(self):
        include = [f"-I{folder}" for folder in (SOURCE, self.host.tree / "include", self.host.tree / "src")]
        done = subprocess.run([Built.compiler, "-std=c++17", "-fsyntax-only", *include, HERE / "ggml_abi_check.cpp"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_plugin_asks_the_linker_for_nothing_of_a_host_or_of_the_house(self):
        needed = subprocess.run(["readelf", "-d", Built.plugin], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(needed, r"NEEDED.*(ggml|corelane|rknn|dnnl|openvino)")


if __name__ == "__main__":
    plugged.main()
