"""The exceptions under onnxruntime's names, and what else is imported from here."""

from typing import Any

from .._errors import (Busy, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf,
                       ModelLoaded, NoModel, NoSuchFile, NotImplemented, RuntimeException, Timeout)
from .._ort.settings import (ExecutionMode, GraphOptimizationLevel, OrtAllocatorType, OrtMemType,
                             RunOptions, SessionOptions)
from .._ort.values import ModelMetadata, NodeArg, OrtDevice, OrtMemoryInfo, OrtValue

__all__ = ["Busy", "EPFail", "EngineError", "ExecutionMode", "Fail", "GraphOptimizationLevel",
           "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoaded", "ModelMetadata", "NoModel",
           "NoSuchFile", "NodeArg", "NotImplemented", "OrtAllocatorType", "OrtDevice", "OrtMemType",
           "OrtMemoryInfo", "OrtValue", "RunOptions", "RuntimeException", "SessionOptions", "Timeout"]


def __getattr__(name: str) -> Any:
    """What the package has under the same name: get_available_providers, get_device, ..."""
    import corelane
    if name.startswith("_") or not hasattr(corelane, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(corelane, name)
