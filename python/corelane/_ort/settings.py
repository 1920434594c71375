"""SessionOptions, RunOptions and the enumerations of onnxruntime.

Settings that name threads, memory arenas or graph optimisations are kept and have no effect: the
device decides them.
"""

from __future__ import annotations

import enum
import math
import operator
from typing import Any, Callable

from .. import _native
from .._errors import NotImplemented as NotSupported


class _Named(enum.IntEnum):
    """A number that reads as its name, in texts of every kind."""

    __str__ = enum.Enum.__str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class GraphOptimizationLevel(_Named):
    """Accepted and ignored: the device decides."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Named):
    """Accepted and ignored: the device decides."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Named):
    """Accepted and ignored: the device decides."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(_Named):
    """Of OrtMemoryInfo."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(_Named):
    """Of OrtMemoryInfo."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


_LARGEST = 2**63 - 1  # Of a dimension.


def is_text(value: Any) -> bool:
    """Whether it is a str, without halves of characters, which nothing outside of Python can hold."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _size(value: Any, least: int) -> int:
    number = _read(int, value)
    if not least <= number <= _LARGEST:
        raise TypeError(f"expected an int from {least} to {_LARGEST}, given {value!r}")
    return number


def _read(kind: type, value: Any) -> Any:
    if kind is int:
        if isinstance(value, (str, bytes, float)):
            raise TypeError(f"expected an int, given {value!r}")
        return operator.index(value)
    if kind is bool:
        if isinstance(value, (str, bytes, list, tuple, dict)):
            raise TypeError(f"expected a bool, given {value!r}")
        return bool(value)
    if kind is str:
        if not is_text(value):
            raise TypeError(f"expected a str that is valid UTF-8, given {value!r}")
        return value
    if issubclass(kind, enum.Enum) and type(value).__name__ == kind.__name__:
        return kind[value.name]  # onnxruntime's enumeration of that name.
    if not isinstance(value, kind):
        raise TypeError(f"expected a {kind.__name__}, given {value!r}")
    return value


class _Setting:
    """A typed attribute with a default. effect: its help text, where it has an effect."""

    def __init__(self, kind: type, default: Any, effect: str = "Has no effect here."):
        self.kind, self.default = kind, default
        self.__doc__ = f"{effect} Default: {default if isinstance(default, enum.Enum) else repr(default)}."

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else instance._values.get(self.name, self.default)

    def __set__(self, instance: Any, value: Any) -> None:
        instance._values[self.name] = _read(self.kind, value)


class SessionOptions:
    """How a session is made. Entries "corelane.device", "corelane.profile" and so on, by
    add_session_config_entry, are the provider options of the same names."""

    __slots__ = ("_values", "_entries", "_dims", "_denotations", "_operators", "_initializers", "_external",
                 "_files")

    intra_op_num_threads = _Setting(int, 0, "1: a call that is alone takes one core, not all. Not with an RKNN "
                                    "provider.")
    inter_op_num_threads = _Setting(int, 0)
    graph_optimization_level = _Setting(GraphOptimizationLevel, GraphOptimizationLevel.ORT_ENABLE_ALL)
    execution_mode = _Setting(ExecutionMode, ExecutionMode.ORT_SEQUENTIAL)
    execution_order = _Setting(ExecutionOrder, ExecutionOrder.DEFAULT)
    enable_cpu_mem_arena = _Setting(bool, True)
    enable_mem_pattern = _Setting(bool, True)
    enable_mem_reuse = _Setting(bool, True)
    enable_profiling = _Setting(bool, False, "Whether the session's tasks are recorded for end_profiling().")
    profile_file_prefix = _Setting(str, "onnxruntime_profile_", "How the name of that file begins.")
    optimized_model_filepath = _Setting(str, "", "Where the session's model is written; empty: nowhere.")
    log_severity_level = _Setting(int, -1)
    log_verbosity_level = _Setting(int, 0)
    logid = _Setting(str, "")
    use_deterministic_compute = _Setting(bool, False)
    use_per_session_threads = _Setting(bool, True)

    @classmethod
    def _names(cls) -> list[str]:
        """The attributes that can be set."""
        return [name for name, value in vars(cls).items() if isinstance(value, _Setting)]

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._entries: dict[str, str] = {}
        self._dims: dict[str, int] = {}
        self._denotations: dict[str, int] = {}
        self._operators: dict[str, Callable] = {}
        # Of initializers: values by name, values of those in files by name, contents by name of the file.
        self._initializers: dict[str, Any] = {}
        self._external: dict[str, Any] = {}
        self._files: dict[str, Any] = {}

    def _copied(self) -> "SessionOptions":
        """What is set from now on is not set in the copy; the values are the same."""
        made = type(self).__new__(type(self))
        for name in SessionOptions.__slots__:
            setattr(made, name, dict(getattr(self, name)))
        return made

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry; TypeError unless both are texts."""
        self._entries[_read(str, key)] = _read(str, value)

    def get_session_config_entry(self, key: str) -> str:
        """RuntimeError for a key that was not added."""
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def has_providers(self) -> bool:
        """False: providers are given to InferenceSession."""
        return False

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes the open dimension `name`, "INPUT[AXIS]" where it has none; ignored where no input has one."""
        self._dims[_read(str, name)] = _size(size, -_LARGEST - 1)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fixes the open dimensions of inputs that the model marks so, as with DATA_BATCH."""
        self._denotations[_read(str, denotation)] = _size(size, -_LARGEST - 1)

    def add_initializer(self, name: str, ortvalue: Any) -> None:
        """An OrtValue in place of the model's initializer; ignored where the model has none of that name. It is
        copied when the session is made. RuntimeError for a name that was given before."""
        if _read(str, name) in self._initializers:
            raise RuntimeError(f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : An OrtValue for {name} was added "
                               "already; make new SessionOptions for another value")
        self._initializers[name] = ortvalue

    def add_external_initializers(self, external_initializer_names: list, ort_values: list) -> None:
        """As add_initializer(), for initializers that the model has in other files."""
        if len(external_initializer_names) != len(ort_values):
            raise RuntimeError(f"{len(external_initializer_names)} names and {len(ort_values)} values were given; "
                               "one value belongs to each name")
        self._external.update(zip(external_initializer_names, ort_values))

    def add_external_initializers_from_files_in_memory(self, external_initializer_file_names: list,
                                                       external_initializer_file_buffer_array: list,
                                                       external_initializer_file_lengths: list) -> None:
        """Contents of the files that a model has initializers in. They are read when the session is made."""
        given = (external_initializer_file_names, external_initializer_file_buffer_array,
                 external_initializer_file_lengths)
        if len({len(one) for one in given}) != 1:
            raise RuntimeError(f"{len(given[0])} names, {len(given[1])} contents and {len(given[2])} lengths were "
                               "given; as many of each belong together")
        for name, content, length in zip(*given):
            self._files[str(name)] = memoryview(content).cast("B")[:_size(length, 0)]

    def add_custom_operator(self, op_type: str, function: Callable) -> None:
        """Not onnxruntime's: a Python function computes the operators of that type ("MyOp" or
        "domain.MyOp"). See docs/apis/python.md."""
        if not callable(function):
            raise TypeError(f"expected a function, given {function!r}")
        self._operators[_read(str, op_type)] = function

    def set_load_cancellation_flag(self, flag: bool) -> None:
        """NotImplemented for True."""
        if flag:
            raise NotSupported("loading a model cannot be cancelled")

    def _refuse(self, *_: Any, **__: Any) -> None:
        raise NotSupported("this member of SessionOptions is not served by corelane; "
                           "docs/apis/python.md lists what is")

    add_provider = add_provider_for_devices = _refuse
    register_custom_ops_library = _refuse
    set_provider_selection_policy = set_provider_selection_policy_delegate = _refuse
    set_ep_context_data_read_func = clear_ep_context_data_read_func = _refuse

    def _corelane_entries(self) -> dict[str, str]:
        prefix = "corelane."
        return {k[len(prefix):]: v for k, v in self._entries.items() if k.startswith(prefix)}


_TRUE, _FALSE = ("1", "true", "on", "yes"), ("0", "false", "off", "no", "")
_SPLIT, _TIMES = "ztu_modelrt_dispatch_batch", ("corelane.timeout_ms", "corelane.submit_timeout_ms")
_PRIORITY = "corelane.priority"
_MOST_MS = 2**43  # Some hundred years.
#: The entries of RunOptions that mean something here.
RUN_ENTRIES = (_SPLIT, *_TIMES, _PRIORITY)
_OURS = ("corelane.", "ztu_")
# onnxruntime's own, which have no effect.
_THEIRS = ("memory.", "qnn.", "ep.", "session.", "disable_synchronize_execution_providers", "gpu_graph_id")


def _microseconds(key: str, value: str) -> int:
    """Of a text of milliseconds. Rounded up, since 0 means no limit."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number <= _MOST_MS:
        raise RuntimeError(f"{key}: {value!r} is not a time; give milliseconds, 0 for no limit, up to {_MOST_MS}")
    return math.ceil(number * 1000)


def _priority(value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        number = _LARGEST
    if not -128 <= number <= 127:
        raise RuntimeError(f"{_PRIORITY}: {value!r} is not a priority; give an integer from -128 to 127")
    return number


class RunOptions:
    """How one call runs. Any thread may set terminate: calls that wait then fail at once.

    Corelane's own entries: "ztu_modelrt_dispatch_batch" (true: dimension 0 is split into tasks),
    "corelane.timeout_ms", "corelane.submit_timeout_ms", "corelane.priority"."""

    __slots__ = ("_values", "_entries", "_terms", "_batch", "_unknown", "__weakref__")

    log_severity_level = _Setting(int, -1)
    log_verbosity_level = _Setting(int, 0)
    logid = _Setting(str, "")
    only_execute_path_to_fetches = _Setting(bool, False)

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._entries: dict[str, str] = {}
        self._terms = _native.Terms()
        self._batch = False
        self._unknown = ""  # An entry that nobody knows; an error with an RKNN provider.

    @property
    def terminate(self) -> bool:
        """Whether calls with these options are terminated."""
        return self._terms.terminated

    @terminate.setter
    def terminate(self, value: bool) -> None:
        if _read(bool, value):
            self._terms.terminate()
        else:
            self._terms.reset()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an entry; RuntimeError for a name of Corelane's kind that it does not know, and for a value that
        is not allowed."""
        key, value = _read(str, key), _read(str, value)
        if key == _SPLIT:
            if value.strip().lower() not in _TRUE + _FALSE:
                raise RuntimeError(f"{key}: {value!r} is neither true nor false")
            self._batch = value.strip().lower() in _TRUE
        elif key in RUN_ENTRIES:
            self._set_term(key, value)
        elif key.startswith(_OURS):
            raise RuntimeError(f"unknown run option {key!r}; known are {', '.join(RUN_ENTRIES)}")
        elif not key.startswith(_THEIRS):
            self._unknown = key
        self._entries[key] = value

    def _set_term(self, key: str, value: str) -> None:
        if key == _PRIORITY:
            self._terms.priority = _priority(value)
        elif key == _TIMES[0]:
            self._terms.timeout_us = _microseconds(key, value)
        else:
            # The library's 0 is the session's limit.
            self._terms.submit_timeout_us = _microseconds(key, value) or _MOST_MS * 1000

    def get_run_config_entry(self, key: str) -> str:
        """RuntimeError for a key that was not added."""
        if key not in self._entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_active_adapter(self, adapter: Any) -> None:
        """Not served: NotImplemented."""
        raise NotSupported("LoRA adapters are not supported")
