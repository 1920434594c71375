"""Profiles: the device's records of one session's tasks. Sessions that share a device share its records; so
a profiled session numbers its calls in a range of its own."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from typing import Any

from .._errors import Fail, numbered

_RECORDS = 65536  # Of each core.
_CALLS = 2**40  # Of a session.
_ranges = itertools.count(1)
_lock = threading.Lock()
# Profiles that go on, by device.
_going_on: dict[str, set[int]] = {}


def own_number(tag: int) -> int:
    """The number of a call in its session."""
    return tag % _CALLS


class Profile:
    """From its making until end()."""

    def __init__(self, native: Any, prefix: str):
        self._native, self._prefix, self._ended = native, prefix, False
        self._range = next(_ranges)
        self._device: str = native.device()["instance"]
        native.number_calls(self._range * _CALLS)
        with _lock:
            going_on = _going_on.setdefault(self._device, set())
            if not going_on:
                native.set_trace(_RECORDS)
            going_on.add(self._range)
        self.started_ns = time.monotonic_ns()

    def end(self) -> str:
        """Writes a Chrome trace and returns its name; the records of others stay. Fail where it cannot be
        written: the profile has ended all the same."""
        self._ended = True
        try:
            events = [_event(record) for record in self._native.read_trace()
                      if record["task_id"] // _CALLS == self._range]
            now = time.time()
            stamp = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(now))
            return _write(f"{self._prefix}_{stamp}_{int(now * 1000) % 1000:03d}", events)
        finally:
            if self._leave():
                self._native.set_trace(0)
            self._native.number_calls(0)

    def _leave(self) -> bool:
        """True for the last one of the device."""
        with _lock:
            going_on = _going_on.get(self._device, set())
            going_on.discard(self._range)
            if not going_on:
                _going_on.pop(self._device, None)
            return not going_on

    def __del__(self) -> None:
        if not getattr(self, "started_ns", 0) or self._ended:
            return
        try:
            self.end()  # As onnxruntime does with a session that goes.
        except Exception:  # Nobody is there to be told.
            self._leave()


def _event(record: dict) -> dict:
    return {"cat": "Session", "ph": "X", "pid": os.getpid(), "tid": record["core_bits"],
            "name": f"task {own_number(record['task_id'])}", "ts": record["started_ns"] / 1000,
            "dur": (record["ended_ns"] - record["started_ns"]) / 1000,
            "args": {"queued_us": (record["started_ns"] - record["queued_ns"]) / 1000}}


def _write(name: str, events: list) -> str:
    for number in range(10_000):  # Another session may end in the same second.
        path = f"{name}{f'_{number}' if number else ''}.json"
        try:
            with open(path, "x", encoding="utf-8") as file:
                json.dump(events, file)
        except FileExistsError:
            continue
        except OSError as error:
            raise numbered(Fail, f"the profile '{path}' cannot be written: {error.strerror}; set "
                           "profile_file_prefix to a name in a folder that is there and can be written") from None
        return path
    raise RuntimeError(f"{name}.json and ten thousand more names are taken; remove old profiles")
