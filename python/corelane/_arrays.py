"""Element types by their ONNX numbers, and values that are not plain arrays yet."""

from __future__ import annotations

import ctypes
import math
import sys

import numpy as np

from . import _native
from ._errors import StatusError
from ._native import Code

_NAMES = {1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
          8: "string", 9: "bool", 10: "float16", 11: "double", 12: "uint32", 13: "uint64",
          16: "bfloat16", 21: "uint4", 22: "int4"}
_DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
           9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64"}
_NUMBERS = {name: number for number, name in _DTYPES.items()} | {"bfloat16": 16}


def type_name(number: int) -> str:
    """'tensor(float)' for 1."""
    return f"tensor({_NAMES.get(number, 'undefined')})"


def number_named(type_text: str) -> int:
    """1 for 'tensor(float)'; 0 for another text."""
    return next((number for number, text in _NAMES.items() if type_text == f"tensor({text})"), 0)


def dtype_of(number: int) -> np.dtype | None:
    """numpy's element type; None where it has none."""
    if number == 16:
        return _bfloat16()
    name = _DTYPES.get(number)
    return None if name is None else np.dtype(name)


def number_of(element_type) -> int:
    """The ONNX number of a number, a numpy type, a dtype or its name."""
    if isinstance(element_type, int):
        return element_type
    name = np.dtype(element_type).name
    if name not in _NUMBERS:
        raise RuntimeError(f"numpy type {name} is not an element type of a tensor; one of "
                           f"{', '.join(_NUMBERS)} is")
    return _NUMBERS[name]


def memory_at(address: int, number: int, shape: list[int], owner=None) -> np.ndarray:
    """An array over memory that the caller vouches for, or that lives as long as `owner`, which it keeps."""
    dtype = dtype_of(number)
    if dtype is None:
        raise RuntimeError(f"numpy has no element type for {type_name(number)}")
    count = math.prod(shape)
    if count < 0 or (count and not address):
        raise RuntimeError(f"no memory of shape {shape} at address {address}")
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    memory.owner = owner
    return np.frombuffer(memory, dtype, count).reshape(shape) if count else np.empty(shape, dtype)


def _bfloat16():
    """bfloat16 where the program has imported ml_dtypes; its bits otherwise."""
    ml_dtypes = sys.modules.get("ml_dtypes")
    return np.dtype(ml_dtypes.bfloat16) if ml_dtypes is not None else np.dtype("uint16")


def from_list(value, name: str, type_text: str) -> np.ndarray:
    """An array of a list, of the type of an input such as 'tensor(float)'."""
    try:
        return np.asarray(value, dtype=dtype_of(number_named(type_text)))
    except (ValueError, TypeError, OverflowError) as problem:
        raise RuntimeError(f"Could not create tensor from given input list: input {name!r} is "
                           f"{type_text}, and {problem}") from None


def coerce(value, name: str, expected: int, rank: int = -1):
    """(array that shows its memory, ONNX number where numpy's format does not say it, else 0).

    The native module calls it for values whose memory it cannot read: OrtValues, nested lists, arrays with
    strides. Only lists, which have no element type, are given one."""
    inner = getattr(value, "_array", None)
    if inner is not None:
        value = inner
    if not isinstance(value, np.ndarray):
        if isinstance(value, np.generic):
            value = np.asarray(value)
        elif hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
            value = np.from_dlpack(value) if not hasattr(value, "__array__") else np.asarray(value)
        elif hasattr(value, "numpy") and hasattr(value, "data_ptr"):  # onnxruntime's inner OrtValue.
            value = value.numpy()
        elif isinstance(value, (list, tuple, int, float, bool)):
            value = from_list(value, name, type_name(expected))
            if rank == 0 and value.shape == (1,):  # The only way to write it as a list, as in onnxruntime.
                value = value.reshape(())
        else:
            raise TypeError(f"input {name!r}: expected a numpy array, an OrtValue or a list, given "
                            f"{type(value).__name__}")
    dtype = value.dtype
    if dtype.byteorder not in "=|" and not dtype.isnative:
        raise RuntimeError(f"input {name!r}: byte order of {dtype.str!r} is not this machine's; "
                           "use .astype(dtype.newbyteorder('='))")
    if dtype.name == "bfloat16":
        return np.ascontiguousarray(value).view(np.uint16), 16
    if dtype.kind in "OUS":
        raise StatusError(Code.TYPE_MISMATCH, f"input {name!r}: string tensors are not supported; expected "
                                              f"numbers, given an array of {dtype}")
    if not value.flags.c_contiguous:
        value = np.ascontiguousarray(value)
    return value, 0


# The native module imports nothing of the package: it is handed what it calls.
_native.connect(StatusError, coerce, dtype_of)
