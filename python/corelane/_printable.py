"""Texts with names from files in them, made fit for a terminal."""

from __future__ import annotations

from . import _native


def printable(text: object) -> str:
    """str(text) with control characters written out, as in the library's own messages. Halves of pairs, which names of
    files may hold, are written out too."""
    return _native.printable(str(text).encode("utf-8", "backslashreplace").decode())
