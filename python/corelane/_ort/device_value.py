"""Memory of a session's inputs and outputs on its device, as users of RKNN's chips hold it in OrtValues.

The device of this package computes in the host's memory, which sessions read and write in place; so such
memory is shared memory with a descriptor of its own, and there is nothing to synchronize."""

from __future__ import annotations

import math
import mmap
import os
from typing import Any, Sequence

import numpy as np

from .. import _arrays
from .._printable import printable

DEVICES = ("rknpu2", "rknpu3")
_LAYOUTS = ("onnx", "native", "nhwc")
_FLAGS = ("cacheable", "non_cacheable", "uncached", "default", "try_sram")
_FORMATS = {"NCHW": 0, "NHWC": 1}  # rknn_tensor_format; 3 is undefined.


def check_layout(layout: str, mem_flags: Any = None) -> None:
    """RuntimeError for a layout, or flags of memory, that are not known."""
    if layout not in _LAYOUTS:
        raise RuntimeError(f"layout {layout!r} is none of {', '.join(_LAYOUTS)}")
    number = isinstance(mem_flags, int) and not isinstance(mem_flags, bool) and mem_flags >= 0
    if mem_flags is not None and mem_flags not in _FLAGS and not number:
        raise RuntimeError(f"invalid mem_flags {mem_flags!r}; known are {', '.join(_FLAGS)}, and RKNN's numbers")


class Slot:
    """An input or output of a session that memory is made for."""

    def __init__(self, session: Any, name: Any, io_kind: Any, device: tuple[str, int]):
        self.device, device_id = device
        if session is None or name is None or io_kind is None:
            raise RuntimeError(f"memory on {self.device!r} belongs to an input or output: session, name and io_kind "
                               "('input' or 'output') are needed")
        if device_id != 0:
            raise RuntimeError(f"RKNN supports device_id 0 only, {device_id} was given")
        if io_kind not in ("input", "output"):
            raise RuntimeError(f"io_kind must be 'input' or 'output', not {io_kind!r}")
        if session._strict:
            raise RuntimeError(f"memory on {self.device!r} needs a session with an RKNN provider; 'cpu' is the memory "
                               "of this one")
        nodes = session._inputs if io_kind == "input" else session._outputs
        self.node = next((node for node in nodes if node.name == name), None)
        if self.node is None:
            raise RuntimeError(printable(f"Unknown {io_kind} name: {name}; the model has "
                                         + ", ".join(node.name for node in nodes)))
        self.session, self.kind = session, io_kind
        self.number = _arrays.number_named(self.node.type)

    def check_shape(self, given: Sequence[int]) -> list[int]:
        """RuntimeError for another shape than the session has."""
        given, wanted = [int(d) for d in given], self.node.shape
        if self._fits(given, wanted):
            return given
        remedy = "; give the session the option layout='nhwc'" if self._channels_last(given) else ""
        raise RuntimeError(f"OrtValue for {self.kind} {self.node.name!r} shape mismatch: expected {wanted}, "
                           f"got {given}{remedy}")

    def in_order(self, array: np.ndarray, layout: str) -> np.ndarray:
        """The array in the session's order of dimensions, where its layout says that channels are last."""
        turned = layout != "onnx" and not self._fits(array.shape, self.node.shape)
        return array.transpose(0, 3, 1, 2) if turned and self._channels_last(array.shape) else array

    def _channels_last(self, given: Sequence[int]) -> bool:
        return (len(given) == 4 and self.node.layout == "NCHW"
                and self._fits([given[0], given[3], given[1], given[2]], self.node.shape))

    @staticmethod
    def _fits(given: Sequence[int], wanted: Sequence) -> bool:
        return len(given) == len(wanted) and all(
            not isinstance(size, int) or size == d for d, size in zip(given, wanted))

    def check_type(self, element_type: Any) -> None:
        """RuntimeError for another element type than the session has."""
        if _arrays.number_of(element_type) != self.number:
            raise RuntimeError(f"OrtValue for {self.kind} {self.node.name!r} element type mismatch: expected "
                               f"{self.node.type}, got {_arrays.type_name(_arrays.number_of(element_type))}")


class DeviceMemory:
    """Shared memory, and the array that a session reads or writes. fd: memory of the caller's, from
    `offset` on, at `address` where the caller has mapped it already; else fresh memory, all zeros."""

    def __init__(self, slot: Slot, shape: Sequence[int], fd: int | None = None, size: int = 0, offset: int = 0,
                 address: int | None = None):
        self.slot, self.imported = slot, fd is not None
        dtype = _arrays.dtype_of(slot.number)
        if dtype is None:
            raise RuntimeError(f"no memory for {slot.node.type}")
        needed = math.prod(shape) * dtype.itemsize
        if self.imported and (fd < 0 or offset < 0):
            raise RuntimeError(f"{slot.kind} {slot.node.name!r}: descriptor {fd} and offset {offset} name no memory; "
                               "both are 0 or more")
        if self.imported and size - offset < needed:
            raise RuntimeError(f"{slot.kind} {slot.node.name!r} takes {needed} bytes from offset {offset} on, the "
                               f"size given is {size}")
        self.size, self.offset = (size, offset) if self.imported else (needed, 0)
        self.fd = fd if fd is not None else os.memfd_create("corelane", os.MFD_CLOEXEC)
        if not self.imported:
            os.ftruncate(self.fd, max(needed, 1))
        if address is not None:
            self.array = _arrays.memory_at(address + offset, slot.number, list(shape))
        else:
            begin = self.offset % mmap.ALLOCATIONGRANULARITY
            mapped = mmap.mmap(self.fd, max(needed, 1) + begin, offset=self.offset - begin)
            self.array = np.frombuffer(mapped, dtype, math.prod(shape), begin).reshape(shape)

    def __del__(self) -> None:
        if not getattr(self, "imported", True) and hasattr(self, "fd"):
            os.close(self.fd)  # The mapping has a descriptor of its own.

    def info(self) -> dict[str, Any]:
        """What OrtValue.memory_info() gives."""
        layout = self.slot.node.layout
        return {"device_type": self.slot.device, "device_id": 0, "size": self.size, "fd": self.fd,
                "offset": self.offset, "virt_addr": self.array.ctypes.data, "import_count": 1,
                "dmabuf_backed": self.imported, "attr_size": self.array.nbytes,
                "size_with_stride": self.array.nbytes, "w_stride": 0, "h_stride": 0,
                "fmt": _FORMATS.get(layout, 3), "pass_through": False, "aligned_size": self.array.nbytes,
                "core_id": -1, "layout": layout, "strides": list(self.slot.node.strides or [])}
