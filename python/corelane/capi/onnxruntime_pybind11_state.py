"""The exceptions under onnxruntime's names, and what else is imported from here."""

from typing import Any

from .. import _passed_on
from .._errors import (Busy, DeviceReset, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph,
                       InvalidProtobuf, ModelLoadCanceled, ModelLoaded, ModelRequiresCompilation, NoModel,
                       NoSuchFile, NotFound, NotImplemented, RuntimeException, Timeout)
from .._ort.settings import (ExecutionMode, GraphOptimizationLevel, OrtAllocatorType, OrtMemType,
                             RunOptions, SessionOptions)
from .._ort.dlpack import is_dlpack_uint8_tensor
from .._ort.inner import OrtValueVector
from .._ort.inner import session_iobinding as SessionIOBinding
from .._ort.memory import OrtDevice, OrtMemoryInfo
from .._ort.values import ModelMetadata, NodeArg, OrtValue

__all__ = ["Busy", "DeviceReset", "EPFail", "EngineError", "ExecutionMode", "Fail", "GraphOptimizationLevel",
           "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoadCanceled", "ModelLoaded", "ModelMetadata",
           "ModelRequiresCompilation", "NoModel", "NotFound", "SessionIOBinding",
           "NoSuchFile", "NodeArg", "NotImplemented", "OrtAllocatorType", "OrtDevice", "OrtMemType",
           "OrtMemoryInfo", "OrtValue", "OrtValueVector", "RunOptions", "RuntimeException", "SessionOptions",
           "Timeout", "get_default_session_options", "is_dlpack_uint8_tensor"]


def get_default_session_options() -> SessionOptions:
    """Fresh ones."""
    return SessionOptions()


def __getattr__(name: str) -> Any:
    """What the package has under the same name: get_available_providers, get_device, ..."""
    import corelane
    if name in _passed_on.FUNCTIONS:
        return getattr(_passed_on.inner_module(name), name)
    if name.startswith("_") or not hasattr(corelane, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(corelane, name)
