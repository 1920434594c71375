"""int8 by ONNX Runtime's quantizer, which is the wheel's optional extra `quantize`."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from typing import Any, Iterable, Iterator, Mapping, Sequence

import numpy as np

from .._rknn.log import Log, UsageError
from ._custom import CustomOperator, describe_results, session_with
from ._floats import remaining, too_fine
from ._network import Network, is_foreign, node_text
from ._preparing import prepare

EXTRA = "`pip install onnxruntime onnx pillow` (the extra 'quantize' of Corelane's wheel)"
_alone = threading.Lock()  # sys.stdout is the whole process's.
_NAMED = 12  # Of what stays float, in the warning.
_CHANNELS_SINCE = 13  # The operator set in which DequantizeLinear has an axis.


def real_onnxruntime(purpose: str) -> Any:
    """ONNX Runtime itself, also where corelane.alias stands in its place. UsageError when absent."""
    import corelane

    try:
        import onnxruntime
    except ImportError as problem:
        raise UsageError(f"{purpose} needs onnxruntime, which is not installed ({problem}); "
                         f"{EXTRA}") from None
    if onnxruntime is corelane:
        raise UsageError(f"{purpose} needs onnxruntime itself, and corelane.alias stands in its place; call "
                         "it in a process without that alias, or after "
                         "corelane.alias.uninstall('onnxruntime')")
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
             log: Log, operators: Mapping[str, CustomOperator] | None = None) -> bytes:
    """Bytes of the model with int8 weights, inputs, outputs and activations, as pairs of QuantizeLinear and
    DequantizeLinear; what stays float is one warning. model: a path or bytes; samples: what it is fed with
    to see its ranges; calibration: "minmax" or "entropy"; operators: custom ones by type."""
    purpose = "an int8 build"
    onnx = real_onnx(purpose)
    real_onnxruntime(purpose)
    from onnxruntime.quantization.shape_inference import quant_pre_process

    operators = operators or {}
    # The calibrator reports on stdout, which belongs to the program.
    with _alone, tempfile.TemporaryDirectory(prefix="corelane-") as folder, \
            contextlib.redirect_stdout(sys.stderr), _its_failures():
        source = _as_file(model, folder)
        given = onnx.load(source, load_external_data=False)
        _refuse_quantized(given.graph)
        custom = custom_operators(onnx, given, operators)
        if per_channel:
            source, per_channel = _with_channels(onnx, source, folder, log)
        prepared = os.path.join(folder, "prepared.onnx")
        # Its optimisations need a session of onnxruntime, which has no custom operators.
        quant_pre_process(source, prepared, skip_symbolic_shape=True, skip_optimization=bool(custom))
        _for_quantizer(onnx, prepared, operators)
        ranges = _calibrated(prepared, os.path.join(folder, "augmented.onnx"), samples, calibration,
                             {name: operators[name] for name in custom})
        return _quantized(onnx, prepared, ranges, per_channel, custom, log)


def _refuse_quantized(graph: Any) -> None:
    inputs = {i.name for i in graph.input}
    for node in graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] in inputs:
            raise UsageError(f"the model is quantized already: input {node.input[0]!r} goes into a "
                             "QuantizeLinear; build(do_quantization=False), or `corelane compile` without "
                             "--int8, keeps its scales")


@contextlib.contextmanager
def _its_failures() -> Iterator[None]:
    """Exceptions of onnx and onnxruntime have no common class; here they are a UsageError."""
    try:
        yield
    except Exception as problem:
        if type(problem).__module__.partition(".")[0] not in ("onnx", "onnxruntime"):
            raise
        raise UsageError(f"ONNX Runtime's quantizer cannot take the model: {problem}") from problem


def custom_operators(onnx: Any, model: Any, operators: Mapping[str, CustomOperator]) -> list[str]:
    """Types of the custom operators of the model. UsageError for one that nobody registered."""
    functions = [(f.domain, f.name) for f in model.functions]
    found = []
    for node in model.graph.node:
        if node.op_type not in operators and is_foreign(onnx, node, functions):
            raise UsageError(f"{node_text(node)} is a custom operator that nobody registered: give its class to "
                             "reg_custom_op() (`corelane compile --int8`: --operators FILE.py)")
        if node.op_type in operators and node.op_type not in found:
            found.append(node.op_type)
    return found


def _for_quantizer(onnx: Any, path: str, operators: Mapping[str, CustomOperator]) -> None:
    """Types and shapes after custom operators, and what prepare() does."""
    model = describe_results(onnx, onnx.load(path), operators)
    prepare(model.graph)
    onnx.save(model, path)


def _calibrated(path: str, augmented: str, samples: Iterable[dict[str, np.ndarray]], method: str,
                operators: Mapping[str, CustomOperator]) -> Any:
    """Ranges of all values of real numbers. A model with custom operators is run by Corelane."""
    from onnxruntime.quantization import calibrate

    kind = {"minmax": calibrate.MinMaxCalibrater, "entropy": calibrate.EntropyCalibrater}[method]
    calibrator = kind(path, None, augmented_model_path=augmented)
    calibrator.augment_graph()
    if operators:
        calibrator.infer_session = session_with(augmented, operators)
    else:
        calibrator.create_inference_session()
    calibrator.collect_data(_Reader(samples))
    return calibrator.compute_data()


class _Reader:
    """Samples as the calibrator asks for them."""

    def __init__(self, samples: Iterable[dict[str, np.ndarray]]):
        self._samples: Iterator[dict[str, np.ndarray]] = iter(samples)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._samples, None)


def _quantized(onnx: Any, path: str, ranges: Any, per_channel: bool, custom: Sequence[str], log: Log) -> bytes:
    from onnxruntime.quantization.calibrate import TensorData

    from ._whole import WholeQuantizer

    model = onnx.load(path)
    network = Network(onnx, model)
    spans = {name: (float(np.min(data.range_value[0])), float(np.max(data.range_value[1])))
             for name, data in ranges.items()}
    kept = too_fine(network, spans)
    for name in spans.keys() & kept.keys():  # It wants numbers for all, and makes nothing of these.
        ranges.data[name] = TensorData(lowest=np.float32(0), highest=np.float32(1))
    quantizer = WholeQuantizer(model, network, ranges, set(kept), per_channel)
    result = quantizer.quantize_model()
    quantizer.model.topological_sort()
    _describe_float_outputs(result.graph)
    texts = remaining(network, Network(onnx, result), kept, custom)
    if texts:
        log.warning("build", f"not int8, but float ({len(texts)}): " + "; ".join(texts[:_NAMED])
                    + (f"; and {len(texts) - _NAMED} more (the log names them with verbose)"
                       if len(texts) > _NAMED else ""))
        log.info("build", "not int8, but float: " + "; ".join(texts))
    return result.SerializeToString()


def _describe_float_outputs(graph: Any) -> None:
    """What an operator gives in the place of an output of the graph, before that is quantized, has its type and
    shape: those of a custom operator are known from there alone."""
    dequantized = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "DequantizeLinear"}
    quantized = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "QuantizeLinear"}
    for output in graph.output:
        name = quantized.get(dequantized.get(output.name))
        if name is not None:
            info = graph.value_info.add()
            info.CopyFrom(output)
            info.name = name


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

