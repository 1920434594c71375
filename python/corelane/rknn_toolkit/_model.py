"""The ONNX model that load_onnx() took: a part of it, its inputs, and shapes for them."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from .. import _native
from .._errors import unreadable
from .._rknn.log import Log, UsageError
from ._config import Config, by_input, shapes
from ._custom import CustomOperator, describe_results
from ._quantizing import custom_operators, real_onnx


class LoadedModel:
    """given: what load_onnx() took, a path or bytes. source: the model that build() compiles, likewise. inputs:
    descriptions in model order, as compile() sees them."""

    def __init__(self, model: Any, inputs: Any, input_size_list: Any, outputs: Any,
                 operators: Mapping[str, CustomOperator]):
        self.given = _source(model)
        self.source = _described(self.given, operators)
        self._custom = ["*"] if operators else []
        description = self._describe()
        if _differs(inputs, description["inputs"]) or _differs(outputs, description["outputs"]):
            self.source = _part(self.source, inputs or _names(description["inputs"]),
                                outputs or _names(description["outputs"]))
            description = self._describe()
        self.inputs: list[dict] = description["inputs"]
        self.shapes: dict[str, list[int]] = {}
        if input_size_list is not None:
            given = shapes("input_size_list", input_size_list)
            if len(given) != len(self.inputs):
                raise UsageError(f"input_size_list: {len(given)} shapes for {len(self.inputs)} inputs "
                                 f"({', '.join(_names(self.inputs))})")
            self.shapes = dict(zip(_names(self.inputs), given))

    def _describe(self) -> dict:
        return _native.describe(self.source, {"allow_known_wrong": True, "custom_operators": self._custom})

    def compile_options(self, config: Config, log: Log) -> dict[str, Any]:
        """Keywords of compile() that the configuration and the shapes make."""
        options: dict[str, Any] = {
            "mean": by_input("mean_values", config.means, self.inputs),
            "std": by_input("std_values", config.stds, self.inputs),
            "custom_string": config.custom_string, "custom_operators": self._custom, "shape_sets": config.shape_sets}
        if not config.shape_sets:
            options["input_shapes"] = self._fixed(log)
        return options

    def sample_inputs(self, config: Config, log: Log) -> list[dict]:
        """Descriptions with static shapes and mean and std, for SampleReader."""
        sets = config.shape_sets
        fixed = dict(zip(_names(self.inputs), sets[0])) if sets else self._fixed(log)
        means = by_input("mean_values", config.means, self.inputs)
        stds = by_input("std_values", config.stds, self.inputs)
        return [{**desc, "shape": fixed.get(desc["name"], desc["shape"]), "mean": means.get(desc["name"], []),
                 "std": stds.get(desc["name"], [])} for desc in self.inputs]

    def _fixed(self, log: Log) -> dict[str, list[int]]:
        """Static shapes for the inputs that have none of their own; an open batch is 1."""
        fixed = {}
        for desc in self.inputs:
            name, shape = desc["name"], list(self.shapes.get(desc["name"], desc["shape"]))
            if shape and not isinstance(shape[0], int):
                log.info("build", f"the open batch of input {name!r} is fixed to 1")
                shape[0] = 1
            if any(not isinstance(d, int) for d in shape):
                raise UsageError(f"input {name!r} is open: {desc['shape']}; give "
                                 "load_onnx(input_size_list=[...]) its "
                                 "shape, or config(dynamic_input=[...]) the shapes it may have")
            if shape != desc["shape"]:
                fixed[name] = shape
        return fixed


def _source(model: Any) -> Any:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if not isinstance(model, (str, os.PathLike)):
        raise UsageError(f"model: expected a path, given {type(model).__name__}")
    path = os.fsdecode(model)
    if not os.path.isfile(path):
        raise UsageError(f"model {path!r}: {unreadable(path)}")
    return path


def _described(source: Any, operators: Mapping[str, CustomOperator]) -> Any:
    """With the types and shapes of what custom operators give, where the model has such."""
    if not operators:
        return source
    onnx = real_onnx("a model for which custom operators are registered")
    model = onnx.load(source) if isinstance(source, str) else onnx.load_model_from_string(source)
    if not custom_operators(onnx, model, operators):
        return source
    return describe_results(onnx, model, operators).SerializeToString()


def _names(descriptions: Sequence[dict]) -> list[str]:
    return [desc["name"] for desc in descriptions]


def _differs(names: Any, descriptions: Sequence[dict]) -> bool:
    if names is None:
        return False
    if isinstance(names, str) or not all(isinstance(n, str) for n in names):
        raise UsageError(f"inputs and outputs: expected lists of names, given {names!r}")
    return list(names) != _names(descriptions)


def _part(source: Any, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """The model between the values `inputs` and `outputs`."""
    onnx = real_onnx("a part of a model (load_onnx with inputs or outputs)")
    model = onnx.load(source) if isinstance(source, str) else onnx.load_model_from_string(source)
    model = onnx.shape_inference.infer_shapes(model)
    known = {v.name for v in (*model.graph.input, *model.graph.value_info, *model.graph.output)}
    for name in (*inputs, *outputs):
        if name not in known:
            raise UsageError(f"the model has no value {name!r} of known shape; names are those of the edges "
                             "of the graph, not of its nodes")
    return onnx.utils.Extractor(model).extract_model(list(inputs), list(outputs)).SerializeToString()
