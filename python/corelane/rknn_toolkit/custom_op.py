"""`rknn.api.custom_op`: what classes for RKNN.reg_custom_op() need."""

from __future__ import annotations

from typing import Any


def get_node_attr(node: Any, name: str) -> Any:
    """The attribute of an ONNX node: a number, a text, or a list; None when the node has none of that name."""
    import onnx

    for attribute in node.attribute:
        if attribute.name == name:
            return _read(onnx.helper.get_attribute_value(attribute))
    return None


def _read(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (int, float)) or hasattr(value, "SerializeToString"):
        return value
    return [_read(one) for one in value]
