"""The classes under the long names of onnxruntime."""

from .._ort.binding import IOBinding
from .._ort.memory import OrtDevice
from .._ort.providers import check_and_normalize_provider_args
from .._ort.session import InferenceSession
from .._ort.values import OrtValue

Session = InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "Session",
           "check_and_normalize_provider_args"]
