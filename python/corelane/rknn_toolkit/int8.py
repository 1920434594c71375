"""`python -m corelane.rknn_toolkit.int8 REQUEST.json`: the part of `corelane compile --int8` that needs
ONNX Runtime. It writes an ONNX model with pairs of QuantizeLinear and DequantizeLinear, and beside the request
answer.json: {"warnings": [...], "custom_operators": [...]}, or {"error": text} and exit code 1."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any

from .. import _native
from .._rknn.door import FAILURES
from .._rknn.log import Log, UsageError
from . import _quantizing
from ._custom import CustomOperator
from ._dataset import SampleReader, read_dataset

_IMPORT = ("input_shapes", "dims", "shape_sets", "mean", "std", "data_root", "strict_links")


class _Notes(Log):
    """Keeps warnings for the answer."""

    def __init__(self) -> None:
        super().__init__("corelane.rknn_toolkit", False)
        self.warnings: list[str] = []

    def warning(self, where: str, text: str) -> None:
        self.warnings.append(text)


def registered(path: str) -> dict[str, CustomOperator]:
    """Of the classes of a Python file that have op_type and compute, by type."""
    spec = importlib.util.spec_from_file_location("corelane_custom_operators", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise UsageError(f"--operators {path!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as problem:  # noqa: BLE001 - the file may fail in any way
        raise UsageError(f"--operators {path}: {type(problem).__name__}: {problem}") from None
    found = [CustomOperator(value) for value in vars(module).values()
             if isinstance(value, type) and hasattr(value, "op_type") and hasattr(value, "compute")]
    if not found:
        raise UsageError(f"--operators {path}: it has no class with op_type and compute")
    return {operator.type: operator for operator in found}


def quantize_request(request: dict[str, Any]) -> dict[str, Any]:
    """Does what the request says; its answer."""
    notes = _Notes()
    operators = registered(request["operators"]) if request.get("operators") else {}
    options = {name: request[name] for name in _IMPORT if request.get(name)}
    described = _native.describe(request["model"], {
        **options, "allow_known_wrong": True, "custom_operators": ["*"]})
    inputs = [_fixed(desc, i, described["shape_sets"]) for i, desc in enumerate(described["inputs"])]
    samples = read_dataset(request["dataset"], len(inputs))
    reader = SampleReader(inputs, bool(request.get("bgr")), notes)
    quantized = _quantizing.quantize(request["model"], (reader.read(s) for s in samples), request["calibration"],
                                     not request.get("per_layer"), notes, operators)
    with open(request["output"], "wb") as file:
        file.write(quantized)
    return {"warnings": notes.warnings,
            "custom_operators": [name for name in described["custom_operators"] if name in operators]}


def _fixed(desc: dict, position: int, sets: list) -> dict:
    shape = list(sets[0][position] if sets else desc["shape"])
    if shape and not isinstance(shape[0], int):
        shape[0] = 1
    if any(not isinstance(size, int) for size in shape):
        raise UsageError(f"input {desc['name']!r} is open: {desc['shape']}; fix it with --shape or --dim, or give "
                         "its sizes by --shape-set")
    return {**desc, "shape": shape}


def main(path: str) -> int:
    """The exit code."""
    with open(path, encoding="utf-8") as file:
        request = json.load(file)
    try:
        answer = quantize_request(request)
    except FAILURES as problem:
        answer = {"error": str(problem)}
    with open(os.path.join(os.path.dirname(path), "answer.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
