"""Inputs as RKNN users give them, converted to what a session takes: 4-D ones as N, H, W, C."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from .log import Log, UsageError

FORMATS = ("nhwc", "nchw")
TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float16", "float32", "bool")


def prepare(inputs: Any, descriptions: Sequence[dict], data_type: Any, data_format: Any, log: Log) -> list:
    """One array for each input. UsageError for anything that cannot be converted."""
    if not isinstance(inputs, (list, tuple)):
        raise UsageError("inputs: expected a list with one array for each input, given "
                         f"{type(inputs).__name__}; put a single array into a list, [array]")
    if len(inputs) != len(descriptions):
        names = ", ".join(repr(d["name"]) for d in descriptions)
        raise UsageError(f"inputs: the model has {len(descriptions)} ({names}), {len(inputs)} were given")
    types = _per_input("data_type", data_type, len(inputs), TYPES)
    formats = _per_input("data_format", data_format, len(inputs), FORMATS)
    return [_array(value, desc, kind, form, log)
            for value, desc, kind, form in zip(inputs, descriptions, types, formats)]


def flags(inputs_pass_through: Any, count: int) -> list[bool]:
    """A flag for each input, from a list of 0 and 1; None stands for none."""
    if inputs_pass_through is None:
        return [False] * count
    if isinstance(inputs_pass_through, np.ndarray):
        inputs_pass_through = inputs_pass_through.tolist()
    if not isinstance(inputs_pass_through, (list, tuple)) or len(inputs_pass_through) != count or any(
            flag not in (0, 1) for flag in inputs_pass_through):
        raise UsageError(f"inputs_pass_through: expected a list of {count} (one for each input) of 0 or 1, "
                         f"given {inputs_pass_through!r}")
    return [bool(flag) for flag in inputs_pass_through]


def _per_input(name: str, given: Any, count: int, allowed: Sequence[str]) -> list:
    if given is None:
        return [None] * count
    values = [given] * count if isinstance(given, str) else list(given)
    if len(values) != count:
        raise UsageError(f"{name}: {len(values)} for {count} inputs; give one for each, or one text for all")
    for value in values:
        if value is not None and (not isinstance(value, str) or value.lower() not in allowed):
            raise UsageError(f"{name}: {value!r} is none of {', '.join(allowed)}")
    return [None if value is None else value.lower() for value in values]


def _array(value: Any, desc: dict, kind: str | None, form: str | None, log: Log) -> np.ndarray:
    name = desc["name"]
    if isinstance(value, (str, bytes)) or value is None:
        raise UsageError(f"input {name!r}: expected a numpy array, given {type(value).__name__}")
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise UsageError(f"input {name!r}: expected numbers, given an array of {array.dtype}")
    if kind is not None and array.dtype != kind:
        array = array.astype(kind)
    elif array.dtype == np.float64:
        log.warning("inference", f"input {name!r} is float64 and is converted to float32; give float32")
        array = array.astype(np.float32)
    if len(desc["shape"]) != 4:
        return array
    if array.ndim == 3:
        array = array[np.newaxis]
    if form == "nchw" and array.ndim == 4:
        array = array.transpose(0, 2, 3, 1)
    return array


def hint(arrays: Sequence[np.ndarray], descriptions: Sequence[dict]) -> str:
    """The remedy where shapes do not fit because N, C, H, W was given, else an empty text."""
    for array, desc in zip(arrays, descriptions):
        shape = desc["shape"]
        if len(shape) == 4 and array.ndim == 4:
            channels_first = [shape[0], shape[3], shape[1], shape[2]]
            if all(not isinstance(d, int) or d == n for d, n in zip(channels_first, array.shape)):
                return f"; for N, C, H, W give data_format={['nchw'] * len(descriptions)}"
    return ""


def _real_values(array: np.ndarray, quant: dict) -> np.ndarray:
    """The reals that integers of a quantized input stand for. Of an array that has not the shape it should have, the
    session says so."""
    scales, zeros = np.asarray(quant["scales"], np.float32), np.asarray(quant["zero_points"] or [0], np.float32)
    if quant["axis"] >= 0:
        # The axis is the model's, whose pictures are N, C, H, W.
        axis = (0, 3, 1, 2)[quant["axis"]] if array.ndim == 4 else quant["axis"]
        if axis >= array.ndim or array.shape[axis] != scales.size:
            return array
        along = [1] * array.ndim
        along[axis] = scales.size
        scales, zeros = scales.reshape(along), zeros.reshape(along)
    return (array.astype(np.float32) - zeros) * scales


def as_computed(array: np.ndarray, passed: bool, description: dict) -> np.ndarray:
    """An input with the values that the network computes with: normalised, or passed through (integers of
    a quantized input as real numbers)."""
    if passed:
        quant = description["quant"]
        if quant is None or array.dtype.kind not in "iu":
            return array
        return _real_values(array, quant)
    if len(description["shape"]) != 4 or not (description["mean"] or description["std"]):
        return array
    mean = np.asarray(description["mean"] or [0], np.float32)
    std = np.asarray(description["std"] or [1], np.float32)
    return (array.astype(np.float32) - mean) / std
