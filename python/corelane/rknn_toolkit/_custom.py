"""Custom operators as RKNN.reg_custom_op() takes them: an object with op_type, shape_infer() and compute()."""

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np

from .._rknn.log import UsageError


class CustomOperator:
    """given: an instance, or a class that is made without arguments. UsageError when it lacks something."""

    def __init__(self, given: Any):
        made = given() if isinstance(given, type) else given
        self.type = getattr(made, "op_type", None)
        if not isinstance(self.type, str) or not self.type:
            raise UsageError(f"custom_op: {type(made).__name__} has no op_type, the text that names its operator")
        self._compute = getattr(made, "compute", None)
        if not callable(self._compute):
            raise UsageError(f"custom_op: {type(made).__name__} has no function compute(self, node, inputs)")
        self._shape_infer = getattr(made, "shape_infer", None)

    def function(self, onnx: Any) -> Callable[..., Any]:
        """As sessions call it: inputs by position, attributes by name."""
        def call(*inputs: np.ndarray, **attributes: Any) -> list:
            node = onnx.helper.make_node(self.type, [], [], **attributes)
            outputs = self._compute(node, list(inputs))
            return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        return call

    def results(self, node: Any, shapes: list, dtypes: list) -> list[tuple[list, np.dtype]]:
        """(shape, dtype) of each output; those of input 0 when there is no shape_infer."""
        if not callable(self._shape_infer):
            return [(shapes[0], dtypes[0])] * len(node.output)
        found, kinds = self._shape_infer(node, [list(s) for s in shapes], list(dtypes))
        if len(found) < len(node.output) or len(kinds) < len(node.output):
            raise UsageError(f"shape_infer of custom operator {self.type!r}: {len(found)} shapes and {len(kinds)} "
                             f"types for {len(node.output)} outputs")
        return [(list(shape), np.dtype(kind)) for shape, kind in zip(found, kinds)]


def functions_of(operators: Mapping[str, CustomOperator]) -> dict[str, Callable[..., Any]]:
    """By operator type, for sessions."""
    if not operators:
        return {}
    import onnx  # The author of such a model has onnx, which made its nodes.
    return {name: operator.function(onnx) for name, operator in operators.items()}


def session_with(path: str, operators: Mapping[str, CustomOperator]) -> Any:
    """A session of Corelane over an ONNX model with these operators; it has run() and get_outputs()."""
    import corelane

    options = corelane.SessionOptions()
    for name, function in functions_of(operators).items():
        options.add_custom_operator(name, function)
    return corelane.InferenceSession(path, options)


def describe_results(onnx: Any, model: Any, operators: Mapping[str, CustomOperator]) -> Any:
    """The model with the types and shapes of all values, those after custom operators too."""
    pending = [n for n in model.graph.node if n.op_type in operators]
    while pending:
        model = onnx.shape_inference.infer_shapes(model)
        known = _known(onnx, model.graph)
        waiting = []
        for node in (n for n in model.graph.node if n.op_type in operators):
            missing = [value for value in node.output if value and value not in known]
            if missing and all(value in known for value in node.input if value):
                _describe(onnx, model.graph, node, operators[node.op_type], known)
            elif missing:
                waiting.append(node)
        if len(waiting) >= len(pending):
            break
        pending = waiting
    return onnx.shape_inference.infer_shapes(model) if operators else model


def _known(onnx: Any, graph: Any) -> dict[str, tuple[list, np.dtype]]:
    """Shapes and types of values that have both."""
    found = {t.name: (list(t.dims), onnx.helper.tensor_dtype_to_np_dtype(t.data_type))
             for t in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.elem_type and kind.HasField("shape"):
            shape = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim]
            found[value.name] = (shape, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return found


def _describe(onnx: Any, graph: Any, node: Any, operator: CustomOperator, known: Mapping[str, tuple]) -> None:
    given = [known[value] for value in node.input if value]
    results = operator.results(node, [shape for shape, _ in given], [kind for _, kind in given])
    outputs = {o.name for o in graph.output}
    for name, (shape, kind) in zip(node.output, results):
        if name and name not in known and name not in outputs:
            graph.value_info.append(onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(kind), shape))
