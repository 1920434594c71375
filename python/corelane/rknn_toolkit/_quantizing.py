"""int8 by ONNX Runtime's quantizer, which is an optional extra: `pip install corelane[quantize]`."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from typing import Any, Iterable, Iterator

import numpy as np

from .._rknn.log import Log, UsageError

EXTRA = "`pip install corelane[quantize]`"
_alone = threading.Lock()  # sys.stdout is the whole process's.
_CHANNELS_SINCE = 13  # The operator set in which DequantizeLinear has an axis.


def real_onnxruntime(purpose: str) -> Any:
    """ONNX Runtime itself, also where corelane.alias stands in its place. UsageError when absent."""
    import corelane

    if sys.modules.get("onnxruntime") is corelane:
        raise UsageError(f"{purpose} needs onnxruntime itself, and corelane.alias stands in its place; call "
                         "it in a process without that alias, or after "
                         "corelane.alias.uninstall('onnxruntime')")
    try:
        import onnxruntime
    except ImportError as problem:
        raise UsageError(f"{purpose} needs onnxruntime, which is not installed ({problem}); "
                         f"{EXTRA}") from None
    return onnxruntime


def real_onnx(purpose: str) -> Any:
    """The onnx package. UsageError when absent."""
    try:
        import onnx
    except ImportError as problem:
        raise UsageError(f"{purpose} needs the onnx package, which is not installed ({problem}); "
                         f"{EXTRA}") from None
    return onnx


def quantize(model: Any, samples: Iterable[dict[str, np.ndarray]], calibration: str, per_channel: bool,
             log: Log) -> bytes:
    """Bytes of the model with int8 weights and activations, as pairs of QuantizeLinear and
    DequantizeLinear. model: a path or bytes; samples: what it is fed with to see its ranges;
    calibration: "minmax" or "entropy"."""
    purpose = "build(do_quantization=True)"
    onnx = real_onnx(purpose)
    real_onnxruntime(purpose)
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    method = {"minmax": quantization.CalibrationMethod.MinMax,
              "entropy": quantization.CalibrationMethod.Entropy}[calibration]
    # The calibrator reports on stdout, which belongs to the program.
    with _alone, tempfile.TemporaryDirectory(prefix="corelane-") as folder, \
            contextlib.redirect_stdout(sys.stderr):
        source = _as_file(model, folder)
        if per_channel:
            source, per_channel = _with_channels(onnx, source, folder, log)
        prepared = os.path.join(folder, "prepared.onnx")
        quantized = os.path.join(folder, "quantized.onnx")
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantization.quantize_static(
            prepared, quantized, _reader(quantization, samples), quant_format=quantization.QuantFormat.QDQ,
            per_channel=per_channel, activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8, calibrate_method=method)
        with open(quantized, "rb") as file:
            return file.read()


def _as_file(model: Any, folder: str) -> str:
    if isinstance(model, str):
        return model
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as file:
        file.write(model)
    return path


def _with_channels(onnx: Any, source: str, folder: str, log: Log) -> tuple[str, bool]:
    """(a model whose operator set has scales by channel, whether there is one)."""
    model = onnx.load(source)
    version = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    if version >= _CHANNELS_SINCE:
        return source, True
    try:
        raised = onnx.version_converter.convert_version(model, _CHANNELS_SINCE)
    except Exception as problem:  # noqa: BLE001 - it has no common class for what it cannot convert
        log.warning("build", f"quantized_method='layer' instead of 'channel', which needs operator set "
                    f"{_CHANNELS_SINCE}: the model has {version} and cannot be converted ({problem})")
        return source, False
    path = os.path.join(folder, "raised.onnx")
    onnx.save(raised, path)
    return path, True


def _reader(quantization: Any, samples: Iterable[dict[str, np.ndarray]]) -> Any:
    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self._samples: Iterator[dict[str, np.ndarray]] = iter(samples)

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self._samples, None)

    return Reader()
