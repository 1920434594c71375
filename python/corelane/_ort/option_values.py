"""Values of options as programs write them: a function of (name, value) for each kind. RuntimeError names the option,
what was given and what is allowed."""

from __future__ import annotations

import operator
import os
from typing import Any, Mapping

import numpy as np

from .. import _native
from .settings import is_text

_MOST = 2**53  # Of any number.


def integer(name: str, value: Any, least: int = 1) -> int:
    if isinstance(value, str):
        try:
            number = int(value.strip())
        except ValueError:
            raise RuntimeError(f"{name}: {value!r} is not an integer") from None
    else:
        try:
            number = operator.index(value)
        except TypeError:
            raise RuntimeError(f"{name}: expected an integer, given {value!r}") from None
    if number < least:
        raise RuntimeError(f"{name}: {number} is below {least}, the least allowed value")
    if number > _MOST:
        raise RuntimeError(f"{name}: {number} is above {_MOST}, the greatest allowed value")
    return number


def limit(name: str, value: Any) -> int:
    """A time in ms, or a number of bytes; 0 means none is set."""
    return integer(name, value, 0)


def flag(name: str, value: Any) -> bool:
    """A bool, or a text or number for one. RuntimeError for other values."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    given = str(value).strip().lower()
    if given in ("1", "true", "on", "yes"):
        return True
    if given in ("0", "false", "off", "no"):
        return False
    raise RuntimeError(f"{name}: {value!r} is neither true nor false")


def text(name: str, value: Any) -> str:
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not is_text(given):
        raise RuntimeError(f"{name}: expected a text of UTF-8, given {value!r}")
    return given


def cores(name: str, value: Any) -> list[int]:
    """The cores of a schedule: from one core, a text such as "0,1,2", or a sequence of cores."""
    if isinstance(value, str):
        return list(_native.parse_schedule(value))
    if isinstance(value, (bool, np.bool_, bytes, bytearray, set, frozenset, Mapping)):
        raise RuntimeError(f"{name}: expected a core, a text or a list of cores, given {value!r}")
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "iu" or value.ndim > 1:
            raise RuntimeError(f"{name}: expected an array of integers, given {value!r}")
        value = value.tolist()
    if not isinstance(value, (list, tuple, range)):
        value = [value]
    if not value:
        raise RuntimeError(f"{name}: must not be empty; name cores such as [0, 1, 2]")
    numbers = []
    for item in value:
        if isinstance(item, (bool, np.bool_)):
            raise RuntimeError(f"{name}: {item!r} is not a core number")
        numbers.append(integer(name, item, 0))
    return numbers


def tp_mode(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise RuntimeError(f"{name}: expected a text such as 'auto' or '0,1', given {value!r}")
    return _native.parse_tp_mode(value)


def operators(name: str, value: Any) -> dict[str, Any]:
    """Functions by operator type."""
    if not isinstance(value, Mapping):
        raise RuntimeError(f"{name}: expected a dict of functions by operator type, given {value!r}")
    for kind, function in value.items():
        if not isinstance(kind, str) or not kind:
            raise RuntimeError(f"{name}: {kind!r} is not an operator type")
        if not callable(function):
            raise RuntimeError(f"{name}: expected a function for {kind!r}, given {function!r}")
    return dict(value)


def engine(name: str, value: Any) -> str:
    """The name of an engine; "auto" lets the device choose, which the library says with ""."""
    given = text(name, value)
    return "" if given == "auto" else given
