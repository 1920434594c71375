"""InferenceSession: onnxruntime's class over the native session."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import json
import os
import threading
import time
import warnings
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from . import _arrays, _native, _options
from ._binding import IOBinding
from ._errors import InvalidArgument, NoSuchFile, StatusError, driver_text, numbered, translated
from ._errors import NotImplemented as NotSupported
from ._settings import SessionOptions, read_run_options
from ._values import ModelMetadata, NodeArg, OrtValue, check_device

_POLL = 0.05  # Seconds between looks for Ctrl-C.
_RETRY = 1  # Microseconds: a submission that does not wait.


class RunFuture(concurrent.futures.Future):
    """The result of one submitted call: a list of arrays. cancel() works until the task starts."""

    def __init__(self, native: Any, strict: bool):
        super().__init__()
        self._native, self._strict = native, strict
        self._settling = threading.RLock()
        self._withdrawn = False
        native.then(self._settle)

    @property
    def task_id(self) -> int:
        return self._native.task_id

    def cancel(self) -> bool:
        with self._settling:
            if self.done():
                return self.cancelled()
            self._withdrawn = self._native.cancel()
            return self._withdrawn and super().cancel()

    def result(self, timeout: float | None = None) -> list:
        self._wait(timeout)
        return super().result(0 if timeout is not None else None)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._wait(timeout)
        return super().exception(0 if timeout is not None else None)

    def _wait(self, timeout: float | None) -> None:
        """Waits for the task itself, so that a callback, whose thread settles futures, may wait too."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.done():
            left = _POLL if end is None else min(_POLL, end - time.monotonic())
            if self._native.wait(max(left, 0)):
                try:
                    self._settle(self._native.get(), None)
                except StatusError as problem:
                    self._settle(None, problem)
            elif left <= 0:
                return

    def _settle(self, outputs: Any, problem: Any) -> None:
        with self._settling:  # The callback thread and those that wait meet here.
            if self.done() or self._withdrawn or not self.set_running_or_notify_cancel():
                return
            if problem is None:
                self.set_result(outputs)
            else:
                self.set_exception(translated(problem, self._strict))


class InferenceSession:
    """A model on a device, run by many callers at once.

    path_or_bytes: a path, or bytes of an ONNX model or a program file. providers: without an RKNN
    provider the rules are onnxruntime's; with "RKNPU2ExecutionProvider" inputs are converted, and
    options such as schedule apply (docs/apis/python.md). weights_from (or use_weight_from): a session
    whose constants a program without its own takes. Any thread; `with` closes it."""

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None, providers: Any = None,
                 provider_options: Any = None, **kwargs: Any):
        self._options = SessionOptions() if sess_options is None else sess_options
        if not isinstance(self._options, SessionOptions):
            raise TypeError(f"sess_options: SessionOptions is needed, {type(sess_options).__name__} was given")
        source = self._source(path_or_bytes)
        pairs = self._pairs(providers, provider_options)
        self._providers, self._provider, self._given = _options.choose_provider(pairs)
        self._strict = self._provider not in _options.RKNN_PROVIDERS
        weights = kwargs.get("weights_from", kwargs.get("use_weight_from"))
        if weights is not None and not isinstance(weights, InferenceSession):
            raise TypeError(f"weights_from: an InferenceSession is needed, {type(weights).__name__} was given")
        self._native = self._create(source, None if weights is None else weights._native)
        for text in self._native.warnings():
            warnings.warn(text, UserWarning, stacklevel=2)
        self._inputs = [self._node(d) for d in self._native.inputs()]
        self._outputs = [self._node(d) for d in self._native.outputs()]
        self._source_is_path = isinstance(source, str)
        self._profile_start = 0
        if self._options.enable_profiling:
            self._native.set_trace(65536)
            self._profile_start = time.monotonic_ns()

    # --- Making it.

    @staticmethod
    def _source(path_or_bytes: Any) -> Any:
        if isinstance(path_or_bytes, (str, os.PathLike)):
            path = os.fsdecode(path_or_bytes)
            if not os.path.isfile(path):
                raise numbered(NoSuchFile, f"Load model from {path} failed:Load model {path} failed. "
                                           "File doesn't exist")
            return path
        if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            if len(path_or_bytes) == 0:
                raise numbered(InvalidArgument, "model data must not be empty")
            return path_or_bytes
        raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")

    @staticmethod
    def _pairs(providers: Any, provider_options: Any) -> list:
        try:
            return _options.split_providers(providers, provider_options)
        except ValueError as problem:
            names = [providers] if isinstance(providers, str) else list(providers or [])
            names = [p[0] if isinstance(p, tuple) else p for p in names]
            if any(name in _options.RKNN_PROVIDERS for name in names):
                raise InvalidArgument(str(problem)) from None
            warnings.warn(f"{problem} Falling back to {_options.CPU_PROVIDER}.", UserWarning, stacklevel=3)
            return []

    def _create(self, source: Any, weights: Any) -> Any:
        try:
            entries = self._options._corelane_entries()
            if self._strict:
                options = _options.strict_session_options(entries, self._options.intra_op_num_threads)
            else:
                options = _options.rknn_session_options({**entries, **self._given})
            options["dims"] = self._options._dims
            operators = {**self._options._operators, **options.get("custom_operators", {})}
            if operators:
                options["custom_operators"] = operators
            return _native.Session(source, options, weights)
        except StatusError as error:
            raise translated(error, self._strict, "rknn_init") from None

    def _node(self, description: dict) -> NodeArg:
        four = len(description["shape"]) == 4
        nhwc = description["layout"] == "nhwc"
        return NodeArg(description, ("NHWC" if nhwc else "NCHW") if four else "UNDEFINED")

    def _translated(self, error: StatusError) -> Exception:
        return translated(error, self._strict)

    # --- Running it.

    def run(self, output_names: Sequence[str] | None, input_feed: Any, run_options: Any = None) -> list:
        """Runs and waits. output_names: None or [] for all, in model order. Ctrl-C ends the wait."""
        try:
            if run_options is None:
                return self._native.run(output_names, input_feed)
            terms, batch = read_run_options(run_options)
            return self._native.run(output_names, input_feed, terms, batch)
        except StatusError as error:
            raise self._explained(error, output_names, input_feed) from None

    def run_async(self, output_names: Sequence[str] | None, input_feed: Any, callback: Callable,
                  user_data: Any, run_options: Any = None) -> None:
        """Submits a copy of the inputs; callback(outputs, user_data, "") comes from another thread, or
        callback([], user_data, text) (None instead of [] with an RKNN provider)."""
        if not callable(callback):
            raise TypeError(f"callback: a function is needed, {type(callback).__name__} was given")
        nothing = [] if self._strict else None
        strict = self._strict  # A callback must not keep the session alive.

        def done(outputs: Any, problem: StatusError | None) -> None:
            callback(nothing if problem is not None else outputs, user_data,
                     "" if problem is None else _said(problem, strict))

        terms, batch = read_run_options(run_options)
        self._check_names(output_names, input_feed)
        try:
            self._native.run_async(output_names, input_feed, done, terms, batch)
        except StatusError as error:
            raised = self._explained(error, output_names, input_feed)
            if not self._strict or error.code not in (106, 107):
                raise raised from None
            # onnxruntime looks at shapes and types when the work starts.
            text = str(raised).split(" : ", 3)[-1]
            refused = functools.partial(callback, nothing, user_data, text)
            threading.Thread(target=_native.call_guarded, args=(refused,), name="corelane-refused").start()

    def try_run_async(self, output_names: Sequence[str] | None, input_feed: Any, callback: Callable,
                      user_data: Any = None, run_options: Any = None) -> int | None:
        """run_async without waiting: the task's number, or None when it is too early or full."""
        if not callable(callback):
            raise TypeError(f"callback: a function is needed, {type(callback).__name__} was given")
        terms = _single(read_run_options(run_options))
        strict = self._strict  # A callback must not keep the session alive.

        def done(outputs: Any, problem: StatusError | None) -> None:
            callback(outputs, user_data, "" if problem is None else _said(problem, strict))

        try:
            return self._native.try_run_async(output_names, input_feed, done, terms)
        except StatusError as error:
            raise self._explained(error, output_names, input_feed) from None

    def submit(self, output_names: Sequence[str] | None, input_feed: Any, run_options: Any = None) -> RunFuture:
        """Submits a copy of the inputs and returns its future."""
        terms, batch = read_run_options(run_options)
        try:
            native = self._native.submit(output_names, input_feed, terms, batch)
        except StatusError as error:
            raise self._explained(error, output_names, input_feed) from None
        return RunFuture(native, self._strict)

    async def run_awaitable(self, output_names: Sequence[str] | None, input_feed: Any,
                            run_options: Any = None) -> list:
        """The same for asyncio. While the queue is full a thread of the loop's executor waits. A cancelled
        await takes its task along, unless that runs."""
        terms, batch = read_run_options(run_options)
        own = _native.Terms() if terms is None else None

        def submit() -> RunFuture:
            native = self._native.submit(output_names, input_feed, terms or own, batch)
            return RunFuture(native, self._strict)

        try:
            future = None
            if own is not None:
                future = self._submitted_at_once(own, submit)
            if future is None:
                future = await asyncio.get_running_loop().run_in_executor(None, submit)
        except StatusError as error:
            raise self._explained(error, output_names, input_feed) from None
        except asyncio.CancelledError:
            if own is not None:
                own.terminate()  # The thread that waits for room gives up.
            raise
        return await asyncio.wrap_future(future)

    @staticmethod
    def _submitted_at_once(terms: Any, submit: Callable[[], RunFuture]) -> RunFuture | None:
        """None when there is no room for it."""
        terms.submit_timeout_us = _RETRY
        try:
            return submit()
        except StatusError as error:
            if error.code != 401:
                raise
            return None
        finally:
            terms.submit_timeout_us = 0

    def run_pipeline(self, input_feed: Any, depth: int = 3, reset: bool = False,
                     output_names: Sequence[str] | None = None, run_options: Any = None) -> list | None:
        """Submits, and returns the outputs of the call `depth` calls ago; None for the first ones."""
        if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or depth < 0:
            raise TypeError(f"depth: a positive integer is needed, {depth!r} was given")
        terms = _single(read_run_options(run_options))
        try:
            return self._native.run_pipeline(output_names, input_feed, int(depth), bool(reset), terms)
        except StatusError as error:
            raise self._explained(error, output_names, input_feed) from None

    def flush(self) -> list[list]:
        """Waits for what the pipeline holds and returns it in order; raises the first failure."""
        results = self._native.flush()
        for result in results:
            if isinstance(result, StatusError):
                raise self._translated(result)
        return results

    def drain(self) -> None:
        """flush() without the results."""
        self.flush()

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Any = None) -> list[OrtValue]:
        return [OrtValue(a) for a in self.run(output_names, dict(input_dict_ort_values), run_options)]

    def run_with_ortvaluevector(self, *_: Any, **__: Any) -> None:
        raise NotSupported("run_with_ortvaluevector is not served; use io_binding()")

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        if not isinstance(iobinding, IOBinding) or iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        iobinding._run(read_run_options(run_options)[0])

    def _check_names(self, output_names: Any, input_feed: Any) -> None:
        """What onnxruntime finds wrong before it starts."""
        if isinstance(input_feed, Mapping):
            names = {node.name for node in self._inputs}
            missing = [node.name for node in self._inputs if node.name not in input_feed]
            if missing:
                raise self._missing(missing, input_feed)
            for name in input_feed:
                if name not in names:
                    raise self._worded(InvalidArgument, f"Invalid input name: {name}")
        if output_names and not isinstance(output_names, str):
            known = {node.name for node in self._outputs}
            for name in output_names:
                if name not in known:
                    raise self._worded(InvalidArgument, f"Invalid output name:{name}" if self._strict else
                                       f"Unknown output name: {name}; the model has {', '.join(sorted(known))}")

    def _missing(self, missing: list, feed: Mapping) -> Exception:
        if not self._strict:
            return InvalidArgument(f"Missing input: {missing[0]}; required {[n.name for n in self._inputs]}, "
                                   f"given {list(feed)}")
        return ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")

    def _worded(self, kind: type, text: str) -> Exception:
        return numbered(kind, text) if self._strict else kind(text)

    def _explained(self, error: StatusError, output_names: Any, feed: Any) -> Exception:
        """A failure of a call in the words of onnxruntime, where it has some."""
        if error.code not in (101, 102, 106, 107):
            return self._translated(error)
        try:
            self._check_names(output_names, feed)
        except (ValueError, RuntimeError) as found:
            return found
        if self._strict and isinstance(feed, Mapping) and error.code in (106, 107):
            for node in self._inputs:
                text = _mismatch(node, feed[node.name])
                if text:
                    return numbered(InvalidArgument, text)
        return self._translated(error)

    # --- What it is.

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._outputs)

    @property
    def input_names(self) -> list[str]:
        return [node.name for node in self._inputs]

    @property
    def output_names(self) -> list[str]:
        return [node.name for node in self._outputs]

    def get_native_inputs(self) -> list[NodeArg]:
        """As the program has them: quantized types with scale and zero point."""
        return [self._node(d) for d in self._native.native_inputs()]

    def get_native_outputs(self) -> list[NodeArg]:
        return [self._node(d) for d in self._native.native_outputs()]

    def get_overridable_initializers(self) -> list[NodeArg]:
        return []

    def get_modelmeta(self) -> ModelMetadata:
        description = self._native.description()
        meta = ModelMetadata()
        meta.custom_metadata_map = dict(description["metadata"])
        if not self._strict:
            meta.custom_metadata_map["rknn_custom_string"] = description["custom_string"]
        meta.graph_name = description["name"]
        # Programs of earlier versions have the producer's name and version in one text.
        meta.producer_name = description["producer_name"] or description["producer"]
        meta.domain, meta.description = description["domain"], description["description"]
        meta.graph_description = description["graph_description"]
        if description["version"] is not None:
            meta.version = description["version"]
        return meta

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """What is in force, as texts."""
        effective: dict[str, str] = {}
        if not self._strict:
            for key, value in self._native.options().items():
                if isinstance(value, list):
                    value = ",".join(map(str, value))
                effective[key] = str(value).lower() if isinstance(value, bool) else str(value)
            effective["device"] = self._native.device()["instance"]
        return {name: effective if name == self._provider else {} for name in self._providers}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """Only providers of the same rules: a session stays on its device."""
        pairs = _options.split_providers(providers, provider_options)
        for name, _ in pairs:
            if name not in _options.RKNN_PROVIDERS and name != _options.CPU_PROVIDER:
                raise RuntimeError(f"Unknown Provider Type: {name}")
        if pairs and (pairs[0][0] in _options.RKNN_PROVIDERS) == self._strict:
            raise NotSupported("a session cannot change its provider; make a new one")

    def disable_fallback(self) -> None:
        """There is nothing to fall back to."""

    def enable_fallback(self) -> None:
        """There is nothing to fall back to."""

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_profiling_start_time_ns(self) -> int:
        return self._profile_start

    def end_profiling(self) -> str:
        """Writes the device's records as a Chrome trace and returns the file's name; '' when off."""
        if not self._options.enable_profiling or not self._profile_start:
            return ""
        events = [{"cat": "Session", "ph": "X", "pid": os.getpid(), "tid": record["core_bits"],
                   "name": f"task {record['task_id']}", "ts": record["started_ns"] / 1000,
                   "dur": (record["ended_ns"] - record["started_ns"]) / 1000,
                   "args": {"queued_us": (record["started_ns"] - record["queued_ns"]) / 1000}}
                  for record in self._native.read_trace()]
        name = f"{self._options.profile_file_prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}"
        for number in range(10_000):  # Another session may end in the same second.
            path = f"{name}{f'_{number}' if number else ''}.json"
            try:
                file = open(path, "x", encoding="utf-8")
            except FileExistsError:
                continue
            break
        else:
            raise RuntimeError(f"{name}.json and ten thousand more names are taken; remove old profiles")
        with file:
            json.dump(events, file)
        self._native.set_trace(0)
        self._profile_start = 0
        return path

    def statistics(self) -> dict[str, Any]:
        """Figures since the session was made: tasks accepted, failed, by context, ..."""
        return self._native.statistics()

    def set_trace(self, records: int) -> None:
        """Keeps the last `records` records of each core of the device; 0 switches it off. The ring is the
        device's: sessions that share it see each other's tasks."""
        if not isinstance(records, (int, np.integer)) or not 0 <= records < 2**63:
            raise ValueError(f"records: an integer from 0 on is needed, {records!r} was given")
        self._traced(self._native.set_trace, int(records))

    def read_trace(self) -> list[dict[str, Any]]:
        """task_id, core_bits, queue_depth, code (0: done) and the times queued_ns, started_ns, ended_ns."""
        return self._traced(self._native.read_trace)

    def _traced(self, function: Callable, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except StatusError as error:
            raise self._translated(error) from None

    def device(self) -> dict[str, Any]:
        return self._native.device()

    def get_input_memory_infos(self) -> list:
        raise NotSupported("memory infos are not served: inputs and outputs are in 'cpu' memory")

    get_output_memory_infos = get_input_epdevices = get_input_memory_infos

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotSupported("this member of InferenceSession is not served by corelane; "
                           "docs/apis/python.md lists what is")

    get_provider_graph_assignment_info = get_tuning_results = set_tuning_results = _refuse
    set_ep_dynamic_options = release_captured_graph = _refuse

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: Any, device_type: str,
                                            device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        check_device(device_type, device_id)
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type)

    # --- Ending it.

    def close(self, timeout: float | None = None) -> None:
        """Refuses new calls and waits until accepted tasks are done and called back; Timeout after
        `timeout` seconds."""
        try:
            self._native.close(timeout)
        except StatusError as error:
            raise self._translated(error) from None

    @property
    def closed(self) -> bool:
        return self._native.closed

    def __enter__(self) -> "InferenceSession":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _single(options: tuple[Any, bool]) -> Any:
    """The terms of a call that takes one sample."""
    terms, batch = options
    if batch:
        raise InvalidArgument("ztu_modelrt_dispatch_batch: run, run_async, submit and run_awaitable split a batch; "
                              "this call takes one sample")
    return terms


def _said(problem: StatusError, strict: bool) -> str:
    """A failure as callbacks are told of it."""
    return str(problem) if strict else driver_text(problem, "rknn_run")


def _mismatch(node: NodeArg, value: Any) -> str | None:
    """What onnxruntime says of an input that does not fit; None when it fits."""
    if not hasattr(value, "dtype"):
        value = value.numpy() if isinstance(value, OrtValue) else np.asarray(value)
    try:
        actual = _arrays.type_name(_arrays.number_of(value.dtype))
    except RuntimeError:
        actual = "tensor(string)"
    if actual != node.type:
        return f"Unexpected input data type. Actual: ({actual}) , expected: ({node.type})"
    shape = value.shape
    if len(shape) != len(node.shape):
        return (f"Invalid rank for input: {node.name} Got: {len(shape)} Expected: {len(node.shape)} "
                "Please fix either the inputs/outputs or the model.")
    wrong = [f" index: {i} Got: {got} Expected: {want}" for i, (got, want) in enumerate(zip(shape, node.shape))
             if isinstance(want, int) and got != want]
    if wrong:
        return (f"Got invalid dimensions for input: {node.name} for the following indices\n" + "\n".join(wrong)
                + "\n Please fix either the inputs/outputs or the model.")
    return None
