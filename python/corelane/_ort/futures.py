"""The result of one submitted call, as a future of the standard library."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from typing import Any

from .._errors import StatusError, translated

_POLL = 0.05  # Seconds between looks for Ctrl-C.


class RunFuture(concurrent.futures.Future):
    """The result of one submitted call: a list of arrays. cancel() works until the task starts."""

    def __init__(self, native: Any, strict: bool):
        super().__init__()
        self._native, self._strict = native, strict
        self._withdrawing = threading.RLock()  # Never held while anything is called back.
        self._withdrawn = False
        self.add_done_callback(_tell_waiters)
        native.then(self._settle)

    @property
    def task_id(self) -> int:
        return self._native.task_id

    def cancel(self) -> bool:
        if not self.done():
            with self._withdrawing:
                self._withdrawn = self._withdrawn or self._native.cancel()
            if self._withdrawn:
                super().cancel()
        return self.cancelled()

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
        with self._withdrawing:  # What cancel() has been told of the task stands.
            withdrawn = self._withdrawn
        if withdrawn:
            super().cancel()
            return
        try:  # The callback thread and those that wait meet here: the first one decides.
            if problem is None:
                self.set_result(outputs)
            else:
                self.set_exception(translated(problem, self._strict))
        except concurrent.futures.InvalidStateError:
            pass


def _tell_waiters(future: concurrent.futures.Future) -> None:
    """concurrent.futures.wait() and as_completed() hear of a cancelled future only this way."""
    if future.cancelled():
        future.set_running_or_notify_cancel()
