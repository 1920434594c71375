"""DLPack capsules, which carry memory between libraries: for numpy, which wants an object with methods."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_NAME = b"dltensor"
_UNSIGNED = 1  # Of DLDataType.


class _Tensor(ctypes.Structure):
    """The head of DLManagedTensor, as dlpack.h lays it out."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16)]


class _Capsule:
    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        head = _head(self._capsule)
        return head.device_type, head.device_id


def _head(capsule: Any) -> _Tensor:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _Tensor.from_address(pointer(capsule, _NAME))  # ValueError for another capsule, or a used one.


def _writable(array: np.ndarray) -> np.ndarray:
    """The same memory: a capsule without a version cannot say that it is read-only, which numpy takes it for."""
    memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    memory.owner = array
    return np.frombuffer(memory, array.dtype).reshape(array.shape)


def array_of(data: Any, is_bool: bool = False) -> np.ndarray:
    """Over the memory of a capsule, or of an object with __dlpack__; on the CPU alone. is_bool: bytes stand
    for truth values, which capsules of some libraries do not say."""
    is_capsule = not hasattr(data, "__dlpack__")
    array = np.from_dlpack(_Capsule(data) if is_capsule else data)
    if is_capsule and array.size and array.flags.c_contiguous and not array.flags.writeable:
        array = _writable(array)
    return array.view(np.bool_) if is_bool and array.dtype == np.uint8 else array


def is_dlpack_uint8_tensor(capsule: Any) -> bool:
    """Whether a capsule holds bytes, which may stand for truth values."""
    head = _head(capsule)
    return head.code == _UNSIGNED and head.bits == 8
