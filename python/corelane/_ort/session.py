"""InferenceSession: onnxruntime's class over the native session."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import time
import warnings
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from .. import _arrays, _native
from .._errors import (InvalidArgument, InvalidProtobuf, NoSuchFile, StatusError, numbered, translated,
                       unreadable)
from .._native import Code
from .binding import IOBinding
from .described import Described, Shown
from .foreign import read_run_options, session_options
from .futures import RunFuture, Submission
from .given_model import GivenModel
from .inner import OrtValueVector
from .options import (check_once, choose_provider, copied, rknn_session_options, split_providers,
                      strict_session_options)
from .original_options import take_original
from .overriding import Overriding
from .profile import Profile
from .providers import CPU_PROVIDER, RKNN_PROVIDERS, named
from .settings import RunOptions, SessionOptions
from .values import OrtValue
from .wording import Wording, callback_text, listed, single

_MISSING: Any = object()
# Failures that run_async reports by callback, as onnxruntime does, which looks when the work starts.
_LATE = (Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.SHAPE_MISMATCH, Code.TYPE_MISMATCH, Code.CANCELLED)


class InferenceSession(Described):
    """A model on a device, run by many callers at once.

    path_or_bytes: a path, or bytes of an ONNX model or a program file. providers: without an RKNN
    provider onnxruntime's rules apply; with "RKNPU2ExecutionProvider" inputs are converted, and
    options such as schedule apply (docs/apis/python.md). weights_from (or use_weight_from): a session
    whose constants a program without its own takes. Any thread; `with` closes it."""

    _value_class = OrtValue  # Of outputs.

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None, providers: Any = None,
                 provider_options: Any = None, **kwargs: Any):
        before = set(vars(self))  # Of a class made from this one.
        given = None if sess_options is None else session_options(sess_options)._copied()
        source = self._source(path_or_bytes)
        model = GivenModel(source, given)
        self._options = model.options
        pairs = self._pairs(providers, provider_options)
        self._providers, self._provider, self._given = choose_provider(pairs)
        self._strict = self._provider not in RKNN_PROVIDERS
        sources = [kwargs[name] for name in ("weights_from", "use_weight_from") if kwargs.get(name) is not None]
        if len(sources) > 1:
            raise TypeError("weights_from and use_weight_from are two names for one thing; give one of them")
        weights = sources[0] if sources else None
        if weights is not None and not isinstance(weights, InferenceSession):
            raise TypeError(f"weights_from: expected an InferenceSession, given {type(weights).__name__}")
        self._calls: RunOptions | None = None  # For calls without run_options.
        self._unreturned: list = []  # Results that flush() held back when one of them was a failure.
        self._native = self._create(model, None if weights is None else weights._native)
        self._assigned = model.assigned_nodes(self._provider)
        model.write_optimized()
        for text in self._native.warnings():
            warnings.warn(text, UserWarning, stacklevel=2)
        self._inputs = [self._node(d) for d in self._native.inputs()]
        self._outputs = [self._node(d) for d in self._native.outputs()]
        self._overridable = [self._node(d) for d in self._native.description()["overridable"]]
        self._wording = Wording(self._strict, self._inputs, self._outputs, self._overridable)
        options = self._options
        self._profile = Profile(self._native, options.profile_file_prefix) if options.enable_profiling else None
        self._model_path = source if isinstance(source, str) else None  # Tools of onnxruntime read it.
        path = os.path.abspath(source) if isinstance(source, str) else None
        self._recipe = (path, given, copied(providers), copied(provider_options), kwargs)
        self._members = set(vars(self)) - before | {"_members"}

    # --- Making it.

    @staticmethod
    def _source(path_or_bytes: Any) -> Any:
        if isinstance(path_or_bytes, (str, os.PathLike)):
            path = os.fsdecode(path_or_bytes)
            if os.path.exists(path) and not os.path.isfile(path):
                raise numbered(InvalidProtobuf, f"Load model from {path} failed: {unreadable(path)}; give the path "
                                                "of an ONNX model or a program file")
            if not os.path.isfile(path):
                raise numbered(NoSuchFile, f"Load model from {path} failed:Load model {path} failed. "
                                           "File doesn't exist")
            if not path.isprintable() and any("\udc80" <= c <= "\udcff" for c in path):
                raise numbered(InvalidArgument, f"{path!r} is not valid UTF-8; rename the file, or give its "
                                                "bytes")
            if os.path.getsize(path) == 0:
                raise numbered(InvalidArgument, f"Load model from {path} failed:No graph was found in the protobuf. "
                                                "The file is empty; write the model again")
            return path
        if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            if len(path_or_bytes) == 0:
                raise numbered(InvalidArgument, "model data must not be empty")
            return path_or_bytes
        raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")

    @staticmethod
    def _pairs(providers: Any, provider_options: Any) -> list:
        try:
            return named(split_providers(providers, provider_options))
        except ValueError as problem:
            names = [providers] if isinstance(providers, str) else list(providers or [])
            names = [p[0] if isinstance(p, tuple) else p for p in names]
            if any(name in RKNN_PROVIDERS for name in names):
                raise InvalidArgument(str(problem)) from None
            warnings.warn(f"{problem} Falling back to {CPU_PROVIDER}.", UserWarning, stacklevel=3)
            return []

    def _create(self, model: GivenModel, weights: Any) -> Any:
        try:
            entries = self._options._corelane_entries()
            if self._strict:
                options = strict_session_options(entries, self._options.intra_op_num_threads)
            else:
                check_once(entries, self._given)
                given, self._calls = take_original({**entries, **self._given}, self._provider)
                options = rknn_session_options(given)
            options["dims"] = dict(self._options._dims)
            options["data_root"] = model.data_root
            check_once(self._options._operators, options.get("custom_operators", {}))
            operators = {**self._options._operators, **options.get("custom_operators", {})}
            if operators:
                options["custom_operators"] = operators
            native = self._made(model.source, options, weights)
        except StatusError as error:
            raise translated(error, self._strict, "rknn_init") from None
        names = [d["name"] for d in native.description()["overridable"]]
        remade = functools.partial(self._remade, self._strict, options)
        self._overriding = Overriding(names, model, remade) if names else None
        return native

    @staticmethod
    def _remade(strict: bool, options: dict, source: bytes, data_root: str | None) -> Any:
        """Static, since what overrides initializers must not keep the session."""
        try:
            return InferenceSession._made(source, {**options, "data_root": data_root}, None)
        except StatusError as error:
            raise translated(error, strict, "rknn_init") from None

    def _serving(self, input_feed: Any) -> Any:
        """The native session for a feed, which may override initializers."""
        return self._overriding and self._overriding.session_for(input_feed) or self._native

    @staticmethod
    def _made(source: Any, options: dict, weights: Any) -> Any:
        """The native session. Sizes of dimensions that no input has are dropped, as onnxruntime does."""
        while True:
            try:
                return _native.Session(source, options, weights)
            except StatusError as error:
                unknown = error.details.get("dimension") if error.code is Code.NOT_FOUND else None
                if options["dims"].pop(unknown, None) is None:
                    raise

    def _translated(self, error: StatusError) -> Exception:
        return translated(error, self._strict)

    def __getstate__(self) -> tuple:
        """How it was made, and what a class made from this one added: pickle and deepcopy make it anew, from the
        file that is at the path then. TypeError for one that was made from bytes."""
        if self._recipe[0] is None:
            raise TypeError(f"cannot pickle this {type(self).__name__}: it was made from bytes; make it from a "
                            "path, or send the bytes and make a session of them there")
        return self._recipe, {name: value for name, value in vars(self).items() if name not in self._members}

    def __setstate__(self, state: tuple) -> None:
        (path, options, providers, provider_options, more), added = state
        InferenceSession.__init__(self, path, options, providers, provider_options, **more)
        self.__dict__.update(added)

    def __copy__(self) -> "InferenceSession":
        """Another name for the same session; deepcopy makes one anew."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    # --- Running it.

    def _terms(self, run_options: Any) -> tuple[Any, bool]:
        return read_run_options(self._calls if run_options is None else run_options, self._strict)

    def run(self, output_names: Sequence[str] | None, input_feed: Any, run_options: Any = None) -> list:
        """Runs and waits. output_names: None or [] for all, in model order. Ctrl-C ends the wait."""
        output_names = listed(output_names)
        try:
            if run_options is None and self._calls is None:
                return self._serving(input_feed).run(output_names, input_feed)
            terms, batch = self._terms(run_options)
            return self._serving(input_feed).run(output_names, input_feed, terms, batch)
        except StatusError as error:
            raise self._wording.explained(error, output_names, input_feed) from None

    def _run_plain(self, *arguments: Any) -> list:
        """run(): a class made from this one may have one that returns something else, or calls this."""
        return InferenceSession.run(self, *arguments)

    def run_async(self, output_names: Sequence[str] | None, input_feed: Any, callback: Callable,
                  user_data: Any = _MISSING, run_options: Any = None) -> None:
        """Submits a copy of the inputs; callback(outputs, user_data, "") comes from another thread, or
        callback([], user_data, text) (None instead of [] with an RKNN provider, where user_data may be left
        out too)."""
        if user_data is _MISSING:
            if self._strict:
                raise TypeError("run_async() missing 1 required positional argument: 'user_data'; give None where "
                                "the callback needs none")
            user_data = None
        nothing = [] if self._strict else None
        done = self._reporting(callback, user_data, nothing)
        terms, batch = self._terms(run_options)
        output_names = listed(output_names)
        if self._strict:
            self._wording.check_missing(input_feed)
        else:
            self._wording.check_names(output_names, input_feed)
        try:
            self._serving(input_feed).run_async(output_names, input_feed, done, terms, batch)
        except StatusError as error:
            raised = self._wording.explained(error, output_names, input_feed)
            if not self._strict or error.code not in _LATE:
                raise raised from None
            text = getattr(raised, "text", str(raised))
            refused = functools.partial(callback, nothing, user_data, text)
            threading.Thread(target=_native.call_guarded, args=(refused,), name="corelane-refused").start()

    def _reporting(self, callback: Callable, user_data: Any, nothing: Any) -> Callable:
        """Calls `callback` with what the native module gives: outputs, or `nothing` and a text."""
        if not callable(callback):
            raise TypeError(f"callback: expected a function, given {type(callback).__name__}")
        strict = self._strict  # A callback must not keep the session alive.

        def done(outputs: Any, problem: StatusError | None) -> None:
            failed = problem is not None
            callback(nothing if failed else outputs, user_data, callback_text(problem, strict) if failed else "")

        return done

    def try_run_async(self, output_names: Sequence[str] | None, input_feed: Any, callback: Callable,
                      user_data: Any = None, run_options: Any = None) -> int | None:
        """run_async without waiting: the task's number, or None when it is too early or full."""
        done = self._reporting(callback, user_data, None)
        terms = single(self._terms(run_options))
        output_names = listed(output_names)
        try:
            return self._serving(input_feed).try_run_async(output_names, input_feed, done, terms)
        except StatusError as error:
            raise self._wording.explained(error, output_names, input_feed) from None

    def submit(self, output_names: Sequence[str] | None, input_feed: Any,
               run_options: Any = None) -> RunFuture:
        """Submits a copy of the inputs and returns its future."""
        terms, batch = self._terms(run_options)
        output_names = listed(output_names)
        try:
            native = self._serving(input_feed).submit(output_names, input_feed, terms, batch)
        except StatusError as error:
            raise self._wording.explained(error, output_names, input_feed) from None
        return RunFuture(native, self._strict)

    async def run_awaitable(self, output_names: Sequence[str] | None, input_feed: Any,
                            run_options: Any = None) -> list:
        """submit() for asyncio: awaits the outputs. While the queue is full a thread of the loop's executor waits.
        A cancelled await cancels its task, or the samples of its batch, unless they run."""
        given, batch = self._terms(run_options)
        terms = (given or _native.Terms()).of_one_call()
        output_names = listed(output_names)
        try:
            serving = self._serving(input_feed)
            native = None if batch else serving.try_submit(output_names, input_feed, terms)
            if native is None:
                submit = functools.partial(serving.submit, output_names, input_feed, terms, batch)
                native = await Submission(submit, terms).made()
        except StatusError as error:
            raise self._wording.explained(error, output_names, input_feed) from None
        return await asyncio.wrap_future(RunFuture(native, self._strict))

    def run_pipeline(self, input_feed: Any, depth: int = 3, reset: bool = False,
                     output_names: Sequence[str] | None = None, run_options: Any = None) -> list | None:
        """Submits, and returns the outputs of the call `depth` calls ago, None for the first calls."""
        if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or depth < 0:
            raise TypeError(f"depth: expected a positive integer, given {depth!r}")
        terms = single(self._terms(run_options))
        output_names = listed(output_names)
        self._unreturned.clear()  # The next flush() is of this call and those after it.
        try:
            return self._native.run_pipeline(output_names, input_feed, int(depth), bool(reset), terms)
        except StatusError as error:
            raise self._wording.explained(error, output_names, input_feed) from None

    def flush(self) -> list[list]:
        """Waits for what the pipeline holds and returns it in order. Raises the first failure; then the next
        flush() gives the results before and after it, unless run_pipeline() is called in between."""
        results = self._unreturned + self._native.flush()
        failed = next((i for i, result in enumerate(results) if isinstance(result, StatusError)), None)
        if failed is None:
            self._unreturned.clear()
            return results
        problem = results.pop(failed)
        self._unreturned[:] = results
        raise self._translated(problem)

    def drain(self) -> None:
        """flush() without the results: what it would hold back is dropped, too."""
        try:
            self.flush()
        finally:
            self._unreturned.clear()

    def run_with_ort_values(self, output_names: Sequence[str] | None,
                            input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Any = None) -> list[OrtValue]:
        """run() on OrtValues."""
        kinds = {node.name: _arrays.number_beyond_numpy(node.type) for node in self.get_outputs()}
        output_names = listed(output_names)
        arrays = self._run_plain(output_names, dict(input_dict_ort_values), run_options)
        return [self._value_class(array, kinds[name]) for array, name in zip(arrays, output_names or kinds)]

    def run_with_ortvaluevector(self, run_options: Any, feed_names: Sequence[str], feeds: Sequence[OrtValue],
                                fetch_names: Sequence[str], fetches: OrtValueVector,
                                fetch_devices: Any = None) -> None:
        """run() on vectors: the outputs replace what `fetches` held. They lie in the host's memory, the only
        device there is."""
        if len(feed_names) != len(feeds):
            raise InvalidArgument(f"{len(feed_names)} feed_names and {len(feeds)} feeds were given; one value "
                                  "belongs to each name")
        fetches[:] = self.run_with_ort_values(fetch_names, dict(zip(feed_names, feeds)), run_options)

    def io_binding(self) -> IOBinding:
        """A binding for this session."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """Runs with bound memory; ValueError for a binding of another session."""
        if not isinstance(iobinding, IOBinding) or iobinding._session._native is not self._native:
            raise ValueError("IOBinding must be used with the session that created it.")
        iobinding._run(single(self._terms(run_options)))

    # --- Ending it.

    def close(self, timeout: float | None = None) -> None:
        """Refuses new calls and waits until accepted tasks are done and called back; Timeout after
        `timeout` seconds."""
        number = isinstance(timeout, (int, float, np.number)) and not isinstance(timeout, bool)
        if timeout is not None and (not number or timeout != timeout):
            raise TypeError(f"timeout: expected seconds or None, given {timeout!r}")
        end = None if timeout is None else time.monotonic() + float(timeout)
        first: StatusError | None = None
        # Each is closed, whether or not one before it took all of the time.
        for native in [self._native, *(self._overriding.end() if self._overriding is not None else ())]:
            try:
                native.close(None if end is None else max(end - time.monotonic(), 0.0))
            except StatusError as error:
                first = first or error
        if first is not None:
            raise self._translated(first) from None

    @Shown
    def closed(self) -> bool:
        """Whether close() was called, or the session belongs to the parent of a fork."""
        return self._native.closed

    def __enter__(self) -> "InferenceSession":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
