"""The RKNN device on the command line: a vendor's image over the stub library, our programs over our
own librknnrt.so.

usage: rknn_device_test.py <corelane> <stub library> [<our librknnrt.so>]
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CORELANE, STUB, OURS = "", "", ""
IMAGE = b"RKNN\0\0\0\0STUB0001\nin pixels f16 nhwc affine 0 1 1,2,2,3\nout y f16 undef affine 0 1 1,12\n"


def corelane(*arguments, expect=0, **environment):
    done = subprocess.run([CORELANE, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment}, check=False)
    if done.returncode != expect:
        raise AssertionError(f"{arguments}: exit {done.returncode}, expected {expect}\n"
                             f"{done.stdout}\n{done.stderr}")
    return done.stdout if expect == 0 else done.stderr


def tensor(name, dims, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def save(path, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "net", inputs, outputs,
                              [numpy_helper.from_array(v, n) for n, v in constants])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def picture_net(path, dims=(1, 3, 4, 5)):
    """Not the same forwards and backwards in any dimension, so that a wrong order shows."""
    weights = np.arange(2 * 3 * 3 * 3, dtype=np.float32).reshape(2, 3, 3, 3) / 50
    save(path, [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
         [tensor("x", dims)], [tensor("y", [dims[0], 2, *dims[2:]])], [("w", weights)])


class RknnDevice(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        self.stub = f"rknn:rk3588?library={STUB}"
        self.vendor = self.at / "vendor.rknn"
        self.vendor.write_bytes(IMAGE)

    def test_devices_names_the_library(self):
        shown = json.loads(corelane("devices", self.stub, "--json"))["device"]
        self.assertEqual(shown["engine"], "librknnrt 2.3.2 (stub@2025-04-09)")
        self.assertEqual((len(shown["cores"]), shown["images"]), (3, ["rknn"]))
        self.assertIn("rknn", [d["kind"] for d in json.loads(corelane("devices", "--json"))["drivers"]])

    def test_vendor_image_runs_on_the_vendors_library(self):
        x = np.random.default_rng(1).random((1, 3, 2, 2), np.float32)
        np.save(self.at / "x.npy", x)
        corelane("run", self.vendor, "--device", self.stub, "-i", self.at / "x.npy", "-o", self.at)
        np.testing.assert_array_equal(np.load(self.at / "y.npy"), x.reshape(1, 12) + 1)

    def test_inspect_asks_the_device(self):
        shown = json.loads(corelane("inspect", self.vendor, "--load", "--device", self.stub, "--json"))
        self.assertEqual(shown["kind"], "vendor")
        self.assertEqual([i["name"] for i in shown["program"]["inputs"]], ["pixels"])
        self.assertIn("pixels: f32 [1, 3, 2, 2]",
                      corelane("inspect", self.vendor, "--load", "--device", self.stub))

    def test_virtual_refuses_it_and_names_the_way_out(self):
        whole = self.at / "whole.rknn"
        whole.write_bytes(b"RKNN" + struct.pack("<IQQ", 0, 6, 200) + bytes(200))
        for command in (("run", whole, "--device", "virtual", "--random"),
                        ("inspect", whole, "--load", "--device", "virtual")):
            refused = corelane(*command, expect=4)
            self.assertIn("foreign_image", refused)
            self.assertIn("corelane compile", refused)

    def test_attached_image_runs_with_the_programs_description(self):
        model, program = self.at / "m.onnx", self.at / "m.rknn"
        save(model, [helper.make_node("Flatten", ["x"], ["z"])], [tensor("x", [1, 3, 2, 2])],
             [tensor("z", [1, 12])])
        corelane("compile", model, "-o", program, "--attach", f"rknn={self.vendor}")
        x = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
        np.save(self.at / "x.npy", x)
        corelane("run", program, "--device", self.stub, "-i", self.at / "x.npy", "-o", self.at)
        np.testing.assert_array_equal(np.load(self.at / "z.npy"), x.reshape(1, 12) + 1)
        corelane("run", program, "--device", "virtual", "-i", self.at / "x.npy", "-o", self.at)
        np.testing.assert_array_equal(np.load(self.at / "z.npy"), x.reshape(1, 12))

    def test_our_programs_need_a_library_of_ours(self):
        model = self.at / "m.onnx"
        picture_net(model)
        self.assertIn("foreign_image", corelane("run", model, "--device", self.stub, "--random", expect=4))

    def test_missing_library_is_told(self):
        text = corelane("devices", "rknn?library=/nowhere/librknnrt.so", expect=5)
        self.assertIn("CORELANE_RKNN_LIBRARY", text)


class OverOurs(unittest.TestCase):
    """The same program on `virtual` and on `rknn` over our library over `virtual`: equal bits."""

    def setUp(self):
        if not OURS:
            self.skipTest("librknnrt.so was not built")
        self.folder = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def outputs(self, model, device, *arguments, **environment):
        folder = self.at / device
        corelane("run", model, "--device", device, "-o", folder, *arguments,
                 CORELANE_RKNN_LIBRARY=OURS, CORELANE_RKNN_INNER="virtual:rk3588", **environment)
        found = {p.name: np.load(p) for p in sorted(folder.glob("*.npy"))}
        self.assertTrue(found)
        return found

    def same(self, model, *arguments, **environment):
        wanted = self.outputs(model, "virtual", *arguments, **environment)
        found = self.outputs(model, "rknn", *arguments, **environment)
        self.assertEqual(wanted.keys(), found.keys())
        for name, value in wanted.items():
            self.assertEqual(value.dtype, found[name].dtype, name)
            np.testing.assert_array_equal(value, found[name], name)

    def test_onnx_and_program_files(self):
        model, program = self.at / "m.onnx", self.at / "m.rknn"
        picture_net(model)
        self.same(model, "--random")
        self.same(model, "--random", CORELANE_CACHE="0")
        corelane("compile", model, "-o", program)
        self.same(program, "--random")
        shown = json.loads(corelane("inspect", program, "--load", "--device", "rknn", "--json",
                                    CORELANE_RKNN_LIBRARY=OURS))
        self.assertEqual(shown["loaded"]["placement"], "opaque")

    def test_mean_and_std_are_applied_once(self):
        model, program = self.at / "m.onnx", self.at / "m.rknn"
        picture_net(model)
        corelane("compile", model, "-o", program, "--mean", "10,20,30", "--std", "2,3,4")
        pixels = np.random.default_rng(2).integers(0, 255, (1, 3, 4, 5)).astype(np.float32)
        np.save(self.at / "x.npy", pixels)
        self.same(program, "-i", self.at / "x.npy")

    def test_shape_sets(self):
        model, program = self.at / "m.onnx", self.at / "m.rknn"
        picture_net(model, (1, 3, "h", "w"))
        corelane("compile", model, "-o", program, "--shape-set", "1,3,4,5", "--shape-set", "1,3,6,7")
        for shape in ("1,3,4,5", "1,3,6,7"):
            self.same(program, "--random", "--shape", f"x={shape}")

    def test_integers_bool_and_scalars(self):
        model = self.at / "m.onnx"
        save(model, [helper.make_node("Add", ["a", "a"], ["twice"]), helper.make_node("Not", ["b"], ["nb"]),
                     helper.make_node("Cast", ["a"], ["f"], to=TensorProto.FLOAT16),
                     helper.make_node("Abs", ["s"], ["abs"]), helper.make_node("Neg", ["i"], ["minus"])],
             [tensor("a", [2, 3], TensorProto.INT64), tensor("b", [1, 2, 2, 2], TensorProto.BOOL),
              tensor("s", []), tensor("i", [3], TensorProto.INT32)],
             [tensor("twice", [2, 3], TensorProto.INT64), tensor("nb", [1, 2, 2, 2], TensorProto.BOOL),
              tensor("f", [2, 3], TensorProto.FLOAT16), tensor("abs", []),
              tensor("minus", [3], TensorProto.INT32)])
        self.same(model, "--random")

    def test_half_and_quantised_inputs(self):
        model = self.at / "m.onnx"
        save(model, [helper.make_node("Relu", ["h"], ["r"]),
                     helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
                     helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"])],
             [tensor("h", [1, 2, 3, 4], TensorProto.FLOAT16), tensor("x", [1, 3, 2, 2])],
             [tensor("r", [1, 2, 3, 4], TensorProto.FLOAT16), tensor("y", [1, 3, 2, 2])],
             [("scale", np.array(0.02, np.float32)), ("zero", np.array(-3, np.int8))])
        self.same(model, "--random")

    def test_several_cores_and_profiles(self):
        model = self.at / "m.onnx"
        picture_net(model)
        self.same(model, "--random", "--cores", "0,1,2")
        self.same(model, "--random", "--cores", "1,2")
        self.same(model, "--random", "--timeout", "60000", "--repeat", "5")

    def test_our_library_behind_itself_ends(self):
        model = self.at / "m.onnx"
        picture_net(model)
        text = corelane("run", model, "--device", "rknn", "--random", expect=3,
                        CORELANE_RKNN_LIBRARY=OURS, CORELANE_RKNN_INNER="rknn")
        self.assertIn("CORELANE_RKNN_INNER=rknn", text)


if __name__ == "__main__":
    CORELANE, STUB = (str(pathlib.Path(a).resolve()) for a in sys.argv[1:3])
    OURS = str(pathlib.Path(sys.argv[3]).resolve()) if len(sys.argv) > 3 else ""
    unittest.main(argv=sys.argv[:1])
