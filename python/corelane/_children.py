"""The alias in processes that this one starts: an environment variable with the names, and a folder in PYTHONPATH
whose sitecustomize reads it."""

from __future__ import annotations

import os
import sys
from typing import Iterable

VARIABLE = "CORELANE_ALIAS_CHILDREN"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_start")


def _names() -> list[str]:
    python, _, names = os.environ.get(VARIABLE, "").partition(":")
    return names.split(",") if names and python == sys.implementation.cache_tag else []


def take_along(names: Iterable[str]) -> None:
    """Children have these names, too."""
    _write(list(dict.fromkeys([*_names(), *names])))


def leave_behind(name: str) -> None:
    """Children have that name no longer, and this process does not get it by being a child."""
    for finder in sys.meta_path:
        getattr(finder, "corelane_names", set()).discard(name)
    _write([n for n in _names() if n != name])


def _write(names: list[str]) -> None:
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if not names and FOLDER not in before:
        os.environ.pop(VARIABLE, None)
        return
    path = [p for p in before if p != FOLDER]
    if names:
        os.environ[VARIABLE] = f"{sys.implementation.cache_tag}:{','.join(names)}"
        path.insert(0, FOLDER)
    else:
        os.environ.pop(VARIABLE, None)
    path = [FOLDER] if path == [FOLDER, ""] else path  # An empty part would be the working folder.
    if path and path != [""]:
        os.environ["PYTHONPATH"] = os.pathsep.join(path)
    else:
        os.environ.pop("PYTHONPATH", None)
