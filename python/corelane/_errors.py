"""The one place where failures of the native session become the exceptions that users know.

Every class is a RuntimeError under onnxruntime's name, so that code written for either catches it.
StatusError is what the native module raises; only this package should see it.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import Iterable, Mapping

from ._native import Code
from ._printable import printable


class StatusError(RuntimeError):
    """A failure of the native library: its code, a message for people, and details for programs.

    details: texts by key ("input", "output", "dimension", "given", "allowed", "limit", "node", "operator",
        "retry_after", "key");
    keys that do not apply are missing. causes: the codes of the failures behind it, the nearest first.
    Programs read these; only people read the message."""

    def __init__(self, code: Code | int, message: str, details: Mapping[str, str] = MappingProxyType({}),
                 causes: Iterable[Code | int] = ()):
        self.code = Code(code)
        self.details = dict(details)
        self.causes = [Code(cause) for cause in causes]
        #: True where RunOptions.terminate ended the call.
        self.terminated = self.code is Code.CANCELLED and self.details.get("given") == "terminate"
        if self.terminated:  # The library's text names a class that Python programs do not know.
            message = ("the call was terminated: RunOptions.terminate was set; set it to False before "
                       "the same options are used again")
        super().__init__(message)


class Fail(RuntimeError):
    """The work itself failed, or was terminated."""


class InvalidArgument(RuntimeError):
    """A name, shape, type or value that is not allowed."""


class NoSuchFile(RuntimeError):
    """A model file that does not exist."""


class NoModel(RuntimeError):
    """A session without a model."""


class EngineError(Fail):
    """The device or its engine failed."""


class RuntimeException(RuntimeError):
    """A failure with no class of its own."""


class InvalidProtobuf(RuntimeError):
    """Bytes that are not a model."""


class ModelLoaded(RuntimeError):
    """A second model for one session."""


class NotImplemented(RuntimeError):  # noqa: A001 - the name is onnxruntime's
    """A legal request that this library does not serve."""


class InvalidGraph(RuntimeError):
    """A model that the engine refuses; the message says where and what to do."""


class EPFail(RuntimeError):
    """The execution provider failed."""


class DeviceReset(RuntimeError):
    """Of onnxruntime; not raised here, where a device that was reset is an EngineError."""


class ModelLoadCanceled(RuntimeError):
    """Of onnxruntime; not raised here."""


class ModelRequiresCompilation(RuntimeError):
    """Of onnxruntime; not raised here."""


class NotFound(RuntimeError):
    """Of onnxruntime; not raised here, where a name that is not found is an InvalidArgument."""


class Timeout(RuntimeException, TimeoutError):
    """A limit of time has passed: of a call that waits for room in the queue, for its pace or for its end; of a run
    (run_timeout_ms, corelane.timeout_ms); of a load (load_timeout_ms)."""


class Busy(Fail):
    """Something is in use by another caller."""


# onnxruntime's number and name of each class.
_NUMBERS = {
    Fail: (1, "FAIL"), InvalidArgument: (2, "INVALID_ARGUMENT"), NoSuchFile: (3, "NO_SUCHFILE"),
    NoModel: (4, "NO_MODEL"), EngineError: (5, "ENGINE_ERROR"),
    RuntimeException: (6, "RUNTIME_EXCEPTION"), InvalidProtobuf: (7, "INVALID_PROTOBUF"),
    ModelLoaded: (8, "MODEL_LOADED"), NotImplemented: (9, "NOT_IMPLEMENTED"),
    InvalidGraph: (10, "INVALID_GRAPH"), EPFail: (11, "EP_FAIL"),
}

_BY_CODE = {
    Code.INVALID_ARGUMENT: InvalidArgument, Code.NOT_FOUND: InvalidArgument,
    Code.OUT_OF_RANGE: InvalidArgument, Code.WRONG_STATE: Fail, Code.UNSUPPORTED: NotImplemented,
    Code.SHAPE_MISMATCH: InvalidArgument, Code.TYPE_MISMATCH: InvalidArgument,
    Code.MALFORMED: InvalidProtobuf, Code.CORRUPTED: InvalidProtobuf,
    Code.VERSION_MISMATCH: InvalidProtobuf, Code.UNSUPPORTED_MODEL: InvalidGraph,
    Code.FOREIGN_IMAGE: InvalidGraph,
    Code.OUT_OF_MEMORY: RuntimeException, Code.OUT_OF_CORES: InvalidArgument, Code.BUSY: Busy,
    Code.IO: RuntimeException,
    Code.TIMEOUT: Timeout, Code.CANCELLED: Fail, Code.DEVICE_RESET: EngineError,
    Code.DEVICE_LOST: EngineError, Code.BAD_RESULT: EngineError,
    Code.HOST_OPERATOR_MISSING: NotImplemented, Code.HOST_OPERATOR_FAILED: EngineError,
    Code.ENGINE_FAILED: EngineError,
    Code.INTERNAL: RuntimeException,
}


def numbered(kind: type, text: str, lines: bool = False) -> Exception:
    """An exception that reads as onnxruntime's do; its attribute `text` lacks the number and name.
    Control characters are written out; lines: they are already, and line ends are onnxruntime's own."""
    text = text if lines else printable(text)
    base = next(c for c in kind.__mro__ if c in _NUMBERS)
    number, name = _NUMBERS[base]
    made = kind(f"[ONNXRuntimeError] : {number} : {name} : {text}")
    made.text = text
    return made


def unreadable(path: str) -> str:
    """Why no model can be read from `path`: no file has this name, or it is a folder or a device."""
    if os.path.isdir(path):
        return "it is a folder, not a file"
    return "it is not a regular file" if os.path.exists(path) else "there is no such file"


_INVALID_MODEL = ("RKNN_ERR_MODEL_INVALID", -6)
_FAILED = ("RKNN_ERR_FAIL", -1)
# The driver's name and number of failures of models and devices.
_DRIVER = {
    Code.MALFORMED: _INVALID_MODEL, Code.CORRUPTED: _INVALID_MODEL, Code.VERSION_MISMATCH: _INVALID_MODEL,
    Code.UNSUPPORTED_MODEL: _INVALID_MODEL,
    Code.FOREIGN_IMAGE: ("RKNN_ERR_TARGET_PLATFORM_UNMATCH", -13),
    Code.OUT_OF_MEMORY: ("RKNN_ERR_MALLOC_FAIL", -4),
    Code.DEVICE_RESET: _FAILED, Code.DEVICE_LOST: ("RKNN_ERR_DEVICE_UNAVAILABLE", -3),
    Code.BAD_RESULT: _FAILED, Code.HOST_OPERATOR_MISSING: _FAILED, Code.HOST_OPERATOR_FAILED: _FAILED,
    Code.ENGINE_FAILED: _FAILED,
}
# Of a run alone: elsewhere these are the session's own.
_DRIVER_RUN = {Code.BUSY: _FAILED, Code.IO: _FAILED, Code.OUT_OF_CORES: _FAILED, Code.INTERNAL: _FAILED}
# What the driver said where the session or the device has made it Code.ENGINE_FAILED.
_INVALID = ("RKNN_ERR_PARAM_INVALID", -5)
_DRIVER_CAUSE = {
    Code.TIMEOUT: ("RKNN_ERR_TIMEOUT", -2), Code.DEVICE_LOST: ("RKNN_ERR_DEVICE_UNAVAILABLE", -3),
    Code.WRONG_STATE: ("RKNN_ERR_CTX_INVALID", -7),
    Code.INVALID_ARGUMENT: _INVALID, Code.NOT_FOUND: _INVALID, Code.OUT_OF_RANGE: _INVALID,
}
RUN = "rknn_run"


def driver_text(error: StatusError, function: str) -> str:
    """The message; with a function, after the driver's function, name and number where the driver would have
    failed."""
    known = {**_DRIVER, **_DRIVER_RUN} if function == RUN else _DRIVER
    if error.code not in known or not function:
        return str(error)
    name, number = known[error.code]
    if error.code is Code.ENGINE_FAILED:
        name, number = next((_DRIVER_CAUSE[code] for code in error.causes if code in _DRIVER_CAUSE),
                            (name, number))
    return f"{function} failed: {name} ({number}): {error}"


def _kind_of(error: StatusError) -> type:
    # A part of the graph is named: the bytes are a model.
    if error.code is Code.MALFORMED and error.details.keys() & {"node", "input", "output"}:
        return Fail
    return _BY_CODE.get(error.code, RuntimeException)


def translated(error: StatusError, strict: bool, function: str = RUN) -> Exception:
    """The exception for a failure, with strict in onnxruntime's words, else in those of RKNN's driver."""
    kind = _kind_of(error)
    return numbered(kind, strict_text(error)) if strict else kind(driver_text(error, function))


def strict_text(error: StatusError) -> str:
    """The message in onnxruntime's words, without its number and name."""
    if error.terminated:
        return "Exiting due to terminate flag being set to true."
    if error.code is Code.UNSUPPORTED_MODEL and "dimension" in error.details:
        return (f"{error}; SessionOptions.add_free_dimension_override_by_name({error.details['dimension']!r}, SIZE) "
                "fixes the first one, and so the others by their names, or as 'INPUT[AXIS]'")
    return str(error)
