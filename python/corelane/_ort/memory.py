"""Where memory lies, as onnxruntime names it. Sessions of this package read and write the host's alone."""

from __future__ import annotations

import enum
from typing import Any, Mapping

from .settings import OrtAllocatorType, OrtMemType

_HOST = ("cpu", "host")
_KINDS = {"cpu": 0, "host": 0, "cuda": 1, "gpu": 1, "fpga": 2, "npu": 3, "dml": 4}


def check_device(device_type: Any, device_id: int = 0) -> None:
    """RuntimeError for anything but the memory of the host, by name or as an OrtDevice."""
    if isinstance(device_type, OrtDevice):
        device_type, device_id = device_type.name(), device_type.device_id()
    if str(device_type).lower() not in _HOST:
        raise RuntimeError(f"Unsupported device type: {device_type}; memory of sessions is 'cpu'")
    if device_id != 0:
        raise RuntimeError(f"device_id is {device_id}; 0 is the only one")


def _name_of(kind: int) -> str:
    return next((name for name, number in _KINDS.items() if number == kind), str(kind))


class OrtDeviceVendorId(enum.IntEnum):
    """onnxruntime's numbers of makers, which are those of PCI."""

    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtDeviceMemoryType(enum.IntEnum):
    """Of OrtMemoryInfo."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """Of OrtMemoryInfo.create_v2()."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtDevice:
    """A device by its kind and number. Values are made on "cpu" alone; the others can be named. As in
    onnxruntime's inner class three numbers are kind, memory and device: OrtDevice(OrtDevice.cpu(),
    OrtDevice.default_memory(), 0)."""

    def __init__(self, device_type: Any = "cpu", device_id: int = 0, vendor_id: int = -1):
        if isinstance(device_type, int):
            device_type, device_id, vendor_id = _name_of(device_type), max(vendor_id, 0), -1
        name = str(device_type).lower()
        if name not in _KINDS:
            raise RuntimeError(f"Unsupported device type: {device_type}; known are {', '.join(_KINDS)}")
        self._kind, self._id = _KINDS[name], device_id
        maker = OrtDeviceVendorId.NVIDIA if name == "cuda" else OrtDeviceVendorId.NONE
        self._vendor = maker if vendor_id < 0 else vendor_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        """By name, such as "cpu"; RuntimeError for a name that onnxruntime does not know."""
        return OrtDevice(ort_device_name, device_id, vendor_id)

    @staticmethod
    def cpu() -> int:
        """The number of the kind."""
        return 0

    @staticmethod
    def cuda() -> int:
        """The number of the kind."""
        return 1

    @staticmethod
    def default_memory() -> int:
        """The number of the kind."""
        return 0

    def _get_c_device(self) -> "OrtDevice":
        """onnxruntime's inner object, which this one is, too."""
        return self

    def name(self) -> str:
        """Of the kind: "cpu", "cuda", ..."""
        return _name_of(self._kind)

    def device_type(self) -> int:
        """The number of the kind; 0 is "cpu"."""
        return self._kind

    def device_id(self) -> int:
        """As given."""
        return self._id

    def device_vendor_id(self) -> int:
        """As given; by default that of the kind."""
        return self._vendor

    def device_mem_type(self) -> int:
        """0."""
        return 0


class OrtMemoryInfo:
    """Name and kind of an allocator's memory, as given."""

    def __init__(self, name: str, allocator_type: OrtAllocatorType = OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
                 device_id: int = 0, mem_type: OrtMemType = OrtMemType.DEFAULT):
        self.name, self.allocator_type = name, allocator_type
        self.device_id, self.mem_type = device_id, mem_type
        self.device_mem_type = OrtDeviceMemoryType.DEFAULT
        self.device_vendor_id = 0

    @staticmethod
    def create_v2(name: str, device_type: OrtMemoryInfoDeviceType, vendor_id: int, device_id: int,
                  device_mem_type: OrtDeviceMemoryType, alignment: int,
                  allocator_type: OrtAllocatorType) -> "OrtMemoryInfo":
        """onnxruntime's longer form; kind and alignment are not kept."""
        made = OrtMemoryInfo(name, allocator_type, device_id)
        made.device_mem_type, made.device_vendor_id = device_mem_type, vendor_id
        return made


class OrtArenaCfg:
    """Sizes of an arena, from four numbers or a dict. Kept and without effect: there is no arena."""

    _NAMES = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk",
              "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes")

    def __init__(self, *sizes: Any):
        self.max_mem = 0
        self.arena_extend_strategy = self.initial_chunk_size_bytes = self.max_dead_bytes_per_chunk = -1
        self.initial_growth_chunk_size_bytes = self.max_power_of_two_extend_bytes = -1
        if len(sizes) not in (1, 4):
            raise TypeError(f"OrtArenaCfg takes {', '.join(self._NAMES[:4])}, or a dict; "
                            f"given {len(sizes)} values")
        given = sizes[0] if isinstance(sizes[0], Mapping) else dict(zip(self._NAMES, sizes))
        for name, value in given.items():
            if name not in self._NAMES:
                raise RuntimeError(f"Invalid OrtArenaCfg option: {name}; known are {', '.join(self._NAMES)}")
            setattr(self, name, int(value))
