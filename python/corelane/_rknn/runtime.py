"""A model on a device as the RKNN doors run it: one session, whose inputs are N, H, W, C and normalised
with the program's mean and std, and whose outputs are float32."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from .. import _native
from .._errors import StatusError
from .._native import Code
from .inputs import as_computed, flags, hint, prepare
from .log import Log, UsageError

NPU_CORE_AUTO = 0
NPU_CORE_0 = 1
NPU_CORE_1 = 2
NPU_CORE_2 = 4
NPU_CORE_0_1 = 3
NPU_CORE_0_1_2 = 7
NPU_CORE_ALL = 0xffff
_MODES = {NPU_CORE_AUTO: "auto", NPU_CORE_0: "0", NPU_CORE_1: "1", NPU_CORE_2: "2", NPU_CORE_0_1: "0,1",
          NPU_CORE_0_1_2: "0,1,2", NPU_CORE_ALL: "all"}
_POLL = 0.05  # Seconds between looks for Ctrl-C.
_TIMEOUT = "CORELANE_RKNN_TIMEOUT_MS"  # As librknnrt.so reads it.


def _run_timeout_ms() -> int:
    """The limit of a run; 0 for none."""
    text = os.environ.get(_TIMEOUT) or "0"
    if text.isascii() and text.isdigit() and int(text) < 2**32:
        return int(text)
    raise UsageError(f"{_TIMEOUT}={text!r} is not a number of milliseconds from 0 (none) to {2**32 - 1}; "
                     "correct it or unset it")


class Runtime:
    """Any thread; calls in async mode are answered in the order they come."""

    def __init__(self, model: Any, device: str, core_mask: Any, async_mode: bool, log: Log,
                 custom_operators: Mapping[str, Callable[..., Any]]):
        mask = core_mask if isinstance(core_mask, (int, np.integer)) else None
        if mask not in _MODES:
            raise UsageError(f"core_mask: {core_mask!r} is none of the NPU_CORE_ constants: "
                             f"{', '.join(map(str, _MODES))}")
        self._model, self._log = model, log
        self._options = {"device": device, "tp_mode": _MODES[mask], "lenient": True, "normalize": True,
                         "layout": "nhwc", "output_form": "float", "max_queue_size": -1,
                         "run_timeout_ms": _run_timeout_ms(), "timeout_option": _TIMEOUT}
        if custom_operators:
            self._options["custom_operators"] = dict(custom_operators)
        try:
            self.session = _native.Session(model, self._options)
        except StatusError as error:
            if error.code is not Code.OUT_OF_CORES or "limit" not in error.details:
                raise
            raise UsageError(f"core_mask {mask} ({_MODES[mask]}): the device has {error.details['limit']}, "
                             "numbered from 0") from None
        self.inputs = self.session.inputs()
        self._natives = self.session.native_inputs()
        self._lock = threading.Lock()
        self._passing: Any = None
        self._async, self._pending, self._frame = bool(async_mode), None, 0

    def infer(self, inputs: Any, data_type: Any, data_format: Any, pass_through: Any) -> tuple[list, int]:
        """(outputs, number of the frame they belong to)."""
        passed = flags(pass_through, len(self.inputs))
        arrays = prepare(inputs, self.inputs, data_type, data_format, self._log)
        session = self.session
        if any(passed):
            session = self._pass_through_session()
            arrays = [as_computed(a, p, d) for a, p, d in zip(arrays, passed, self._natives)]
        try:
            return self._run(session, arrays)
        except StatusError as error:
            if error.code is Code.SHAPE_MISMATCH:
                raise UsageError(f"{error}{hint(arrays, self.inputs)}") from None
            raise

    def _run(self, session: Any, arrays: Sequence) -> tuple[list, int]:
        if not self._async:
            return session.run(None, arrays), 0
        with self._lock:
            submitted = (session.submit(None, arrays), self._frame)
            due, self._pending, self._frame = self._pending or submitted, submitted, self._frame + 1
        future, frame = due
        while not future.wait(_POLL):
            pass
        return future.get(), frame

    def _pass_through_session(self) -> Any:
        """The same without mean and std."""
        with self._lock:
            if self._passing is None:
                plain = all(not d["mean"] and not d["std"] for d in self._natives)
                self._passing = self.session if plain else _native.Session(
                    self._model, {**self._options, "normalize": False})
            return self._passing

    def version(self) -> str:
        """Numbers that old programs compare, and what they stand for."""
        device = self.session.device()
        line = "=" * 46
        return (f"{line}\nRKNN VERSION:\n  API: 2.5.0 (corelane {_native.version})\n"
                f"  DRV: 0.9.8 ({device['kind']}:{device['profile']}, {device['engine']})\n{line}")

    def close(self) -> None:
        """Calls that run are finished first."""
        for session in (self._passing, self.session):
            if session is not None:
                session.close()
