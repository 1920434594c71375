"""What an object of the RKNN doors says: a logger of its own, with the letters that RKNN users know."""

from __future__ import annotations

import logging
import sys
from typing import Any


class UsageError(ValueError):
    """A call with arguments that are not allowed, or at the wrong time."""


class Log:
    """Warnings and errors go to Python's logger `name` (without a handler of the program's: to
    stderr). verbose: everything, to stderr, and to `file` too. Nothing goes to stdout."""

    def __init__(self, name: str, verbose: bool, file: Any = None):
        self._logger = logging.Logger(name, logging.INFO if verbose else logging.WARNING)
        self._logger.parent = logging.getLogger(name)
        if verbose:
            self._logger.propagate = False
            self._add(logging.StreamHandler(sys.stderr))
            if file is not None:
                try:
                    self._add(logging.FileHandler(file, encoding="utf-8"))
                except OSError as problem:
                    self.warning("verbose_file", f"{problem}; the log goes to stderr alone")

    def _add(self, handler: logging.Handler) -> None:
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._logger.addHandler(handler)

    def info(self, where: str, text: str) -> None:
        self._logger.info("I %s: %s", where, text)

    def warning(self, where: str, text: str) -> None:
        self._logger.warning("W %s: %s", where, text)

    def error(self, where: str, text: Any) -> None:
        self._logger.error("E %s: %s", where, text)

    def close(self) -> None:
        """Closes the file; the log goes on without it."""
        for handler in list(self._logger.handlers):
            if isinstance(handler, logging.FileHandler):
                self._logger.removeHandler(handler)
                handler.close()
