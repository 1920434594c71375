"""Objects of the real onnxruntime where one of Corelane's is meant: programs that import both mix them."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator

from .. import _arrays
from .options import OPTIONS
from .settings import RUN_ENTRIES, RunOptions, SessionOptions
from .values import OrtValue

# Entries cannot be listed there, so those that mean something here are asked for.
_SESSION_ENTRIES = (*(f"corelane.{name}" for name in OPTIONS), "session.record_ep_graph_assignment_info",
                    "session.model_external_initializers_file_folder_path",
                    "session.optimized_model_external_initializers_file_name",
                    "session.optimized_model_external_initializers_min_size_in_bytes")


def _is(value: Any, name: str) -> bool:
    """Whether it is an object of onnxruntime's class of that name."""
    return any(kind.__name__ == name and kind.__module__.partition(".")[0] == "onnxruntime"
               for kind in type(value).__mro__)


def _entries(get: Callable[[str], str], keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The entries of these keys that onnxruntime's options have."""
    for key in keys:
        try:
            value = get(key)
        except RuntimeError:  # It has none of that name.
            continue
        yield key, value


def session_options(given: Any) -> SessionOptions:
    """As they are, or with the settings and the entries of onnxruntime's. What those hold beyond that
    (dimensions, initializers, libraries) cannot be read from them. TypeError for anything else."""
    if isinstance(given, SessionOptions):
        return given
    if not _is(given, "SessionOptions"):
        raise TypeError(f"sess_options: expected SessionOptions, given {type(given).__name__}")
    made = SessionOptions()
    for name in SessionOptions._names():
        if hasattr(given, name):
            setattr(made, name, getattr(given, name))
    for key, value in _entries(given.get_session_config_entry, _SESSION_ENTRIES):
        made.add_session_config_entry(key, value)
    return made


def _run_options(given: Any) -> RunOptions:
    made = RunOptions()
    for key, value in _entries(given.get_run_config_entry, RUN_ENTRIES):
        made.add_run_config_entry(key, value)
    made.terminate = given.terminate
    return made


def read_run_options(options: Any, strict: bool) -> tuple[Any, bool]:
    """(terms or None, whether dimension 0 is split) from RunOptions, Corelane's or onnxruntime's, a dict of
    entries, or None. RuntimeError for an entry that is not known; strict: names of other kinds, which
    onnxruntime does not look at, may stand in RunOptions."""
    if options is None:
        return None, False
    if isinstance(options, dict):
        made = RunOptions()
        for key, value in options.items():
            if value is not None:
                made.add_run_config_entry(str(key), str(value))
        options, strict = made, False
    elif not isinstance(options, RunOptions) and _is(options, "RunOptions"):
        options = _run_options(options)
    if not isinstance(options, RunOptions):
        raise TypeError(f"run_options: expected RunOptions, a dict or None, given {type(options).__name__}")
    if options._unknown and not strict:
        raise RuntimeError(f"unknown run option {options._unknown!r}; known are {', '.join(RUN_ENTRIES)}, and "
                           "onnxruntime's, which have no effect")
    return options._terms, options._batch


def ort_value(value: Any, function: str) -> OrtValue:
    """As it is, or over the memory of onnxruntime's, which is kept. TypeError for anything else."""
    if isinstance(value, OrtValue):
        return value
    if not _is(value, "OrtValue"):
        raise TypeError(f"{function}: expected an OrtValue, given {type(value).__name__}; "
                        "OrtValue.ortvalue_from_numpy makes one that shares an array's memory")
    number = value.element_type()
    return OrtValue(_arrays.memory_at(value.data_ptr(), number, list(value.shape()), value), number)
