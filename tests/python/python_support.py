"""What the tests of the Python package share: small models, and child processes."""
import os
import subprocess
import sys
import textwrap

from onnx import TensorProto, helper


def relu_model(shape=("N", 4), kind=TensorProto.FLOAT, name="x"):
    """Bytes of a model y = Relu(x)."""
    graph = helper.make_graph(
        [helper.make_node("Relu", [name], ["y"])], "g",
        [helper.make_tensor_value_info(name, kind, list(shape))],
        [helper.make_tensor_value_info("y", kind, list(shape))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="p")
    return model.SerializeToString()


def child(code, timeout=60, env=None):
    """Runs Python code in a process of its own."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, **(env or {})}, check=False)
