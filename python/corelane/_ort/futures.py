"""The result of one submitted call, as a future of the standard library."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from typing import Any, Callable

from .._errors import StatusError, translated

_POLL = 0.05  # Seconds between looks for Ctrl-C.


class RunFuture(concurrent.futures.Future):
    """The result of one submitted call: a list of arrays. cancel() works until the task starts."""

    def __init__(self, native: Any, strict: bool):
        super().__init__()
        self._native, self._strict = native, strict
        self._cancelling = threading.RLock()  # Never held during a callback.
        self._cancelled_task = False
        self._delivery: Any = None
        self.add_done_callback(_resolved)  # Before those of the user.
        self._delivery = native.then(self._resolve)

    @property
    def task_id(self) -> int:
        """The task's number in its session; of a batch, that of the first sample."""
        return self._native.task_id

    def running(self) -> bool:
        """Whether its task, or a sample of its batch, has started and is not done."""
        return not self.done() and self._native.running()

    def cancel(self) -> bool:
        """True when the task was taken out of the queue, now or before."""
        if not self.done():
            with self._cancelling:
                self._cancelled_task = self._cancelled_task or self._native.cancel()
            if self._cancelled_task:
                super().cancel()
        return self.cancelled()

    def result(self, timeout: float | None = None) -> list:
        """Waits for the outputs, at most `timeout` seconds (TimeoutError); raises the call's failure."""
        self._wait(timeout)
        return super().result(0 if timeout is not None else None)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits as result() does, and returns the call's failure or None."""
        self._wait(timeout)
        return super().exception(0 if timeout is not None else None)

    def _wait(self, timeout: float | None) -> None:
        """Waits for the task itself, so that a done callback, whose thread resolves futures, may wait too."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.done():
            left = _POLL if end is None else min(_POLL, end - time.monotonic())
            if self._native.wait(max(left, 0)):
                try:
                    self._resolve(self._native.get(), None)
                except StatusError as problem:
                    self._resolve(None, problem)
            elif left <= 0:
                return

    def _resolve(self, outputs: Any, problem: Any) -> None:
        with self._cancelling:  # Where cancel() has returned True, it holds.
            cancelled = self._cancelled_task
        if cancelled:
            super().cancel()
            return
        try:  # The session's thread and waiting threads race here: the first one decides.
            if problem is None:
                self.set_result(outputs)
            else:
                self.set_exception(translated(problem, self._strict))
        except concurrent.futures.InvalidStateError:
            pass


class Submission:
    """A submission in a thread of the loop's executor, for an await. submit: makes it, with `terms`, which are of
    this one call."""

    def __init__(self, submit: Callable[[], Any], terms: Any):
        self._submit, self._terms = submit, terms
        self._lock = threading.Lock()
        self._native: Any = None
        self._abandoned = False

    async def made(self) -> Any:
        """The native future. Where the await is cancelled, the thread stops waiting for room, and what it has
        submitted is cancelled."""
        try:
            return await asyncio.get_running_loop().run_in_executor(None, self._make)
        except asyncio.CancelledError:
            self._abandon()
            raise

    def _make(self) -> Any:
        native = self._submit()
        with self._lock:
            self._native, abandoned = native, self._abandoned
        if abandoned:
            native.cancel()
        return native

    def _abandon(self) -> None:
        self._terms.abandon()
        with self._lock:
            self._abandoned, native = True, self._native
        if native is not None:
            native.cancel()


def _resolved(future: Any) -> None:
    """What follows the result: the session's thread need not bring it, and holds the future no longer."""
    if future._delivery is not None:
        future._delivery.withdraw()
    if future.cancelled():  # concurrent.futures.wait() and as_completed() learn of it only this way.
        future.set_running_or_notify_cancel()
