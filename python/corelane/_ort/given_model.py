"""The model that a session is given, with what SessionOptions ask to be changed, noted or written."""

from __future__ import annotations

import os
import weakref
from typing import Any

from .._errors import Fail, InvalidArgument, numbered
from . import model_bytes
from .settings import ExecutionMode, GraphOptimizationLevel, SessionOptions
from .values import OrtValue

_DATA_ROOT = "session.model_external_initializers_file_folder_path"
_OTHER_FILE = "session.optimized_model_external_initializers_file_name"
_LEAST_SIZE = "session.optimized_model_external_initializers_min_size_in_bytes"
_ASSIGNMENT = "session.record_ep_graph_assignment_info"
_KINDS = {"graph_optimization_level": GraphOptimizationLevel, "execution_mode": ExecutionMode,
          "enable_profiling": bool}


def _identity(file: os.stat_result) -> tuple:
    return file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns


class GivenModel:
    """source: a path or bytes. options: those of the session; with ORT_LOAD_CONFIG_FROM_MODEL=1 and none
    given, those that the model itself holds."""

    def __init__(self, source: Any, options: SessionOptions | None):
        self.source = source
        # Its folder may not be the current one when it is read again.
        self._path = os.path.abspath(source) if isinstance(source, str) else None
        self._seen = None if self._path is None else _identity(os.stat(self._path))
        self._held: int | None = None
        self.options = SessionOptions() if options is None else options
        if options is None and os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1":
            self._take_stored_settings()
        #: The folder of the model's other files; None where the library knows it.
        self.data_root: str | None = self.options._entries.get(_DATA_ROOT) or None
        self._change()

    def _bytes(self) -> Any:
        if not isinstance(self.source, str):
            return self.source
        with open(self.source, "rb") as file:
            return file.read()

    def _take_stored_settings(self) -> None:
        data = self._bytes()
        if model_bytes.is_program(data):
            return
        for name, value in model_bytes.stored_settings(data).items():
            if name in SessionOptions._names():
                setattr(self.options, name, _KINDS.get(name, int)(value))

    def _change(self) -> None:
        options = self.options
        wanted = (options._initializers, options._external, options._files, options._denotations)
        if not any(wanted):
            return
        data = self._bytes()
        if model_bytes.is_program(data):
            raise numbered(InvalidArgument, "initializers and denotations are of ONNX models; this is a program "
                                            "file: give them to a session of the model, or change the model "
                                            "before it is compiled")
        if options._initializers or options._external or options._files:
            data = model_bytes.with_initializers(data, _values(options._initializers), _values(options._external),
                                                 options._files)
        if options._denotations:
            data = model_bytes.with_denotations(data, options._denotations)
        self._keep_root()
        self.source = data

    def hold(self) -> None:
        """Keeps the file that the session was made of, so that whole() gives it also where another one has taken
        its place."""
        if self._path is None or not isinstance(self.source, str):
            return
        self._keep_root()
        self._held = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._held)

    def whole(self) -> tuple[Any, str | None]:
        """Its bytes, and the folder of its other files. Fail where the file was written to since the session was
        made."""
        if self._held is None:
            return self._bytes(), self.data_root
        with open(os.dup(self._held), "rb") as file:
            file.seek(0)
            data = file.read()
            if _identity(os.fstat(file.fileno())) != self._seen:
                raise numbered(Fail, f"model {self._path} was changed since the session was made; to override "
                                     "initializers make a new session, or give a session the model's bytes")
        return data, self.data_root

    def _keep_root(self) -> None:
        if self._path is not None and self.data_root is None:
            self.data_root = os.path.dirname(os.path.realpath(self._path))

    def assigned_nodes(self, provider: str) -> list | None:
        """The nodes that the provider runs; None unless the options ask for it."""
        if self.options._entries.get(_ASSIGNMENT) != "1":
            return None
        data = self._bytes()
        return [] if model_bytes.is_program(data) else model_bytes.assigned_nodes(data, provider)

    def write_optimized(self) -> None:
        """Writes options.optimized_model_filepath: the model as the session was given it, with the changes
        above. The device's own form of it is no ONNX model."""
        target = self.options.optimized_model_filepath
        if not target:
            return
        data = self._bytes()
        if model_bytes.is_program(data):
            raise numbered(Fail, "Unable to serialize model as it contains compiled nodes. Please disable any "
                                 "execution providers which generate compiled nodes.")
        beside = self.options._entries.get(_OTHER_FILE, "")
        try:
            if beside or model_bytes.has_external_data(data):
                self._write_in_parts(data, target, beside)
            else:
                with open(target, "wb") as file:
                    file.write(data)
        except OSError as problem:
            raise numbered(Fail, f"optimized_model_filepath {target} cannot be written: {problem}") from None

    def _write_in_parts(self, data: Any, target: str, beside: str) -> None:
        try:
            import onnx
        except ImportError:
            raise numbered(Fail, f"optimized_model_filepath {target}: writing initializers to other files, or from "
                                 "there, takes the onnx package: pip install onnx") from None
        self._keep_root()
        model = onnx.load_from_string(bytes(data))
        onnx.load_external_data_for_model(model, self.data_root or ".")
        if beside:
            other = os.path.join(os.path.dirname(target), beside)
            if os.path.exists(other):  # The package appends to it.
                os.remove(other)
        least = int(self.options._entries.get(_LEAST_SIZE, "0"))
        onnx.save_model(model, target, save_as_external_data=bool(beside), location=beside or None,
                        size_threshold=least)


def _values(given: dict[str, Any]) -> dict[str, OrtValue]:
    for name, value in given.items():
        if not hasattr(value, "element_type") or not hasattr(value, "numpy"):
            raise TypeError(f"initializer {name!r}: expected an OrtValue, given {type(value).__name__}; "
                            "OrtValue.ortvalue_from_numpy makes one")
    return given
