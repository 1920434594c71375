"""OrtValue and the small classes that describe inputs, outputs and models."""

from __future__ import annotations

import copy
from typing import Any, Sequence

import numpy as np

from .. import _arrays
from .._errors import NotImplemented as NotSupported
from .device_value import DEVICES, DeviceMemory, Slot, check_layout
from .dlpack import array_of
from .memory import check_device
from .sparse import SparseTensor


class OrtValue:
    """A tensor in memory. It shares the memory of the numpy array it was made from; numpy() is a view.

    With an RKNN provider also memory of the session's device, for the input or output `name` of `session`:
    device_type "rknpu2" (or "rknpu3"), io_kind "input" or "output". Its dimensions are those of get_inputs() or
    get_outputs(); layout "native" or "nhwc" says that channels of a given array may be last. numpy() copies it.
    RuntimeError for names, shapes and types that the session does not have."""

    __slots__ = ("_array", "_type", "_sparse", "_device", "__weakref__")

    def __init__(self, array: np.ndarray, numpy_type: int = 0):
        if isinstance(array, (list, dict, type(None))):
            raise NotSupported("an OrtValue holds a tensor; run() takes and gives sequences, maps and optionals as "
                               "lists, dicts and None")
        self._array = array
        self._device: DeviceMemory | None = None
        strings = array.dtype.kind in "OUST"
        self._type = numpy_type or (_arrays.STRING if strings else _arrays.number_of(array.dtype))
        self._sparse: SparseTensor | None = None

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: np.ndarray, /, device_type: str = "cpu",
                            device_id: int = 0, vendor_id: int = -1, *, name: str | None = None,
                            session: Any = None, io_kind: str | None = None, layout: str = "onnx",
                            sync: bool = True) -> "OrtValue":
        """Shares the array's memory; a copy where the array is not contiguous. On a session's device a copy, in
        the session's element type."""
        if device_type in DEVICES:
            slot = Slot(session, name, io_kind, (device_type, device_id))
            given = slot.in_order(np.asarray(numpy_obj), layout)
            made = cls._on_device(slot, given.shape, layout)
            made._array[...] = given
            return made
        check_device(device_type, device_id)
        array = np.asarray(numpy_obj)
        if not array.dtype.isnative:
            raise RuntimeError(f"byte order of {array.dtype.str!r} is not this machine's")
        return cls(array if array.flags.c_contiguous else np.ascontiguousarray(array))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> "OrtValue":
        """For types that numpy lacks: the array holds their bits. Of 4 and 2 bits an array of ml_dtypes, or bytes
        of which the first hold all elements, packed as onnxruntime reads them."""
        array = np.ascontiguousarray(data)
        wanted = _arrays.dtype_of(onnx_element_type)
        if _arrays.packed_bytes(onnx_element_type, 0) is not None and array.dtype in (np.uint8, np.int8):
            return cls(_arrays.unpacked(array, onnx_element_type, array.shape), onnx_element_type)
        if wanted is None or wanted.itemsize != array.dtype.itemsize:
            raise ValueError(f"ONNX type {onnx_element_type} and numpy type {array.dtype} differ in size")
        return cls(array.view(wanted), onnx_element_type)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0, vendor_id: int = -1, memory_info: Any = None, *,
                                     name: str | None = None, session: Any = None, io_kind: str | None = None,
                                     layout: str = "native", mem_flags: Any = "cacheable") -> "OrtValue":
        """Fresh memory, all zeros. memory_info: an OrtMemoryInfo, instead of device_type and device_id.
        mem_flags: kept, and without effect."""
        if memory_info is not None:
            device_type, device_id = memory_info.name, memory_info.device_id
        if device_type in DEVICES:
            slot = Slot(session, name, io_kind, (device_type, device_id))
            slot.check_type(element_type)
            return cls._on_device(slot, shape, layout, mem_flags)
        check_device(device_type, device_id)
        number = _arrays.number_of(element_type)
        dtype = _arrays.dtype_of(number)
        if dtype is None:
            raise NotSupported(f"no memory for ONNX type {number}")
        return cls(np.zeros(tuple(shape), dtype), number)

    @classmethod
    def ortvalue_from_dmabuf(cls, fd: int, shape: Sequence[int], element_type: Any, *, size: int, offset: int = 0,
                             virt_addr: int | None = None, session: Any = None, name: str | None = None,
                             io_kind: str | None = None, layout: str = "native") -> "OrtValue":
        """Over the memory of a descriptor (dma-buf, memfd or file), mapped here, or by the caller at
        `virt_addr`: what the caller writes there is what the session reads. The descriptor stays the caller's."""
        slot = Slot(session, name, io_kind, (DEVICES[0], 0))
        slot.check_type(element_type)
        try:
            return cls._on_device(slot, shape, layout, fd=int(fd), size=int(size), offset=int(offset),
                                  address=virt_addr)
        except (OSError, ValueError, OverflowError) as problem:
            raise RuntimeError(f"descriptor {fd} cannot be mapped, size {size}, offset {offset}: {problem}") from None

    @classmethod
    def _on_device(cls, slot: Slot, shape: Sequence[int], layout: str, mem_flags: Any = None,
                   **source: Any) -> "OrtValue":
        check_layout(layout, mem_flags)
        device = DeviceMemory(slot, slot.check_shape(shape), **source)
        made = cls(device.array, slot.number)
        made._device = device
        return made

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool = False, /) -> "OrtValue":
        """Shares the memory of an object with __dlpack__, or of a capsule, on the CPU."""
        return cls.ortvalue_from_numpy(array_of(data, is_bool_tensor))

    def to_dlpack(self) -> Any:
        """A capsule that shares the memory."""
        return self._array.__dlpack__()

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        given = np.asarray(self._array, dtype)
        shared = np.may_share_memory(given, self._array) or not given.size
        if copy is False and not shared:
            raise ValueError(f"an OrtValue of {self.data_type()} cannot be an array of {given.dtype} without "
                             "a copy")
        return given.copy() if copy and shared else given

    def numpy(self) -> np.ndarray:
        """A view of the memory; of a device's a copy."""
        return self._array.view() if self._device is None else self._array.copy()

    def shape(self) -> list[int]:
        """Sizes, the slowest dimension first."""
        return list(self._array.shape)

    def data_ptr(self) -> int:
        """The address of the memory. RuntimeError for elements of 4 and 2 bits, which lie in a byte each."""
        if _arrays.packed_bytes(self._type, 0) is not None:
            raise RuntimeError(f"an OrtValue of {self.data_type()} holds an element in each byte, not packed; "
                               "numpy() gives them")
        return self._array.ctypes.data

    def data_type(self) -> str:
        """Such as 'tensor(float)'."""
        return _arrays.type_name(self._type)

    def element_type(self) -> int:
        """The ONNX number of the element type."""
        return self._type

    def device_name(self) -> str:
        """'cpu', or the device that it was made on."""
        return "cpu" if self._device is None else self._device.slot.device

    def device_type(self) -> str:
        """device_name()."""
        return self.device_name()

    def device_id(self) -> int:
        """0."""
        return 0

    def memory_info(self) -> dict[str, Any]:
        """device_type and device_id; on a device also descriptor, size, address and layout of the memory."""
        return {"device_type": "cpu", "device_id": 0} if self._device is None else self._device.info()

    def sync_to_device(self) -> None:
        """The device reads the host's memory."""

    def sync_from_device(self) -> None:
        """The device writes the host's memory."""

    def is_tensor(self) -> bool:
        """False for a sparse one."""
        return self._sparse is None

    def is_sparse_tensor(self) -> bool:
        """Whether as_sparse_tensor() gives one."""
        return self._sparse is not None

    def is_tensor_sequence(self) -> bool:
        """False."""
        return False

    def has_value(self) -> bool:
        """True."""
        return True

    def tensor_size_in_bytes(self) -> int:
        """Bytes of the tensor."""
        packed = _arrays.packed_bytes(self._type, self._array.size)
        return self._array.nbytes if packed is None else packed

    def update_inplace(self, data: np.ndarray) -> None:
        """Overwrites the memory; RuntimeError for another type or number of elements."""
        given = np.asarray(data)
        if given.size != self._array.size or given.dtype != self._array.dtype:
            raise RuntimeError(f"The input array is {given.dtype} {list(given.shape)}, the OrtValue "
                               f"{self._array.dtype} {list(self._array.shape)}")
        self._array[...] = given.reshape(self._array.shape)

    def as_sparse_tensor(self) -> SparseTensor:
        """RuntimeError for a dense one."""
        if self._sparse is None:
            raise RuntimeError("this OrtValue is a dense tensor; is_sparse_tensor() tells")
        return self._sparse

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> "OrtValue":
        """Holds it; no session takes it."""
        made = cls(sparse_tensor.values())
        made._sparse = sparse_tensor
        return made

    def _get_c_value(self) -> "OrtValue":
        return self

    _ortvalue = property(_get_c_value)


class NodeArg:
    """An input or output: name, shape (a str or None where open) and type, such as 'tensor(float)'.

    layout is the order of the shape's dimensions, strides (in elements) are those of a contiguous array.
    Native inputs also have quant, and mean and std by channel (empty: none), which the option normalize
    applies. ranked: False where the shape, then [], may be any."""

    __slots__ = ("_name", "_shape", "_type", "ranked", "layout", "quant", "mean", "std")

    def __init__(self, description: dict, layout: str):
        self._name: str = description["name"]
        self._shape: tuple = tuple(description["shape"])
        self._type: str = description["value"] or _arrays.type_name(description["type"])
        self.ranked: bool = description["ranked"]
        self.layout = layout
        self.quant = description["quant"]
        self.mean: list[float] = description.get("mean", [])
        self.std: list[float] = description.get("std", [])

    @property
    def name(self) -> str:
        """The name of the input or output."""
        return self._name

    @property
    def shape(self) -> list:
        """Sizes; a str or None where a dimension is open."""
        return list(self._shape)

    @property
    def type(self) -> str:
        """Such as 'tensor(float)'."""
        return self._type

    def of_shape(self, shape: Sequence[int]) -> "NodeArg":
        """This one where it is not open, else one of that shape, in this one's order of dimensions."""
        if all(isinstance(d, int) for d in self._shape):
            return self
        sizes = tuple(shape)
        if len(sizes) == 4 and any(isinstance(d, int) and d != s for d, s in zip(self._shape, sizes)):
            sizes = (sizes[0], *sizes[2:], sizes[1])  # The list has the program's order, this one NHWC.
        made = copy.copy(self)
        made._shape = sizes
        return made

    @property
    def strides(self) -> list[int] | None:
        """In elements, of a contiguous array; None where a dimension is open."""
        if any(not isinstance(d, int) for d in self._shape):
            return None
        strides, step = [], 1
        for dim in reversed(self._shape):
            strides.insert(0, step)
            step *= dim
        return strides

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class ModelMetadata:
    """Metadata of a model: names, version and a dict of texts."""

    def __init__(self) -> None:
        self.custom_metadata_map: dict[str, str] = {}
        self.description = self.domain = self.graph_description = ""
        self.graph_name = self.producer_name = ""
        self.version = 9223372036854775807  # onnxruntime's value for "not given".
