#!/usr/bin/env python3
"""The ONNX Runtime side of `corelane compare`.

ort_reference.py FOLDER [VALUE...]: runs FOLDER/model.onnx on FOLDER/in<i>.npy (by position) and
writes FOLDER/out<i>.npy for the model's outputs, then for the inner VALUEs.
ort_reference.py --list FOLDER: writes FOLDER/values.json, the names of inner float values.
Needs numpy, onnx and onnxruntime.
"""
import json
import pathlib
import sys

import numpy as np


def inner_values(folder: pathlib.Path) -> None:
    import onnx

    model = onnx.load(folder / "model.onnx", load_external_data=False)
    done = {o.name for o in model.graph.output}
    names = []
    for node in model.graph.node:
        for value in node.output:
            if value and value not in done and node.op_type not in ("Constant", "Shape"):
                done.add(value)
                names.append(value)
    (folder / "values.json").write_text(json.dumps(names))


def run(folder: pathlib.Path, values: list[str]) -> None:
    import onnxruntime as ort

    source = str(folder / "model.onnx")
    if values:
        import onnx

        model = onnx.load(source)
        known = {v for node in model.graph.node for v in node.output}
        for value in values:
            if value in known:
                model.graph.output.append(onnx.ValueInfoProto(name=value))
        source = str(folder / "model_exposed.onnx")
        onnx.save(model, source)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if values:  # Fused nodes would hide inner values.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    feed = {i.name: np.load(folder / f"in{k}.npy") for k, i in enumerate(session.get_inputs())}
    for k, array in enumerate(session.run(None, feed)):
        np.save(folder / f"out{k}.npy", np.ascontiguousarray(array))


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] == "--list":
        inner_values(pathlib.Path(sys.argv[2]))
        return 0
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    run(pathlib.Path(sys.argv[1]), sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
