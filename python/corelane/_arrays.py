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
          16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz",
          21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2"}
_DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
           9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64"}
# Types that numpy has where the program has imported ml_dtypes; it holds an element of 4 and 2 bits in a byte.
_ML_DTYPES = {16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
              21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2"}
_PACKED = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
STRING = 8
_NUMBERS = {name: number for known in (_DTYPES, _ML_DTYPES) for number, name in known.items()}


def type_name(number: int) -> str:
    """'tensor(float)' for 1."""
    return f"tensor({_NAMES.get(number, 'undefined')})"


def number_named(type_text: str) -> int:
    """1 for 'tensor(float)'; 0 for another text."""
    return next((number for number, text in _NAMES.items() if type_text == f"tensor({text})"), 0)


def number_beyond_numpy(type_text: str) -> int:
    """17 for 'tensor(float8e4m3fn)'; 0 for a type whose number a plain numpy array says."""
    number = number_named(type_text)
    return number if number in _ML_DTYPES else 0


def dtype_of(number: int) -> np.dtype | None:
    """numpy's element type; None where it has none. Of a type of ml_dtypes the bits, where the program has not
    imported that; of float8e4m3fn always, as onnxruntime has it."""
    if number in _ML_DTYPES:
        bits = np.dtype("uint16" if number == 16 else "uint8")
        ml_dtypes = sys.modules.get("ml_dtypes") if number != 17 else None
        found = getattr(ml_dtypes, _ML_DTYPES[number], None)
        return bits if found is None else np.dtype(found)
    name = _DTYPES.get(number)
    return None if name is None else np.dtype(name)


def packed_bytes(number: int, count: int) -> int | None:
    """Bytes of `count` elements of 4 or 2 bits, as onnxruntime holds them; None for other types."""
    return -(-count * _PACKED[number] // 8) if number in _PACKED else None


def unpacked(memory: np.ndarray, number: int, shape) -> np.ndarray:
    """The elements of 4 or 2 bits in the first of these bytes, the first in the low bits: a copy, an element a
    byte."""
    bits, count = _PACKED[number], math.prod(shape)
    used = np.frombuffer(np.ascontiguousarray(memory).tobytes(), np.uint8)[:packed_bytes(number, count)]
    parts = [used >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(-1)[:count].reshape(shape).view(dtype_of(number))


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
    """An array over memory that the caller vouches for, or that lives as long as `owner`, which it keeps; of
    elements of 4 and 2 bits a copy."""
    dtype = dtype_of(number)
    if dtype is None:
        raise RuntimeError(f"numpy has no element type for {type_name(number)}")
    count = math.prod(shape)
    if count < 0 or (count and not address):
        raise RuntimeError(f"no memory of shape {shape} at address {address}")
    size = packed_bytes(number, count)
    memory = (ctypes.c_char * (count * dtype.itemsize if size is None else size)).from_address(address)
    memory.owner = owner
    if size is not None:
        return unpacked(np.frombuffer(memory, np.uint8), number, shape)
    return np.frombuffer(memory, dtype, count).reshape(shape) if count else np.empty(shape, dtype)


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
    inner, number = getattr(value, "_array", None), 0
    if inner is not None:
        number = value._type if value._type in _ML_DTYPES else 0
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
    number = number or (_NUMBERS[dtype.name] if dtype.name in _ML_DTYPES.values() else 0)
    if number:
        return np.ascontiguousarray(value).view(np.uint16 if number == 16 else np.uint8), number
    if dtype.kind in "OUS":
        raise StatusError(Code.TYPE_MISMATCH, f"input {name!r}: expected {type_name(expected)}, given an "
                                              f"array of {dtype}")
    if not value.flags.c_contiguous:
        value = np.ascontiguousarray(value)
    return value, 0


def strings_of(value, name: str, type_text: str):
    """(shape, list of str or bytes) of an array or nested list of strings; other objects as str() shows them, as
    onnxruntime has it. StatusError (TYPE_MISMATCH) for numbers."""
    array = getattr(value, "_array", value)
    if not isinstance(array, np.ndarray):
        array = np.asarray(array, dtype=object)  # Arrays of str would lose zeros at the end.
    if array.dtype.kind == "O":
        return array.shape, [item if isinstance(item, str) else str(item) for item in array.ravel().tolist()]
    if array.dtype.kind not in "USTV" or (array.dtype.kind == "V" and array.dtype.type is not np.void):
        raise StatusError(Code.TYPE_MISMATCH, f"input {name!r} is a {type_text}, given an array of {array.dtype}",
                          {"input": name, "given": str(array.dtype), "allowed": type_text})
    texts = array.ravel().tolist()
    return array.shape, [text.rstrip(b"\0") for text in texts] if array.dtype.kind == "V" else texts


def string_array(texts: list, shape: tuple) -> np.ndarray:
    """An array of str objects, as onnxruntime gives string tensors."""
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape)


# The native module imports nothing of the package: it is handed what it calls.
_native.connect(StatusError, coerce, dtype_of, strings_of, string_array)
