"""`corelane compile --int8`: the quantizer of the Python package from the command line.

python int8_test.py BUILD/bin/corelane
"""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper

from cli_support import CliTest, interrupted_leaves_no_folder, main

OPERATORS = """
import numpy as np
from corelane.rknn_toolkit.custom_op import get_node_attr

class Halves:
    op_type = "MyOp"

    def shape_infer(self, node, in_shapes, in_dtypes):
        return in_shapes.copy(), in_dtypes.copy()

    def compute(self, node, inputs):
        return [inputs[0] * np.float32(get_node_attr(node, "factor"))]
"""


def model(path, kind="Tanh", dims=(1, 4), **attributes):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims)) for name in ("x", "y")]
    domain = "me" if kind == "MyOp" else ""
    nodes = [helper.make_node("Relu", ["x"], ["r"]),
             helper.make_node(kind, ["r"], ["t"], name="middle", domain=domain, **attributes),
             helper.make_node("Neg", ["t"], ["y"])]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("me", 1)],
                                ir_version=8), path)


class Int8(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.x = np.linspace(-2, 2, 4, dtype=np.float32).reshape(1, 4)
        np.save(cls.path / "x.npy", cls.x)
        (cls.path / "list.txt").write_text("x.npy\n")
        model(cls.path / "tanh.onnx")

    def compile(self, name, *words):
        """(description of the program, the answer of the command)."""
        output = self.path / f"{name}.rknn"
        answer = json.loads(self.ok("--json", "compile", self.path / f"{name}.onnx", "-o", output, "--int8",
                                    "--dataset", self.path / "list.txt", *words).stdout)
        return answer["program"], answer

    def values(self, name):
        out = json.loads(self.ok("--json", "run", self.path / f"{name}.rknn", "-i", self.path / "x.npy",
                                 "--values").stdout)
        return np.array(out["outputs"][0]["values"]).reshape(1, 4)

    def test_inputs_and_outputs_are_int8(self):
        for words in ((), ("--per-layer",), ("--algorithm", "kl_divergence")):
            program, answer = self.compile("tanh", *words)
            self.assertEqual(answer["int8"]["warnings"], [])
            for entry in (*program["inputs"], *program["outputs"]):
                self.assertIn("i8", json.dumps(entry), entry)
        self.compile("tanh")
        np.testing.assert_allclose(self.values("tanh"), -np.tanh(np.maximum(self.x, 0)), atol=0.02)

    def test_open_shapes_are_fixed_by_the_same_options(self):
        model(self.path / "open.onnx", dims=("N", "C"))
        self.fails(3, "compile", self.path / "open.onnx", "--int8", "--dataset", self.path / "list.txt",
                   parts=("--shape", "'x'"))
        program, _ = self.compile("open", "--shape", "x=1,4")
        self.assertIn("i8", json.dumps(program["outputs"]))

    def test_custom_operators_are_computed_by_their_file_and_named(self):
        model(self.path / "custom.onnx", "MyOp", factor=0.5)
        (self.path / "mine.py").write_text(OPERATORS)
        program, answer = self.compile("custom", "--operators", self.path / "mine.py")
        self.assertIn("MyOp 'middle', a custom operator", answer["int8"]["warnings"][0])
        self.assertIn("i8", json.dumps(program["outputs"]))
        words = ("compile", self.path / "custom.onnx", "--int8", "--dataset", self.path / "list.txt")
        self.fails(3, *words, parts=("MyOp", "--operators FILE.py"))
        (self.path / "bad.py").write_text("import nothing_of_this_name")
        self.fails(3, *words, "--operators", self.path / "bad.py", parts=("bad.py", "nothing_of_this_name"))
        self.fails(3, *words, "--operators", self.path / "none.py", parts=("none.py",))

    def test_mistakes_are_named(self):
        self.fails(2, "compile", self.path / "tanh.onnx", "--int8", parts=("--dataset",))
        self.fails(2, "compile", self.path / "tanh.onnx", "--dataset", "x", parts=("--int8",))
        self.fails(2, "compile", self.path / "tanh.onnx", "--int8", "--dataset", "x", "--algorithm", "mmse",
                   parts=("mmse", "kl_divergence"))
        (self.path / "bad.txt").write_text("missing.npy\n")
        self.fails(3, "compile", self.path / "tanh.onnx", "--int8", "--dataset", self.path / "bad.txt",
                   parts=("missing.npy", "line 1"))

    def test_a_python_without_the_extra_says_what_to_install(self):
        python = self.path / "bare"
        python.write_text('#!/bin/sh\necho "No module named corelane" >&2\nexit 1\n')
        python.chmod(0o755)
        words = ("compile", self.path / "tanh.onnx", "--int8", "--dataset", self.path / "list.txt")
        self.fails(3, *words, "--python", python, parts=("No module named", "pip install onnxruntime onnx pillow"))
        self.fails(3, *words, env={"CORELANE_PYTHON": str(self.path / "nowhere")},
                   parts=("nowhere", "--python", "pip install onnxruntime onnx pillow"))
        without = self.path / "without"
        without.mkdir()
        (without / "sitecustomize.py").write_text("import sys\nsys.modules['onnxruntime'] = None\n")
        self.fails(3, *words, env={"PYTHONPATH": str(without)},
                   parts=("onnxruntime", "pip install onnxruntime onnx pillow"))

    def test_an_interrupted_compile_leaves_no_folder(self):
        interrupted_leaves_no_folder(self, "compile", self.path / "tanh.onnx", "--int8", "--dataset",
                                     self.path / "list.txt", "-o", self.path / "never.rknn")
        self.assertFalse((self.path / "never.rknn").exists())


if __name__ == "__main__":
    main()
