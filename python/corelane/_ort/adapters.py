"""Files of LoRA adapters, read and written by an installed onnxruntime: its own module has their format."""

from __future__ import annotations

import os
from typing import Any, Mapping

from .. import _passed_on
from .foreign import ort_value
from .values import OrtValue


def _inner(purpose: str) -> Any:
    return _passed_on.inner_module(f"AdapterFormat.{purpose}")


class AdapterFormat:
    """Parameters of an adapter by name, with two versions. ModuleNotFoundError where onnxruntime is not installed.
    No session takes an adapter."""

    def __init__(self, adapter: Any = None):
        self._adapter = _inner("__init__").AdapterFormat() if adapter is None else adapter

    @staticmethod
    def read_adapter(file_path: Any) -> "AdapterFormat":
        """From a file."""
        return AdapterFormat(_inner("read_adapter").AdapterFormat.read_adapter(os.fspath(file_path)))

    def export_adapter(self, file_path: Any) -> None:
        """To a file."""
        self._adapter.export_adapter(os.fspath(file_path))

    def get_format_version(self) -> int:
        """Of the file's format."""
        return self._adapter.format_version

    def get_adapter_version(self) -> int:
        """As set, or read."""
        return self._adapter.adapter_version

    def set_adapter_version(self, adapter_version: int) -> None:
        """Any number."""
        self._adapter.adapter_version = adapter_version

    def get_model_version(self) -> int:
        """As set, or read."""
        return self._adapter.model_version

    def set_model_version(self, model_version: int) -> None:
        """Any number."""
        self._adapter.model_version = model_version

    def get_parameters(self) -> dict[str, OrtValue]:
        """OrtValues by name."""
        return {name: ort_value(value, "get_parameters") for name, value in self._adapter.parameters.items()}

    def set_parameters(self, params: Mapping[str, OrtValue]) -> None:
        """OrtValues by name; their memory is copied when the file is written."""
        make = _inner("set_parameters").OrtValue.ortvalue_from_numpy_with_onnx_type
        self._adapter.parameters = {
            name: make(value.numpy(), getattr(value, "_type", None) or value.element_type())
            for name, value in params.items()}
