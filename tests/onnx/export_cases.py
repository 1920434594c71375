#!/usr/bin/env python3
"""Writes the node tests of the onnx package as files that node_runner reads.

    export_cases.py OUT

OUT gets, per case, NAME.onnx (the model) and NAME.data (inputs and expected outputs), and a stamp
with the onnx version; nothing is done when the stamp is there. NAME.data, little-endian:

    "CLTC"  u32 version (1)  i64 opset  f64 rtol  f64 atol  u32 inputs  u32 outputs
    per tensor: u32 ONNX element type (0: not a tensor)  u32 rank  i64 dims[rank]
                u64 bytes  data (as TensorProto.raw_data has them)

The package builds its cases in memory with fixed seeds; cases with several data sets use the first.
"""

import pathlib
import struct
import sys
import warnings


def tensor_of(value):
    """A TensorProto of a test value, or None for sequences, maps, strings and absent optionals."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    if isinstance(value, onnx.TensorProto):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value)
        if tensor.data_type == onnx.TensorProto.STRING:
            return None
        return tensor if tensor.HasField("raw_data") else numpy_helper.from_array(
            numpy_helper.to_array(tensor))
    if not isinstance(value, (np.ndarray, np.generic)):
        return None
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return None
    return numpy_helper.from_array(array)


def pack(value):
    tensor = tensor_of(value)
    if tensor is None:
        return struct.pack("<IIQ", 0, 0, 0)
    dims = list(tensor.dims)
    head = struct.pack("<II", tensor.data_type, len(dims))
    head += struct.pack(f"<{len(dims)}q", *dims)
    return head + struct.pack("<Q", len(tensor.raw_data)) + tensor.raw_data


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

    stamp = out / f"onnx-{onnx.__version__}.stamp"
    if stamp.exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    from onnx.backend.test.loader import load_model_tests

    cases = load_model_tests(kind="node")
    for case in cases:
        inputs, outputs = case.data_sets[0]
        head = b"CLTC" + struct.pack("<Iqdd", 1, opset_of(case.model), case.rtol, case.atol)
        head += struct.pack("<II", len(inputs), len(outputs))
        body = b"".join(pack(v) for v in inputs) + b"".join(pack(v) for v in outputs)
        (out / f"{case.name}.onnx").write_bytes(case.model.SerializeToString())
        (out / f"{case.name}.data").write_bytes(head + body)
    stamp.write_text(f"{len(cases)}\n")
    print(f"{len(cases)} cases written to {out}")


if __name__ == "__main__":
    main()
