"""Changes to a model's bytes that SessionOptions ask for: values of initializers, sizes of dimensions.

Numbers of fields are those of onnx.proto. What is not changed is copied as it is."""

from __future__ import annotations

import json
from typing import Any, Callable, Collection, Mapping

from .. import _arrays
from .._errors import Fail, InvalidArgument, InvalidProtobuf, numbered
from .._wire import field, fields, number_field, numbers

_GRAPH, _METADATA = 7, 14  # ModelProto
_NODE, _INITIALIZER, _INPUT = 1, 5, 11  # GraphProto
_DIMS, _TYPE, _NAME, _RAW, _EXTERNAL = 1, 2, 8, 9, 13  # TensorProto


def is_program(data: Any) -> bool:
    """Whether these are bytes of a program file, which holds no ONNX model to change."""
    return bytes(data[:8]) == b"RKNNCLP1"


def _text(content: Any) -> str:
    return bytes(content).decode(errors="replace")


def _graph(data: Any) -> memoryview:
    try:
        return next((value for number, _, value in fields(memoryview(data)) if number == _GRAPH), memoryview(b""))
    except ValueError as problem:
        raise numbered(InvalidProtobuf, f"the model is not readable: {problem}") from None


def _with_graph(data: Any, change: Callable[[int, Any], bytes | None]) -> bytes:
    """The model with each field of the graph that `change` gives something for in its place."""
    parts: list = []
    for number, whole, value in fields(memoryview(data)):
        if number != _GRAPH:
            parts.append(whole)
            continue
        inner = [(changed if (changed := change(n, v)) is not None else w) for n, w, v in fields(value)]
        parts.append(field(_GRAPH, b"".join(inner)))
    return b"".join(parts)


class _Tensor:
    """What a TensorProto says of itself."""

    def __init__(self, content: memoryview):
        self.dims: list[int] = []
        self.type, self.name = 0, ""
        self.external: dict[str, str] = {}
        for number, _, value in fields(content):
            if number == _DIMS:  # One by one, or packed.
                self.dims += [value] if isinstance(value, int) else numbers(value)
            elif number == _TYPE:
                self.type = value
            elif number == _NAME:
                self.name = _text(value)
            elif number == _EXTERNAL:
                entry = {n: _text(v) for n, _, v in fields(value)}
                self.external[entry.get(1, "")] = entry.get(2, "")

    def with_bytes(self, content: bytes | memoryview) -> bytes:
        """As a field of the graph, with that content instead of its own."""
        dims = b"".join(number_field(_DIMS, d) for d in self.dims)
        return field(_INITIALIZER, b"".join((dims, number_field(_TYPE, self.type),
                                             field(_NAME, self.name.encode()), field(_RAW, content))))


def has_external_data(data: Any) -> bool:
    """Whether an initializer lies in another file."""
    return any(number == _INITIALIZER and _Tensor(value).external for number, _, value in fields(_graph(data)))


def with_initializers(data: Any, values: Mapping[str, Any], external: Mapping[str, Any],
                      files: Mapping[str, Any]) -> bytes:
    """values: OrtValues by the name of an initializer; names that the model lacks are left out, as in
    onnxruntime. external: the same for initializers that lie in files; Fail for others. files: contents by
    the name of such a file. InvalidArgument for a value of another type or shape."""
    missing = set(external)

    def change(number: int, content: Any) -> bytes | None:
        if number != _INITIALIZER:
            return None
        tensor = _Tensor(content)
        missing.discard(tensor.name)
        if tensor.name in external and not tensor.external:
            raise numbered(Fail, f"Trying to replace non-external initializer {tensor.name} with external data; "
                                 "SessionOptions.add_initializer replaces it")
        value = external.get(tensor.name, values.get(tensor.name))
        if value is not None:
            return tensor.with_bytes(_checked(tensor, value))
        if tensor.external.get("location") in files:
            return tensor.with_bytes(_slice(tensor, files[tensor.external["location"]]))
        return None

    changed = _with_graph(data, change)
    if missing:
        raise numbered(Fail, f"Failed to find existing initializer with name {', '.join(sorted(missing))}.")
    return changed


def without_initializers(data: Any, names: Collection[str]) -> bytes:
    """The model without these initializers, whose inputs have to be given then."""
    return _with_graph(data, lambda number, content: (
        b"" if number == _INITIALIZER and _Tensor(content).name in names else None))


def _checked(tensor: _Tensor, value: Any) -> bytes:
    kind = getattr(value, "_type", None) or value.element_type()
    if kind != tensor.type or list(value.shape()) != tensor.dims:
        raise numbered(InvalidArgument, f"initializer {tensor.name} is {_arrays.type_name(tensor.type)} "
                                        f"{tensor.dims}; the value given is {value.data_type()} "
                                        f"{list(value.shape())}")
    return value.numpy().tobytes()


def _slice(tensor: _Tensor, content: Any) -> memoryview:
    view = memoryview(content).cast("B")
    begin = int(tensor.external.get("offset") or 0)
    end = begin + int(tensor.external["length"]) if tensor.external.get("length") else len(view)
    if end > len(view):
        raise numbered(Fail, f"initializer {tensor.name} takes bytes {begin} to {end} of "
                             f"{tensor.external['location']}, which was given with {len(view)}")
    return view[begin:end]


def with_denotations(data: Any, sizes: Mapping[str, int]) -> bytes:
    """The model whose inputs have these sizes for dimensions of these denotations."""

    def nested(content: Any, path: tuple[int, ...]) -> bytes:
        """Goes down ValueInfoProto.type, .tensor_type, .shape, .dim."""
        if not path:
            said = {n: v for n, _, v in fields(content)}
            denotation = _text(said.get(3, b""))
            # An empty one is that of every dimension without a mark.
            if not denotation or denotation not in sizes or 1 in said:
                return bytes(content)
            return number_field(1, sizes[denotation]) + field(3, denotation.encode())
        return b"".join(field(n, nested(v, path[1:])) if n == path[0] else bytes(whole)
                        for n, whole, v in fields(content))

    return _with_graph(data, lambda number, content: (
        field(_INPUT, nested(content, (2, 1, 2, 1))) if number == _INPUT else None))


def metadata(data: Any) -> dict[str, str]:
    """metadata_props of the model."""
    found = {}
    for number, _, value in fields(memoryview(data)):
        if number == _METADATA:
            entry = {n: _text(v) for n, _, v in fields(value)}
            found[entry.get(1, "")] = entry.get(2, "")
    return found


def stored_settings(data: Any) -> dict[str, Any]:
    """What a model says of the session it wants: "session_options" of its entry "ort_config"."""
    text = metadata(data).get("ort_config", "{}")
    try:
        settings = json.loads(text)["session_options"] if text != "{}" else {}
    except (ValueError, KeyError, TypeError):
        raise numbered(Fail, f"the model's entry ort_config is not readable: {text[:200]!r}; it is JSON with "
                             'a "session_options"') from None
    return dict(settings)


class OrtEpAssignedNode:
    """A node of the model: name, op_type and domain."""

    def __init__(self, content: memoryview):
        said = {n: v for n, _, v in fields(content)}
        self.name, self.op_type = _text(said.get(3, b"")), _text(said.get(4, b""))
        self.domain = _text(said.get(7, b""))


class OrtEpAssignedSubgraph:
    """A part of the graph that one provider runs; here each node is one."""

    def __init__(self, ep_name: str, node: OrtEpAssignedNode):
        self.ep_name, self._node = ep_name, node

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """The nodes of this part."""
        return [self._node]


def assigned_nodes(data: Any, provider: str) -> list[OrtEpAssignedSubgraph]:
    """Every node of the graph: one device runs them all."""
    return [OrtEpAssignedSubgraph(provider, OrtEpAssignedNode(value))
            for number, _, value in fields(_graph(data)) if number == _NODE]
