"""The exceptions under onnxruntime's names, and what else is imported from here."""

from .._errors import (Busy, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf,
                       ModelLoaded, NoModel, NoSuchFile, NotImplemented, RuntimeException, Timeout)
from .._settings import (ExecutionMode, GraphOptimizationLevel, OrtAllocatorType, OrtMemType, RunOptions,
                         SessionOptions)
from .._values import ModelMetadata, NodeArg, OrtDevice, OrtMemoryInfo, OrtValue

__all__ = ["Busy", "EPFail", "EngineError", "ExecutionMode", "Fail", "GraphOptimizationLevel",
           "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoaded", "ModelMetadata", "NoModel",
           "NoSuchFile", "NodeArg", "NotImplemented", "OrtAllocatorType", "OrtDevice", "OrtMemType",
           "OrtMemoryInfo", "OrtValue", "RunOptions", "RuntimeException", "SessionOptions", "Timeout"]
