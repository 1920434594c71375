"""Writes a small decoder with one state, for the example qaic_decoder.

python decoder_model.py decoder.onnx
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

HIDDEN, INPUT, OUTPUT = 24, 8, 5


def decoder():
    """next = tanh(h W + x U), y = next V."""
    rng = np.random.default_rng(1)
    weights = {"W": (HIDDEN, HIDDEN), "U": (INPUT, HIDDEN), "V": (HIDDEN, OUTPUT)}
    nodes = [("MatMul", ["h", "W"], "hw"), ("MatMul", ["x", "U"], "xu"), ("Add", ["hw", "xu"], "sum"),
             ("Tanh", ["sum"], "next"), ("MatMul", ["next", "V"], "y")]
    tensors = [onnx.numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)
               for name, shape in weights.items()]
    sizes = {"x": INPUT, "h": HIDDEN, "y": OUTPUT, "next": HIDDEN}
    info = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]) for name, size in sizes.items()}
    graph = helper.make_graph([helper.make_node(op, given, [made]) for op, given, made in nodes], "decoder",
                              [info["x"], info["h"]], [info["y"], info["next"]], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python decoder_model.py decoder.onnx")
    onnx.save(decoder(), sys.argv[1])
