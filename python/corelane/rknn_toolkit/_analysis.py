"""accuracy_analysis(): the program's outputs and inner values against onnxruntime's of the float model."""

from __future__ import annotations

import json
import os
from typing import Any, Sequence

import numpy as np

from .. import _native
from .._rknn.log import UsageError
from ._quantizing import real_onnx, real_onnxruntime

_PURPOSE = "accuracy_analysis()"


def inner_values(model: Any, program: bytes) -> tuple[list[str], list[str]]:
    """(values between the nodes of the float model that the program has too, and those it has not)."""
    onnx = real_onnx(_PURPOSE)
    network = onnx.load_model_from_string(_native.network(program))
    known = {value for node in network.graph.node for value in node.output}
    known -= {output.name for output in network.graph.output}
    graph = _load(onnx, model).graph
    done = {output.name for output in graph.output}
    shared, lost = [], []
    for node in graph.node:
        for value in node.output:
            if value and value not in done and node.op_type != "Constant":
                done.add(value)
                (shared if value in known else lost).append(value)
    return shared, lost


def golden(model: Any, feed: dict[str, np.ndarray], values: Sequence[str]) -> dict[str, np.ndarray]:
    """Outputs and inner values of the float model, by onnxruntime, without optimisations that would fuse
    them away."""
    onnx, ort = real_onnx(_PURPOSE), real_onnxruntime(_PURPOSE)
    exposed = _load(onnx, model)
    for value in values:
        exposed.graph.output.append(onnx.ValueInfoProto(name=value))
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(exposed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed)))


def _load(onnx: Any, model: Any) -> Any:
    return onnx.load(model) if isinstance(model, str) else onnx.load_model_from_string(bytes(model))


def compare(reference: dict[str, np.ndarray], results: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """A row for each value, in order: cosine, Euclidean distance, largest difference."""
    rows = []
    for name, expected in reference.items():
        if name not in results:
            raise UsageError(f"the program has no value {name!r}; it was built from another model")
        found = results[name]
        row: dict[str, Any] = {"name": name, "shape": list(expected.shape)}
        if found.size != expected.size:
            row["found_shape"] = list(found.shape)
        else:
            row.update(_distance(found.ravel().astype(np.float64), expected.ravel().astype(np.float64)))
        rows.append(row)
    return rows


def _distance(found: np.ndarray, expected: np.ndarray) -> dict[str, float]:
    lengths = float(np.linalg.norm(found) * np.linalg.norm(expected))
    if lengths > 0:
        cosine = float(found @ expected) / lengths
    else:
        cosine = 1.0 if np.array_equal(found, expected) else 0.0
    difference = np.abs(found - expected)
    return {"cosine": cosine, "euclidean": float(np.linalg.norm(found - expected)),
            "max_error": float(difference.max(initial=0)), "largest": float(np.abs(expected).max(initial=0))}


def run_program(program: bytes, device: str, feed: dict[str, np.ndarray],
                values: Sequence[str]) -> dict[str, np.ndarray]:
    """Outputs and the inner values `values` of the program on `device`, by name."""
    probe = _native.Probe(program, device, list(values), False)
    return dict(zip(probe.output_names, probe.run(list(feed.values()))))


def write_report(folder: str, outputs: Sequence[dict], layers: Sequence[dict], lost: Sequence[str],
                 title: str) -> str:
    """error_analysis.txt and .json in `folder`; the text is returned."""
    lines = [title, "", f"{'cosine':>10} {'euclidean':>12} {'max error':>12} {'largest':>12}  value"]
    for heading, rows in (("inner values, in the model's order", layers), ("outputs", outputs)):
        lines.append(f"-- {heading} ({len(rows)})")
        lines += [_line(row) for row in rows]
    if lost:
        lines.append(f"-- not in the program, rewritten or fused ({len(lost)}): " + ", ".join(lost[:20])
                     + (", ..." if len(lost) > 20 else ""))
    text = "\n".join(lines) + "\n"
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "error_analysis.txt"), "w", encoding="utf-8") as file:
        file.write(text)
    with open(os.path.join(folder, "error_analysis.json"), "w", encoding="utf-8") as file:
        json.dump({"title": title, "outputs": list(outputs), "layers": list(layers),
                   "lost": list(lost)}, file)
    return text


def _line(row: dict) -> str:
    if "cosine" not in row:
        return f"shape {row['found_shape']} here, {row['shape']} in the reference  {row['name']}"
    return (f"{row['cosine']:>10.6f} {row['euclidean']:>12.5g} {row['max_error']:>12.5g} "
            f"{row['largest']:>12.5g}  {row['name']}")
