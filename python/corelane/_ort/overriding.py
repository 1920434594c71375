"""Feeds that hold values of initializers: other sessions of the same model, in which these are inputs."""

from __future__ import annotations

import threading
from typing import Any, Callable, Mapping

from .._errors import InvalidArgument, StatusError, numbered
from .._native import Code
from . import model_bytes
from .given_model import GivenModel


class Overriding:
    """names: of the initializers that may be overridden. make: a native session of a model's bytes and the
    folder of its other files. Any thread; a session is made at the first feed with the same initializers."""

    def __init__(self, names: list[str], model: GivenModel, make: Callable[[bytes, str | None], Any]):
        self.names = frozenset(names)
        self._model, self._make = model, make
        self._made: dict[frozenset, Any] = {}
        self._lock = threading.Lock()
        self._closed = False
        model.hold()

    def session_for(self, feed: Any) -> Any | None:
        """The session for these names; None where the feed overrides nothing. InvalidArgument for a program
        file, which holds no ONNX model to change."""
        if not isinstance(feed, Mapping):
            return None
        given = frozenset(name for name in self.names.intersection(feed) if feed[name] is not None)
        if not given:
            return None
        with self._lock:
            if self._closed:
                raise StatusError(Code.WRONG_STATE, "the session is closed; make a new one")
            if given not in self._made:
                self._made[given] = self._session(given)
            return self._made[given]

    def _session(self, given: frozenset) -> Any:
        data, root = self._model.whole()
        if model_bytes.is_program(data):
            raise numbered(InvalidArgument, f"Invalid input name: {min(given)}; initializers are overridden in a "
                                            "session of the ONNX model, not of a program file")
        return self._make(model_bytes.without_initializers(data, given), root)

    def end(self) -> list[Any]:
        """Makes no more sessions; those that were made."""
        with self._lock:
            self._closed = True
            return list(self._made.values())
