#!/usr/bin/env python3
"""The ONNX Runtime side of `corelane compare`.

ort_reference.py MODEL FOLDER [VALUE...]: runs MODEL on FOLDER/in<i>.npy (by position) and writes
FOLDER/out<i>.npy for the model's outputs, then for the inner VALUEs. Elements of types that numpy
lacks are their bits in the files, as V2 (bfloat16) and V1 (floats of 8 bits).
ort_reference.py --list MODEL PROGRAM LIST: writes the JSON file LIST: "shared", the inner values of
MODEL that the network PROGRAM has as well, and "left_out", the others with a reason.
Needs numpy, onnx and onnxruntime.
"""
import ctypes
import json
import math
import pathlib
import sys

import numpy as np

# Types of onnxruntime that numpy lacks, with their number in ONNX and the integers of their size.
BITS = {"tensor(bfloat16)": (16, np.uint16), "tensor(float8e4m3fn)": (17, np.uint8),
        "tensor(float8e4m3fnuz)": (18, np.uint8), "tensor(float8e5m2)": (19, np.uint8),
        "tensor(float8e5m2fnuz)": (20, np.uint8)}
# Types of ONNX that onnxruntime does not take or give in Python.
NOT_IN_PYTHON = ("INT2", "UINT2", "INT4", "UINT4", "FLOAT4E2M1", "FLOAT8E8M0")


def node_outputs(graph) -> list:
    """Names and operators of the values between the graph's nodes, in order, outputs left out."""
    done = {o.name for o in graph.output}
    found = []
    for node in graph.node:
        for value in node.output:
            if value and value not in done:
                done.add(value)
                found.append((value, node.op_type))
    return found


def other_types(model) -> dict:
    """Values that onnxruntime does not give as tensors of numbers, with the reason."""
    import onnx

    names = {number: name for name, number in onnx.TensorProto.DataType.items()}
    inferred = onnx.shape_inference.infer_shapes(model)
    found = {}
    for value in inferred.graph.value_info:
        kind = value.type.WhichOneof("value")
        if kind == "tensor_type":
            name = names.get(value.type.tensor_type.elem_type)
            if name == "STRING":
                found[value.name] = "holds strings"
            elif name in NOT_IN_PYTHON:
                found[value.name] = f"is {name.lower()}, which onnxruntime does not give"
        elif kind not in ("tensor_type", None):
            found[value.name] = f"is a {kind.removesuffix('_type')}, not a tensor"
    return found


def list_values(reference: str, program: str, target: str) -> None:
    import onnx

    model = onnx.load(reference, load_external_data=False)
    ours = onnx.load(program, load_external_data=False)
    known = {value for node in ours.graph.node for value in node.output}
    # A value that became an output is compared as one.
    known -= {o.name for o in ours.graph.output}
    others = other_types(model)
    shared, left_out = [], []
    for value, op in node_outputs(model.graph):
        if op == "Constant":
            continue
        if value in others:
            left_out.append({"name": value, "reason": others[value]})
        elif value in known:
            shared.append(value)
        else:
            left_out.append({"name": value, "reason": f"the import rewrote it ({op})"})
    pathlib.Path(target).write_text(json.dumps({"shared": shared, "left_out": left_out}))


def with_outputs(source: str, folder: pathlib.Path, values: list) -> str:
    """A copy of the model with more outputs; the weights lie beside it."""
    import onnx

    model = onnx.load(source)
    for value in values:
        model.graph.output.append(onnx.ValueInfoProto(name=value))
    target = str(folder / "reference_exposed.onnx")
    onnx.save(model, target, save_as_external_data=True, location="reference_exposed.weights")
    return target


def value_of(array: np.ndarray, kind: str):
    """An OrtValue of that type of onnxruntime."""
    import onnxruntime as ort

    if kind not in BITS:
        return ort.OrtValue.ortvalue_from_numpy(array)
    number, bits = BITS[kind]
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(bits), number)


def array_of(value) -> np.ndarray:
    """The elements of an OrtValue, or their bits."""
    if value.data_type() not in BITS:
        return value.numpy()
    bits = np.dtype(BITS[value.data_type()][1])
    size = math.prod(value.shape()) * bits.itemsize
    memory = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(memory, f"V{bits.itemsize}").reshape(value.shape())


def run(source: str, folder: pathlib.Path, values: list) -> None:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    if values:
        source = with_outputs(source, folder, values)
        # Fused nodes would hide inner values.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    feed = {i.name: np.load(folder / f"in{k}.npy") for k, i in enumerate(inputs)}
    if BITS.keys() & {tensor.type for tensor in inputs + session.get_outputs()}:
        values = session.run_with_ort_values(None, {i.name: value_of(feed[i.name], i.type) for i in inputs})
        outputs = [array_of(value) for value in values]
    else:
        outputs = session.run(None, feed)
    for k, array in enumerate(outputs):
        np.save(folder / f"out{k}.npy", np.asarray(array, order="C"))


def main() -> int:
    words = sys.argv[1:]
    if len(words) == 4 and words[0] == "--list":
        list_values(*words[1:])
        return 0
    if len(words) < 2 or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    run(words[0], pathlib.Path(words[1]), words[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
