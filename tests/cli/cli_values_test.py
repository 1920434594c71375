"""What `run` and `compare` do with numbers, and with names of tensors and files.

python cli_values_test.py BUILD/bin/corelane
"""
import json
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

from cli_support import CliTest, main


def model(path, nodes, inputs, outputs):
    """`inputs` and `outputs`: (name, type, dimensions)."""
    values = [[helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs)]
    graph = helper.make_graph([helper.make_node(*node) for node in nodes], "values", *values)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def pass_model(path, kind=TensorProto.FLOAT, name="x"):
    """y = x, of any size."""
    model(path, [("Identity", [name], ["y"])], [(name, kind, ["n"])], [("y", kind, ["n"])])


class Values(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        pass_model(cls.path / "pass.onnx")
        pass_model(cls.path / "whole.onnx", TensorProto.INT64)

    def array(self, name, values, dtype):
        np.save(self.path / name, np.array(values, dtype))
        return self.path / name

    def run_json(self, *words):
        return json.loads(self.ok("run", *words, "--json").stdout)

    def test_figures_leave_nan_out_and_count_it(self):
        file = self.array("nan.npy", [np.nan, 1, np.nan, 3, np.inf], np.float32)
        words = (self.path / "pass.onnx", "-i", file, "-k", "4", "--values")
        out = self.run_json(*words)["outputs"][0]
        self.assertEqual((out["min"], out["max"], out["mean"], out["nan"]), (1, "inf", "inf", 2))
        self.assertEqual([t["value"] for t in out["top"]], ["inf", 3, 1, "nan"])
        self.assertEqual(out["values"], ["nan", 1, "nan", 3, "inf"])
        self.assertIn("min 1  max inf  mean inf  nan 2", self.ok("run", *words).stdout)

    def test_integers_keep_their_digits(self):
        large = 2**53 + 1
        file = self.array("large.npy", [large, -5], np.int64)
        out = self.run_json(self.path / "whole.onnx", "-i", file, "--values")["outputs"][0]
        self.assertEqual((out["values"], out["max"]), ([large, -5], large))

    def test_floats_go_into_integers_only_where_these_hold_them(self):
        whole = self.path / "whole.onnx"
        out = self.run_json(whole, "-i", self.array("two.npy", [2, -3], np.float32), "--values")
        self.assertEqual(out["outputs"][0]["values"], [2, -3])
        self.assertIn("f32 converted to i64", out["inputs"][0]["steps"])
        for wrong, text in ((0.5, "0.5"), (np.nan, "nan"), (1e30, "1e+30"),
                            (2.0**63, "9.223372036854776e+18")):
            file = self.array("wrong.npy", [1, wrong], np.float64)
            self.fails(3, "run", whole, "-i", file, parts=("wrong.npy", "element 1 is " + text, "'x'", "i64"))

    def test_integers_go_into_smaller_types_only_where_these_hold_them(self):
        small = self.path / "bytes.onnx"
        pass_model(small, TensorProto.UINT8)
        out = self.run_json(small, "-i", self.array("fits.npy", [0, 255], np.int64), "--values")
        self.assertEqual(out["outputs"][0]["values"], [0, 255])
        for kind, wrong in ((np.int64, 300), (np.int8, -1), (np.uint64, 2**63 + 1)):
            file = self.array("wrong.npy", [1, wrong], kind)
            self.fails(3, "run", small, "-i", file, parts=("wrong.npy", f"element 1 is {wrong}", "'x'", "u8"))

    def test_random_floats_of_every_type_are_in_the_unit_interval(self):
        for kind in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
            path = self.path / f"random{kind}.onnx"
            model(path, [("Identity", ["x"], ["y"])], [("x", kind, [64])], [("y", kind, [64])])
            values = self.run_json(path, "--random", "--values")["outputs"][0]["values"]
            self.assertTrue(all(0 <= v < 1 for v in values), values)
            self.assertGreater(len(set(values)), 32)

    def test_outputs_never_share_a_file(self):
        names = ["a_b", "a_b.2", "a/b", "l" * 300]
        source = self.path / "names.onnx"
        model(source, [(op, ["x"], [name]) for op, name in zip(("Neg", "Abs", "Exp", "Relu"), names)],
              [("x", TensorProto.FLOAT, [4])], [(name, TensorProto.FLOAT, [4]) for name in names])
        out = self.run_json(source, "--random", "-o", self.path / "out", "--values")["outputs"]
        self.assertEqual(len({o["file"] for o in out}), len(names))
        for o in out:
            np.testing.assert_array_equal(np.load(o["file"]), np.array(o["values"], np.float32))

    def test_a_path_may_hold_an_equals_sign(self):
        folder = self.path / "d=1"
        folder.mkdir(exist_ok=True)
        x = self.array("d=1/x.npy", [1, 2], np.float32)
        source, named = folder / "pass.onnx", self.path / "named.onnx"
        pass_model(source)
        pass_model(named, name="a=b")
        for words in ((source, "-i", x), (source, "-i", f"x={x}"), (named, "-i", f"a=b={x}")):
            self.assertEqual(self.run_json(*words, "--values")["outputs"][0]["values"], [1, 2])
        image = folder / "image.bin"
        image.write_bytes(b"RKNN vendor bytes")
        program = self.path / "parts.rknn"
        self.ok("compile", "--part", f"p={source}", "-o", program)
        self.ok("compile", source, "--attach", f"rknn={image}", "-o", program)
        self.fails(3, "run", source, "-i", f"q={x}", parts=("'q'", "'x'", "no file"))

    def test_a_list_does_not_take_the_model_after_it(self):
        words = ("--shape", "x=4", "-n", "5", "--warm-up", "0", "--json")
        out = json.loads(self.ok("bench", "-c", "1,2", "-r", "5000", self.path / "pass.onnx", *words).stdout)
        self.assertEqual([p["concurrency"] for p in out["points"]], [1, 2])

    def test_a_shape_set_has_no_names(self):
        self.fails(3, "compile", self.path / "pass.onnx", "--shape-set", "x=4",
                   parts=("--shape-set 'x=4'", "a set has no names: one shape for each input, divided by ';'"))

    def compare(self, ours, reference, *words):
        return (ours, "--onnx", reference, "--python", sys.executable, *words)

    def test_compare_takes_scalars(self):
        source = self.path / "scalar.onnx"
        kind = TensorProto.FLOAT
        model(source, [("ReduceSum", ["x"], ["s"]), ("Squeeze", ["s"], ["y"])], [("x", kind, [4])], [("y", kind, [])])
        out = json.loads(self.ok("compare", source, "--python", sys.executable, "--json").stdout)
        self.assertEqual(out["outputs"][0]["shape"], [])

    def typed(self, name, kind, *nodes):
        """A model of 6 elements of that type, as inputs and outputs are from operator set 21 on."""
        values = [[helper.make_tensor_value_info(v, kind, [6])] for v in "xy"]
        graph = helper.make_graph([helper.make_node(op, i, o, **words) for op, i, o, words in nodes], name, *values)
        opset = [helper.make_opsetid("", 21)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), self.path / f"{name}.onnx")
        return self.path / f"{name}.onnx"

    def test_compare_takes_types_that_numpy_lacks(self):
        nodes = (("Cast", ["x"], ["c"], {"to": TensorProto.FLOAT}), ("Mul", ["c", "c"], ["m"], {}))
        for kind in (TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2):
            source = self.typed(f"type{kind}", kind, *nodes, ("Cast", ["m"], ["y"], {"to": kind}))
            out = json.loads(self.ok("compare", source, "--python", sys.executable, "--layers", "--json").stdout)
            self.assertEqual([o["name"] for o in out["outputs"]][0], "y")

    def test_compare_refuses_types_that_the_reference_does_not_take(self):
        nodes = (("Cast", ["x"], ["c"], {"to": TensorProto.FLOAT}), ("Cast", ["c"], ["y"], {"to": TensorProto.INT4}))
        source = self.typed("four", TensorProto.INT4, *nodes)
        self.fails(3, "compare", source, "--python", sys.executable, parts=("'x'", "i4", "8 bits"))

    def test_compare_tells_the_infinities_apart(self):
        kind = TensorProto.FLOAT
        for name, op in (("plus", "Identity"), ("minus", "Neg")):
            model(self.path / f"{name}.onnx", [(op, ["x"], ["y"])], [("x", kind, [2])], [("y", kind, [2])])
        x = self.array("inf.npy", [np.inf, 0], np.float32)
        plus, minus = self.path / "plus.onnx", self.path / "minus.onnx"
        out = self.fails(1, "compare", *self.compare(plus, minus, "-i", x, "--json"))
        self.assertEqual(json.loads(out.stdout)["outputs"][0]["not_finite_differs"], 1)
        self.assertIn("(1 differ in NaN", self.fails(1, "compare", *self.compare(plus, minus, "-i", x)).stdout)
        self.ok("compare", *self.compare(plus, plus, "-i", x))

    def test_compare_refuses_a_reference_with_more_outputs(self):
        kind = TensorProto.FLOAT
        for name, outputs in (("one", "y"), ("two", "yz")):
            model(self.path / f"{name}.onnx", [("Relu", ["x"], [o]) for o in outputs], [("x", kind, [2])],
                  [(o, kind, [2]) for o in outputs])
        one, two = self.path / "one.onnx", self.path / "two.onnx"
        self.fails(3, "compare", *self.compare(one, two), parts=("1 output", "more"))
        self.fails(3, "compare", *self.compare(two, one), parts=("2 outputs",))


if __name__ == "__main__":
    main()
