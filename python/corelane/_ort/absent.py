"""Names of onnxruntime that exist so that code can import them, and raise NotImplemented when used."""

from __future__ import annotations

import enum
from typing import Any

from .._errors import NotImplemented as NotSupported


def _refused(name: str, *class_methods: str) -> type:
    """A class that cannot be made, neither by its name nor by its class methods."""
    def refuse(self: Any, *_: Any, **__: Any) -> None:
        raise NotSupported(f"{name} is not served by corelane; docs/apis/python.md lists what is")

    return type(name, (), {"__init__": refuse, "__module__": "corelane", "__doc__": "Not served: raises.",
                           **{method: classmethod(refuse) for method in class_methods}})


LoraAdapter = _refused("LoraAdapter", "Load")
ModelCompiler = _refused("ModelCompiler")
OrtEpDevice = _refused("OrtEpDevice")
OrtHardwareDevice = _refused("OrtHardwareDevice")
OrtSyncStream = _refused("OrtSyncStream")


class OrtCompileApiFlags(enum.IntFlag):
    """onnxruntime's numbers; ModelCompiler is not served."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class OrtHardwareDeviceType(enum.IntEnum):
    """onnxruntime's numbers; OrtHardwareDevice is not served."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtExecutionProviderDevicePolicy(enum.IntEnum):
    """onnxruntime's numbers; device policies are not served."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


def get_ep_devices() -> list:
    """No devices of plug-in providers."""
    return []


def _refuse(*_: Any, **__: Any) -> None:
    raise NotSupported("this function is not served by corelane; docs/apis/python.md lists what is")


register_execution_provider_library = unregister_execution_provider_library = _refuse


def create_and_register_allocator(mem_info: Any, arena_cfg: Any = None) -> None:
    """Accepted and without effect: memory is the device's."""


def create_and_register_allocator_v2(provider_type: str, mem_info: Any, options: Any,
                                     arena_cfg: Any = None) -> None:
    """Accepted and without effect: memory is the device's."""


def copy_tensors(src: list, dst: list, stream: Any = None) -> None:
    """Copies OrtValues into others of the same shapes."""
    if len(src) != len(dst):
        raise ValueError(f"{len(src)} sources and {len(dst)} destinations")
    for one, other in zip(src, dst):
        other.update_inplace(one.numpy())


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    """Accepted and ignored: threads are the device's."""


def has_collective_ops() -> bool:
    """False: there are none."""
    return False
