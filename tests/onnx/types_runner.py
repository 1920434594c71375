#!/usr/bin/env python3
"""Loads and runs the node tests of the onnx package with element types that nobody expects.

    types_runner.py [--engine auto|openvino|onnxruntime] [--only TEXT] [--every N]

Each element type of a model's inputs and outputs is replaced by each other one. Any answer will do, an error too; what
must not come is a signal, or no answer within 20 seconds. Types that numpy has not are loaded, not run. As
sizes_runner.py, of which this takes the processes.
"""

import os
import signal
import sys

import numpy as np
from onnx import TensorProto

import sizes_runner

NUMPY = {TensorProto.BOOL: np.bool_, TensorProto.FLOAT16: np.float16, TensorProto.INT8: np.int8,
         TensorProto.UINT8: np.uint8, TensorProto.INT16: np.int16, TensorProto.UINT16: np.uint16,
         TensorProto.INT32: np.int32, TensorProto.UINT32: np.uint32, TensorProto.INT64: np.int64,
         TensorProto.UINT64: np.uint64, TensorProto.DOUBLE: np.float64, TensorProto.FLOAT: np.float32}
TYPES = [*NUMPY, TensorProto.BFLOAT16, TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2,
         TensorProto.FLOAT8E4M3FN]


def values(model):
    return [v.type.tensor_type for v in (*model.graph.input, *model.graph.output) if v.type.HasField("tensor_type")]


def variants(model):
    for old in sorted({value.elem_type for value in values(model)}):
        yield from ((old, new) for new in TYPES if new != old)


def changed(model, old, new):
    copy = type(model)()
    copy.CopyFrom(model)
    for value in values(copy):
        if value.elem_type == old:
            value.elem_type = new
    return copy.SerializeToString()


def attempt(case, inputs, engine, old, new):
    import corelane

    options = corelane.SessionOptions()
    options.add_session_config_entry("corelane.device", "virtual:generic:1")
    options.add_session_config_entry("corelane.engine", engine)
    session = corelane.InferenceSession(changed(case.model, old, new), options)
    if new not in NUMPY:
        return
    given = [v.type.tensor_type.elem_type for v in case.model.graph.input]
    arrays = [x.astype(NUMPY[new]) if elem == old else x for elem, x in zip(given, inputs, strict=True)]
    session.run(None, dict(zip([value.name for value in session.get_inputs()], arrays, strict=True)))


def child(case, inputs, engine, begin, report):
    for number, (old, new) in enumerate(variants(case.model)):
        if number < begin:
            continue
        names = [TensorProto.DataType.Name(elem) for elem in (old, new)]
        os.write(report, f"{number} {names[1]} for {names[0]}\n".encode())
        signal.alarm(sizes_runner.SECONDS)
        try:
            attempt(case, inputs, engine, old, new)
        except Exception:  # Any error is an answer.
            pass


if __name__ == "__main__":
    sys.exit(sizes_runner.main(child, __doc__))
