"""onnxruntime's other name of onnxruntime_pybind11_state."""

from typing import Any

from . import onnxruntime_pybind11_state as _state
from .onnxruntime_pybind11_state import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return getattr(_state, name)
