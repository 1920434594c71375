"""The classes under the long names of onnxruntime."""

from .._ort.binding import IOBinding
from .._ort.session import InferenceSession
from .._ort.values import OrtValue

Session = InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtValue", "Session"]
