"""The log of an object of the RKNN doors: a logger of its own, with the letters that RKNN users know."""

from __future__ import annotations

import logging
import sys
import traceback
import weakref
from typing import Any

from .._printable import printable


class UsageError(ValueError):
    """A call with arguments that are not allowed, or at the wrong time. Control characters of names from files are
    written out."""

    def __init__(self, text: str):
        super().__init__(printable(text))


class Log:
    """Warnings and errors go to Python's logger `name` (to stderr where the program has set no handler).
    verbose: everything goes to stderr, and to `file` too. Nothing goes to stdout."""

    def __init__(self, name: str, verbose: bool, file: Any = None):
        self._logger = logging.Logger(name, logging.INFO if verbose else logging.WARNING)
        self._logger.parent = logging.getLogger(name)
        if verbose:
            self._logger.propagate = False
            self._add(logging.StreamHandler(sys.stderr))
            if file is not None:
                try:
                    handler = logging.FileHandler(file, encoding="utf-8")
                    self._add(handler)
                    weakref.finalize(self, handler.close)
                except OSError as problem:
                    self.warning("verbose_file", f"{problem}; the log goes to stderr alone")

    def _add(self, handler: logging.Handler) -> None:
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._logger.addHandler(handler)

    def info(self, where: str, text: str) -> None:
        """Shown with verbose."""
        self._logger.info("I %s: %s", where, printable(text))

    def warning(self, where: str, text: str) -> None:
        """Always shown."""
        self._logger.warning("W %s: %s", where, printable(text))

    def error(self, where: str, text: Any) -> None:
        """With verbose an exception is logged with its trace."""
        self._logger.error("E %s: %s", where, printable(text))
        if isinstance(text, BaseException):
            self._logger.info("".join(traceback.format_exception(type(text), text, text.__traceback__)))
