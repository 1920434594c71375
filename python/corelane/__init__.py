"""Corelane: onnxruntime's interface over a multi-core NPU, simulated on the CPU or real.

    import corelane as ort
    session = ort.InferenceSession("model.onnx", providers=["RKNPU2ExecutionProvider"],
                                   provider_options=[ort.make_provider_options(schedule=[0, 1, 2])])
    outputs = session.run(None, {"x": array})

Importing it starts no thread, opens no device and prints nothing.
"""

from . import _native
from . import capi  # noqa: F401 - onnxruntime.capi is reached as an attribute
from ._ort.absent import (LoraAdapter, ModelCompiler, OrtCompileApiFlags, OrtEpDevice,
                          OrtExecutionProviderDevicePolicy, OrtHardwareDevice, OrtHardwareDeviceType,
                          OrtSyncStream, copy_tensors, create_and_register_allocator,
                          create_and_register_allocator_v2, get_ep_devices, has_collective_ops,
                          register_execution_provider_library, set_global_thread_pool_sizes,
                          unregister_execution_provider_library)
from ._ort.adapters import AdapterFormat
from ._ort.binding import IOBinding
from ._compiling import compile as compile
from ._errors import Busy, Timeout
from ._ort.futures import RunFuture
from ._ort.memory import (OrtArenaCfg, OrtDevice, OrtDeviceMemoryType, OrtDeviceVendorId, OrtMemoryInfo,
                          OrtMemoryInfoDeviceType)
from ._ort.options import make_provider_options
from ._ort.providers import AVAILABLE as _AVAILABLE
from ._ort.session import InferenceSession
from ._ort.settings import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType,
                            OrtMemType, RunOptions, SessionOptions)
from ._ort.sparse import OrtSparseFormat, SparseTensor
from ._ort.values import ModelMetadata, NodeArg, OrtValue
from .capi import onnxruntime_inference_collection as _long_names  # noqa: F401 - reached as an attribute

__version__ = _native.version
SessionIOBinding = IOBinding


def get_available_providers() -> list:
    """Providers a session may name, in order of preference. A session that is given the list itself, or what a
    program left of it with the CPU's, follows the default rules: an RKNN provider counts when it is named."""
    return list(_AVAILABLE)


def get_all_providers() -> list:
    """As get_available_providers(): every provider of this build is available."""
    return list(_AVAILABLE)


def get_device() -> str:
    """'CPU', onnxruntime's name for where inputs and outputs lie."""
    return "CPU"


def get_version_string() -> str:
    """The version of Corelane."""
    return __version__


def get_build_info() -> str:
    """Name and version, in one line, with the words that programs look for in onnxruntime's."""
    return f"Corelane {__version__} Build Info: build type=Release"


def set_default_logger_severity(severity: int) -> None:
    """0 verbose, 1 info, 2 warning, 3 error, 4 fatal (nothing). RuntimeError for others."""
    if isinstance(severity, bool) or not hasattr(severity, "__index__"):
        raise TypeError(f"severity: expected an int, given {severity!r}")
    if severity not in (0, 1, 2, 3, 4):
        raise RuntimeError("Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal; "
                           f"{severity!r} was given")
    _native.set_log_level((4, 3, 2, 1, 0)[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted and ignored: severity decides."""


def set_seed(seed: int) -> None:
    """Accepted and ignored: no operator uses a random generator of Corelane."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory=None) -> None:
    """There is nothing to load."""


def print_debug_info() -> None:
    """Prints version and providers to stdout."""
    print(get_build_info())
    print("providers:", ", ".join(_AVAILABLE))


def enable_telemetry_events() -> None:
    """There is no telemetry."""


def disable_telemetry_events() -> None:
    """There is no telemetry."""


# What `import *` brings; without compile, which would hide the builtin.
__all__ = [
    "AdapterFormat", "Busy", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding",
    "InferenceSession", "LoraAdapter", "ModelCompiler", "ModelMetadata", "NodeArg", "OrtAllocatorType",
    "OrtArenaCfg", "OrtCompileApiFlags", "OrtDevice", "OrtDeviceMemoryType", "OrtDeviceVendorId",
    "OrtEpDevice", "OrtExecutionProviderDevicePolicy", "OrtHardwareDevice", "OrtHardwareDeviceType",
    "OrtMemType", "OrtMemoryInfo", "OrtMemoryInfoDeviceType", "OrtSparseFormat", "OrtSyncStream",
    "OrtValue", "RunFuture", "RunOptions", "SessionIOBinding", "SessionOptions", "SparseTensor", "Timeout",
    "copy_tensors", "create_and_register_allocator", "create_and_register_allocator_v2",
    "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers",
    "get_build_info", "get_device", "get_ep_devices", "get_version_string", "has_collective_ops",
    "make_provider_options", "preload_dlls", "print_debug_info", "register_execution_provider_library",
    "set_default_logger_severity", "set_default_logger_verbosity", "set_global_thread_pool_sizes",
    "set_seed", "unregister_execution_provider_library"
]
