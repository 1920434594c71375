"""onnxruntime.capi: where code looks for exceptions and for classes by their long names."""

from . import onnxruntime_pybind11_state as _pybind_state  # noqa: F401
