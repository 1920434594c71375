#!/usr/bin/env python3
"""Writes the node tests of the onnx package as files that node_runner reads.

    export_cases.py OUT

OUT gets, per case, NAME.onnx (the model) and NAME.data (inputs and expected outputs), and a stamp
with the onnx version; nothing is done when the stamp is there. NAME.data, little-endian:

    "CLTC"  u32 version (2)  i64 opset  f64 rtol  f64 atol  u32 inputs  u32 outputs
    per value: u32 ONNX element type (0: a value in its flat form)  u32 rank  i64 dims[rank]
               u64 bytes  data (as TensorProto.raw_data has them, or the flat form)

The package builds its cases in memory with fixed seeds; cases with several data sets use the first.
"""

import pathlib
import struct
import sys
import warnings

from flat_form import flat, is_plain


def tensor_of(value):
    """A TensorProto of a test value of numbers."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    if isinstance(value, onnx.TensorProto):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value)
        return tensor if tensor.HasField("raw_data") else numpy_helper.from_array(
            numpy_helper.to_array(tensor))
    return numpy_helper.from_array(np.asarray(value))


def pack(value, kind=None):
    """kind: the TypeProto, where it may not be a tensor of numbers."""
    if kind is not None and not is_plain(kind):
        form = flat(plain(value), kind)
        return struct.pack("<IIQ", 0, 0, len(form)) + form
    tensor = tensor_of(value)
    dims = list(tensor.dims)
    head = struct.pack("<II", tensor.data_type, len(dims))
    head += struct.pack(f"<{len(dims)}q", *dims)
    return head + struct.pack("<Q", len(tensor.raw_data)) + tensor.raw_data


def plain(value):
    """Lists and arrays of what the package may hold as messages."""
    import onnx
    from onnx import numpy_helper

    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    return numpy_helper.to_optional(value) if isinstance(value, onnx.OptionalProto) else value


def opset_of(model):
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            return entry.version
    return 0


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: export_cases.py OUT")
    out = pathlib.Path(sys.argv[1])
    warnings.filterwarnings("ignore")
    import onnx

    stamp = out / f"onnx-{onnx.__version__}-2.stamp"
    if stamp.exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    from onnx.backend.test.loader import load_model_tests

    cases = load_model_tests(kind="node")
    for case in cases:
        inputs, outputs = case.data_sets[0]
        head = b"CLTC" + struct.pack("<Iqdd", 2, opset_of(case.model), case.rtol, case.atol)
        head += struct.pack("<II", len(inputs), len(outputs))
        graph = case.model.graph
        kinds = [v.type for v in graph.input][:len(inputs)] + [v.type for v in graph.output]
        body = b"".join(pack(v, kind) for v, kind in zip((*inputs, *outputs), kinds, strict=True))
        (out / f"{case.name}.onnx").write_bytes(case.model.SerializeToString())
        (out / f"{case.name}.data").write_bytes(head + body)
    stamp.write_text(f"{len(cases)}\n")
    print(f"{len(cases)} cases written to {out}")


if __name__ == "__main__":
    main()
