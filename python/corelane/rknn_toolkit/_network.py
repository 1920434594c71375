"""What int8 builds ask of a network: who makes a value, which values carry data, which are real numbers."""

from __future__ import annotations

from typing import Any, Iterable

UNNAMED = "corelane_unnamed_"  # With a number: the name of a node that has none of its own.


class Network:
    """An ONNX model with inferred shapes. Values that bodies of operators compute are not seen: they stay as
    they are."""

    def __init__(self, onnx: Any, model: Any):
        graph, kinds = model.graph, onnx.TensorProto
        self.nodes = list(graph.node)
        self.constants = {tensor.name for tensor in graph.initializer}
        self.inputs = [i.name for i in graph.input if i.name not in self.constants]
        self.outputs = [o.name for o in graph.output]
        self.producer = {value: node for node in self.nodes for value in node.output if value}
        self.readers: dict[str, list[Any]] = {}
        for node in self.nodes:
            for value in node.input:
                self.readers.setdefault(value, []).append(node)
        self.captured = {value for node in self.nodes for value in _read_by_bodies(node)}
        self._types = {v.name: v.type for v in (*graph.value_info, *graph.input, *graph.output)}
        self._reals = (kinds.FLOAT, kinds.FLOAT16, kinds.DOUBLE, kinds.BFLOAT16)
        self._singles = (kinds.FLOAT, kinds.FLOAT16)
        self._shapes = self._shape_arithmetic()

    def _shape_arithmetic(self) -> set[str]:
        """Values that come from the shapes of others, or their scales, alone: not data."""
        found: set[str] = set()
        for node in self.nodes:  # In order of computation.
            given = [value for value in node.input if value and value not in self.constants]
            if node.op_type == "DynamicQuantizeLinear":
                found.update(node.output[1:])
            elif node.op_type in ("Shape", "Size") or (given and all(value in found for value in given)):
                found.update(node.output)
        return found

    def is_real(self, value: str) -> bool:
        """Of real numbers, as far as the model says."""
        kind = self._types.get(value)
        return kind is not None and kind.HasField("tensor_type") and kind.tensor_type.elem_type in self._reals

    def can_be_int8(self, value: str) -> bool:
        """Of a type that the quantizer takes: float32 or float16."""
        return self.is_real(value) and self._types[value].tensor_type.elem_type in self._singles

    def activations(self) -> list[str]:
        """The real numbers that a run computes or is given, in order, but for those that are quantized already."""
        made = (value for node in self.nodes if node.op_type not in ("Constant", "DequantizeLinear")
                for value in node.output)
        return [value for value in (*self.inputs, *made)
                if value and value not in self._shapes and self.is_real(value) and not self._is_quantized(value)]

    def _is_quantized(self, value: str) -> bool:
        readers = self.readers.get(value, [])
        return bool(readers) and value not in self.outputs and all(
            reader.op_type in ("QuantizeLinear", "DynamicQuantizeLinear") for reader in readers)


def _read_by_bodies(node: Any) -> set[str]:
    """Names that the bodies of an If, Loop or Scan read, their own among them."""
    found: set[str] = set()
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            for inner in body.node:
                found.update(inner.input)
                found |= _read_by_bodies(inner)
            found.update(output.name for output in body.output)
    return found


def node_text(node: Any, output: str = "") -> str:
    """How a message names a node; after `output`, which it makes, where that is given."""
    if node.name and not node.name.startswith(UNNAMED):
        return f"{node.op_type} {node.name!r}"
    return node.op_type if output else f"{node.op_type} of {node.output[0]!r}"


def is_foreign(onnx: Any, node: Any, functions: Iterable[tuple[str, str]] = ()) -> bool:
    """Whether neither ONNX nor ONNX Runtime defines the operator: it is a custom one."""
    if node.domain in ("com.microsoft", "ai.onnx.ml", "com.microsoft.nchwc", "com.ms.internal.nhwc"):
        return False
    return not onnx.defs.has(node.op_type, node.domain) and (node.domain, node.op_type) not in set(functions)
