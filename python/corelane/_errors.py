"""The one place where failures of the native session become the exceptions users know.

Every class is a RuntimeError as well as what onnxruntime calls it, so that code written for either
catches it. StatusError is what the native module raises; nothing but this package should see it.
"""

from __future__ import annotations


class StatusError(RuntimeError):
    """A failure of the native library: number and name of its code, and a message."""

    def __init__(self, code: int, name: str, message: str):
        if code == 402 and "CallControl" in message:  # Which Python programs do not know.
            message = ("the call was terminated: RunOptions.terminate was set; set it to False before "
                       "the same options are used again")
        super().__init__(message)
        self.code = code
        self.name = name


class Fail(RuntimeError):
    """The work itself failed, or was terminated."""


class InvalidArgument(RuntimeError):
    """A name, shape, type or value that is not allowed."""


class NoSuchFile(RuntimeError):
    """A model file that does not exist."""


class NoModel(RuntimeError):
    """A session without a model."""


class EngineError(RuntimeError):
    """The device or its engine failed."""


class RuntimeException(RuntimeError):
    """A failure with no class of its own."""


class InvalidProtobuf(RuntimeError):
    """Bytes that are no model."""


class ModelLoaded(RuntimeError):
    """A second model for one session."""


class NotImplemented(RuntimeError):  # noqa: A001 - the name is onnxruntime's
    """A legal request that this library does not serve."""


class InvalidGraph(RuntimeError):
    """A model that the engine refuses; the message says where and what to do."""


class EPFail(RuntimeError):
    """The execution provider failed."""


class Timeout(RuntimeException, TimeoutError):
    """A call that waited longer than it may: for room in the queue, for its pace, or for its end."""


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
    101: InvalidArgument, 102: InvalidArgument, 103: InvalidArgument, 104: Fail,
    105: NotImplemented, 106: InvalidArgument, 107: InvalidArgument,
    201: InvalidProtobuf, 202: InvalidProtobuf, 203: InvalidProtobuf, 204: InvalidGraph,
    205: InvalidGraph,
    301: RuntimeException, 302: InvalidArgument, 303: Busy, 304: RuntimeException,
    401: Timeout, 402: Fail, 403: EngineError, 404: EngineError, 405: EngineError,
    406: NotImplemented, 407: EngineError, 408: EngineError,
    501: RuntimeException,
}


def numbered(kind: type, text: str) -> Exception:
    """An exception that reads as onnxruntime's do."""
    base = next(c for c in kind.__mro__ if c in _NUMBERS)
    number, name = _NUMBERS[base]
    return kind(f"[ONNXRuntimeError] : {number} : {name} : {text}")


# The driver's name and number of failures of models and devices.
_DRIVER = {201: ("RKNN_ERR_MODEL_INVALID", -6), 202: ("RKNN_ERR_MODEL_INVALID", -6),
           203: ("RKNN_ERR_MODEL_INVALID", -6), 204: ("RKNN_ERR_MODEL_INVALID", -6),
           205: ("RKNN_ERR_TARGET_PLATFORM_UNMATCH", -13), 301: ("RKNN_ERR_MALLOC_FAIL", -4),
           403: ("RKNN_ERR_FAIL", -1), 404: ("RKNN_ERR_DEVICE_UNAVAILABLE", -3), 405: ("RKNN_ERR_FAIL", -1),
           406: ("RKNN_ERR_FAIL", -1), 407: ("RKNN_ERR_FAIL", -1), 408: ("RKNN_ERR_FAIL", -1)}


def driver_text(error: StatusError, function: str) -> str:
    """The message, with the driver's function, name and number where the driver would have failed. No
    function: the message alone."""
    if error.code not in _DRIVER or not function:
        return str(error)
    name, number = _DRIVER[error.code]
    return f"{function} failed: {name} ({number}): {error}"


def translated(error: StatusError, strict: bool, function: str = "rknn_run") -> Exception:
    """The exception for a failure; with strict, in onnxruntime's words, else in those of RKNN users."""
    kind = _BY_CODE.get(error.code, RuntimeException)
    text = str(error)
    if error.code == 402 and "terminated" in text:
        if strict:
            text = "Exiting due to terminate flag being set to true."
    if strict and "cannot be prepared with open dimensions" in text:
        text += "; SessionOptions.add_free_dimension_override_by_name(name, size) fixes one that has a name"
    return numbered(kind, text) if strict else kind(driver_text(error, function))
