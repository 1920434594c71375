"""The classes under the long names of onnxruntime."""

from .._binding import IOBinding
from .._session import InferenceSession
from .._values import OrtValue

Session = InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtValue", "Session"]
