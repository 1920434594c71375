"""Which activations of an int8 build stay float, and why: those that 8 bits cannot hold."""

from __future__ import annotations

import math
from typing import Iterable, Mapping

from ._network import Network, node_text

_FLOAT16_MOST = 65504.0
_STEPS = 255
# What these give is not near 0 because an input of theirs is: it need not be kept for it.
_ENDS = ("Add", "Sub", "Sum", "Exp", "Sigmoid", "Softplus")
_BODIES = ("If", "Loop", "Scan")
_RECURRENT = ("LSTM", "GRU", "RNN")


def too_fine(network: Network, ranges: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """Reasons by value, for activations whose range, seen in calibration, 8 bits would spoil."""
    kept: dict[str, str] = {}
    for value in network.activations():
        if not network.can_be_int8(value):
            kept[value] = "its type is neither float32 nor float16"
        elif value in network.captured:
            kept[value] = "the body of an If, Loop or Scan reads it"
        elif value not in ranges:
            kept[value] = "the samples gave it no values"
        elif not all(map(math.isfinite, ranges[value])):
            kept[value] = "it was infinite or not a number"
        elif max(map(abs, ranges[value])) > _FLOAT16_MOST:
            kept[value] = (f"it goes from {ranges[value][0]:.4g} to {ranges[value][1]:.4g}, beyond float16, as "
                           "masks do")
    for value in _divisors(network, ranges):
        kept.setdefault(value, "it is divided by, or its logarithm taken, and in 8 bits its least value would be 0")
    return kept


def _divisors(network: Network, ranges: Mapping[str, tuple[float, float]]) -> list[str]:
    """Values that are divided by, or given to a logarithm, with what they are made of, where rounding to 8 bits
    gives a 0 that the samples had not."""
    open_ends = [node.input[1] for node in network.nodes if node.op_type == "Div"]
    open_ends += [node.input[0] for node in network.nodes if node.op_type in ("Reciprocal", "Log")]
    found: list[str] = []
    while open_ends:
        value = open_ends.pop()
        if value in found or value not in ranges or not _rounds_to_zero(*ranges[value]):
            continue
        found.append(value)
        node = network.producer.get(value)
        if node is not None and node.op_type not in _ENDS:
            open_ends += node.input
    return found


def _rounds_to_zero(least: float, most: float) -> bool:
    if least <= 0 <= most:
        return False
    return min(abs(least), abs(most)) < max(abs(least), abs(most)) / _STEPS / 2


def remaining(network: Network, quantized: Network, kept: Mapping[str, str], custom: Iterable[str]) -> list[str]:
    """A text for everything of `network` that is float in `quantized`, in order."""
    own = set(custom)
    texts = [f"{node_text(node)}, a custom operator, between int8 values" for node in network.nodes
             if node.op_type in own]
    texts += [f"the body of {node_text(node)}, between int8 values" for node in network.nodes
              if node.op_type in _BODIES]
    texts += [f"{node_text(node)}, a recurrent operator, between int8 values" for node in network.nodes
              if node.op_type in _RECURRENT]
    return texts + [_value_text(network, value, kept.get(value, "its range is not known"))
                    for value in network.activations() if _is_float(quantized, value)]


def _is_float(quantized: Network, value: str) -> bool:
    """Whether the value is there, and anything but a QuantizeLinear gets it as it was computed."""
    node = quantized.producer.get(value)
    if (node is None and value not in quantized.inputs) or (node and node.op_type == "DequantizeLinear"):
        return False
    readers = quantized.readers.get(value, [])
    return value in quantized.outputs or value in quantized.captured or any(
        reader.op_type != "QuantizeLinear" for reader in readers)


def _value_text(network: Network, value: str, reason: str) -> str:
    node = network.producer.get(value)
    what = "output" if value in network.outputs else "input" if node is None else "value"
    made = f" of {node_text(node, value)}" if node is not None else ""
    return f"{what} {value!r}{made}: {reason}"
