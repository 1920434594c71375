"""`rknn.utils.grq`, whose quantizer of language models is not served."""

from __future__ import annotations

from typing import Any

from .._rknn.log import Log


def grq_quantize(*_: Any, **__: Any) -> bool:
    """False, with what to do instead in the log of corelane.rknn_toolkit."""
    Log("corelane.rknn_toolkit", False).error(
        "grq_quantize", "not served; export the float model to ONNX, and build(do_quantization=True) quantizes it")
    return False
