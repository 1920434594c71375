"""The class RKNN."""

from __future__ import annotations

import os
import statistics
from typing import Any, Callable

import numpy as np

from .. import _native
from .._arrays import dtype_of
from .._compiling import compile as compile_model
from .._compiling import files_of, write_program
from .._rknn.door import FAILURES, PLATFORM_KEY, RuntimeDoor
from .._rknn.log import UsageError
from . import _analysis, _dataset, _quantizing
from ._config import Config
from ._custom import CustomOperator, functions_of
from ._model import LoadedModel

_OTHER_FORMATS = {
    "load_caffe": "caffe2onnx", "load_tensorflow": "tf2onnx", "load_tflite": "tf2onnx",
    "load_keras": "tf2onnx", "load_darknet": "a darknet to ONNX converter",
    "load_pytorch": "torch.onnx.export", "load_mxnet": "mxnet's ONNX exporter"}
_RUNS = 10  # Of eval_perf, after one to warm up.


class RKNN(RuntimeDoor):
    """Makes program files of ONNX models, runs and evaluates them. Functions that give 0 or -1 in the
    original do so here, with the reason in the log; config() raises. One thread at a time."""

    def __init__(self, verbose: bool = False, verbose_file: Any = None):
        super().__init__("corelane.rknn_toolkit", verbose, verbose_file)
        self._config = Config({})
        self._operators: dict[str, CustomOperator] = {}
        self._loaded: LoadedModel | None = None
        self._built: bytes | None = None
        self._batch = 1
        self._device_text = ""
        self._perf_debug = False

    # --- From a model to a program.

    def config(self, **keywords: Any) -> int:
        """Takes the keywords of docs/apis/rknn-python.md. TypeError for an unknown one, ValueError for a
        value that is not served."""
        self._config = Config(keywords)
        if self._config.hints:
            self._log.info("config", f"without effect here: {', '.join(self._config.hints)}")
        return 0

    def reg_custom_op(self, custom_op: Any) -> int:
        """Takes a class, or an object, with op_type, shape_infer() and compute(): the operator of that type,
        in models that load_onnx() takes afterwards. It is computed by it in calibration and inference here."""
        def work() -> None:
            operator = CustomOperator(custom_op)
            self._operators[operator.type] = operator
        return self._code("reg_custom_op", work)

    def load_onnx(self, model: Any, inputs: Any = None, input_size_list: Any = None,
                  input_initial_val: Any = None, outputs: Any = None) -> int:
        """Takes an ONNX model, or the part of it between the values `inputs` and `outputs`."""
        return self._code("load_onnx", lambda: self._load_onnx(model, inputs, input_size_list,
                                                               input_initial_val, outputs))

    def _load_onnx(self, model: Any, inputs: Any, sizes: Any, initial: Any, outputs: Any) -> None:
        if initial is not None:
            raise UsageError("input_initial_val is not served; make the input an initializer of the model")
        loaded = LoadedModel(model, inputs, sizes, outputs, self._operators)
        self._forget()
        self._loaded = loaded

    def _forget(self) -> None:
        self.release()
        self._loaded = self._built = self._model = None
        self._batch = 1

    def _load(self, path: Any) -> None:
        super()._load(path)
        self._loaded = self._built = None
        self._batch = 1

    def build(self, do_quantization: bool = True, dataset: Any = None, rknn_batch_size: int | None = None,
              auto_hybrid: bool = False) -> int:
        """Compiles what load_onnx() took; with do_quantization to int8, calibrated by the samples of
        `dataset`."""
        return self._code("build", lambda: self._build(do_quantization, dataset, rknn_batch_size,
                                                       auto_hybrid))

    def _build(self, do_quantization: bool, dataset: Any, batch: int | None, auto_hybrid: bool) -> None:
        if self._loaded is None:
            raise UsageError("there is no model yet; call load_onnx() first")
        counted = isinstance(batch, (int, np.integer)) and not isinstance(batch, bool) and batch >= 1
        if batch is not None and not counted:
            raise UsageError("rknn_batch_size: expected a number of samples from 1 on, or None, given "
                             f"{batch!r}")
        if auto_hybrid:
            raise UsageError("auto_hybrid is not served; leave it out")
        source: Any = self._loaded.source
        options = self._loaded.compile_options(self._config, self._log)
        if do_quantization:
            source = self._quantized(dataset)
        elif dataset is not None:
            self._log.warning("build", "dataset has no effect without do_quantization")
        if self._config.platform is not None:
            options["metadata"] = {PLATFORM_KEY: self._config.platform}
        self.release()
        self._built = compile_model(source, batch=batch or 1, **options)
        self._model, self._batch = self._built, batch or 1

    def _quantized(self, dataset: Any) -> bytes:
        assert self._loaded is not None
        if dataset is None:
            raise UsageError("do_quantization needs a dataset: a text file that lists pictures or .npy "
                             "files; build(do_quantization=False) makes a float program")
        reader = self._reader()
        samples = _dataset.read_dataset(dataset, len(self._loaded.inputs))
        self._log.info("build", f"int8, calibrated by {len(samples)} samples")
        return _quantizing.quantize(self._loaded.source, (reader.read(s) for s in samples),
                                    self._config.calibration, self._config.per_channel, self._log,
                                    self._operators)

    def _reader(self) -> _dataset.SampleReader:
        assert self._loaded is not None
        inputs = self._loaded.sample_inputs(self._config, self._log)
        return _dataset.SampleReader(inputs, self._config.rgb_to_bgr, self._log)

    def export_rknn(self, export_path: Any, cpp_gen_cfg: Any = None) -> int:
        """Writes the program file, at once or not at all."""
        return self._code("export_rknn", lambda: self._export(export_path, cpp_gen_cfg))

    def _export(self, path: Any, cpp_gen_cfg: Any) -> None:
        if cpp_gen_cfg is not None:
            raise UsageError("cpp_gen_cfg is not served; examples/ has C and C++ programs to start from")
        if self._built is None:
            raise UsageError("there is no program yet; call build() first")
        write_program(os.fsdecode(path), self._built, files_of(self._loaded.given) if self._loaded else [])

    # --- On a device.

    def init_runtime(self, target: Any = None, device_id: Any = None, perf_debug: bool = False,
                     eval_mem: bool = False, async_mode: bool = False,
                     core_mask: int = RuntimeDoor.NPU_CORE_AUTO, fallback_prior_device: str = "cpu") -> int:
        """Opens what build() made or load_rknn() took: on the simulator of the target platform, on the
        device that CORELANE_DEVICE names, or on `target` when that is a device ("virtual:generic:4")."""
        def work() -> None:
            self._perf_debug = bool(perf_debug)
            self._device_text = self._device(target, device_id, self._platform())
            self._open(self._device_text, core_mask, async_mode)
        return self._code("init_runtime", work)

    def _functions(self) -> dict[str, Callable[..., Any]]:
        if not self._operators:
            return {}
        present = _native.describe(self._model, {"custom_operators": ["*"]})["custom_operators"]
        return functions_of({name: op for name, op in self._operators.items() if name in present})

    def _platform(self) -> str:
        if self._config.platform is not None or self._model is None:
            return self._config.platform or "rk3588"
        return _native.describe(self._model)["metadata"].get(PLATFORM_KEY, "rk3588")

    def eval_perf(self, inputs: Any = None, data_type: Any = None, data_format: Any = None,
                  is_print: bool = True, loop_cnt: int = _RUNS, fix_freq: bool = True) -> str | None:
        """A text with the time of one inference, and with init_runtime(perf_debug=True) of its layers. It is
        measured where the device runs: on the simulator it is this machine's time, not a chip's."""
        return self._report("eval_perf", is_print, lambda: self._perf_text(int(loop_cnt)))

    def _report(self, where: str, is_print: bool, work: Callable[[], Any]) -> Any:
        if self._runtime is None:
            self._log.error(where, "there is no runtime; call init_runtime() first")
            return None
        try:
            text = work()
        except FAILURES as problem:
            self._log.error(where, problem)
            return None
        if is_print:
            print(text)
        return text

    def _perf_text(self, runs: int) -> str:
        if runs < 1:
            raise UsageError(f"loop_cnt: {runs} is below 1")
        if self._functions():
            raise UsageError("the model has custom operators, and their time here would be that of Python "
                             "functions; measure it with rknn_run and operators in C")
        probe = _native.Probe(self._model, self._device_text, [], self._perf_debug)
        feed = [_zeros(desc) for desc in _static_inputs(self._model)]
        times = []
        for _ in range(runs + 1):
            probe.run(feed)
            times.append(probe.device_us)
        total = statistics.median(times[1:])
        lines = [f"Device: {self._device_text}", f"Runs: {runs}", f"Total Time(us): {total:.0f}",
                 f"FPS: {1e6 / total:.2f}" if total > 0 else "FPS: -"]
        if self._perf_debug:
            layers = [layer for layer in probe.layer_times() if layer["executed"]]
            lines += ["", f"{'ID':>4} {'OpType':<20} {'DataType':<9} {'Time(us)':>10}  FullName"]
            lines += [f"{i:>4} {layer['type']:<20} {layer['dtype']:<9} {layer['us']:>10.1f}  {layer['name']}"
                      for i, layer in enumerate(layers)]
        return "\n".join(lines)

    def eval_memory(self, is_print: bool = True) -> dict[str, int] | None:
        """Bytes that the program holds on the device: weight_memory, internal_memory, other_memory,
        total_memory; model_size is the program's own."""
        found: dict[str, int] = {}

        def work() -> str:
            assert self._runtime is not None
            memory = self._runtime.session.memory()
            found.update(weight_memory=memory["weights"], internal_memory=memory["internal"],
                         other_memory=memory["code"] + memory["buffers"])
            found["total_memory"] = sum(found.values())
            size = os.path.getsize(self._model) if isinstance(self._model, str) else len(self._model)
            found["model_size"] = size
            return "\n".join(f"{key}: {value / 2**20:.2f} MiB" for key, value in found.items())

        return None if self._report("eval_memory", is_print, work) is None else found

    def accuracy_analysis(self, inputs: Any, output_dir: Any = "./snapshot", target: Any = None,
                          device_id: Any = None) -> int:
        """Compares outputs and inner values with onnxruntime's of the float model, on one sample: a list
        with a picture, .npy file or array for each input. Writes error_analysis.txt and .json."""
        return self._code("accuracy_analysis", lambda: self._analyse(inputs, output_dir, target, device_id))

    def _analyse(self, inputs: Any, folder: Any, target: Any, device_id: Any) -> None:
        if self._loaded is None or self._built is None:
            raise UsageError("the float model is the reference: call load_onnx() and build() first")
        if self._batch != 1:
            raise UsageError("it compares single samples; build without rknn_batch_size")
        if self._functions():
            raise UsageError("onnxruntime is the reference, and it has no custom operators; compare inference() "
                             "with results of your own")
        if isinstance(inputs, (str, os.PathLike)) and str(inputs).endswith(".txt"):
            inputs = _dataset.read_dataset(inputs, len(self._loaded.inputs))[0]
        if not isinstance(inputs, (list, tuple)):
            raise UsageError("inputs: expected a list with one file or array for each input, given "
                             f"{inputs!r}")
        device = self._device(target, device_id, self._platform())
        feed = self._reader().read(inputs)
        shared, lost = _analysis.inner_values(self._loaded.source, self._built)
        reference = _analysis.golden(self._loaded.source, feed, shared)
        found = _analysis.run_program(self._built, device, feed, shared)
        rows = _analysis.compare(reference, found)
        inner = len(rows) - len(shared)
        text = _analysis.write_report(os.fsdecode(folder or "./snapshot"), rows[:inner], rows[inner:], lost,
                                      f"program on {device} against onnxruntime's float results")
        self._log.info("accuracy_analysis", "\n" + text)

    def list_devices(self) -> tuple[list, list]:
        """Boards attached by USB or adb are not searched for: two empty lists."""
        return [], []

    # --- What is not served.

    def _refused(self, name: str, remedy: str) -> int:
        self._log.error(name, f"not served; {remedy}")
        return -1

    def hybrid_quantization_step1(self, *_: Any, **__: Any) -> int:
        """Not served: -1."""
        return self._refused("hybrid_quantization_step1",
                             "quantize the ONNX model with nodes_to_exclude of ONNX Runtime's quantizer, and "
                             "build(do_quantization=False)")

    def hybrid_quantization_step2(self, *_: Any, **__: Any) -> int:
        """Not served: -1."""
        return self._refused("hybrid_quantization_step2", "see hybrid_quantization_step1")

    def export_encrypted_rknn_model(self, *_: Any, **__: Any) -> int:
        """Not served: -1."""
        return self._refused("export_encrypted_rknn_model",
                             "program files are not encrypted; use export_rknn()")

    def codegen(self, *_: Any, **__: Any) -> int:
        """Not served: -1."""
        return self._refused("codegen", "examples/ has C and C++ programs to start from")


def _other_format(name: str, tool: str) -> Callable[..., int]:
    def load(self: RKNN, *_: Any, **__: Any) -> int:
        return self._refused(name, f"convert the model to ONNX (with {tool}) and call load_onnx()")

    load.__name__, load.__doc__ = name, "Not served: -1, with the way to ONNX in the log."
    return load


for _name, _tool in _OTHER_FORMATS.items():
    setattr(RKNN, _name, _other_format(_name, _tool))


def _static_inputs(model: Any) -> list[dict]:
    """Open dimensions as 1, or those of the first shape set."""
    description = _native.describe(model)
    inputs = description["inputs"]
    sets = description["shape_sets"]
    return [{**desc, "shape": sets[0][i] if sets else [d if isinstance(d, int) else 1 for d in desc["shape"]]}
            for i, desc in enumerate(inputs)]


def _zeros(desc: dict) -> np.ndarray:
    return np.zeros(desc["shape"], dtype_of(desc["type"]))
