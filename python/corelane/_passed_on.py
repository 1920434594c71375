"""Parts of onnxruntime that Corelane does not have, taken from an installed onnxruntime while corelane.alias
stands in its place: onnxruntime.quantization, tools, transformers, datasets and the like. Their sessions are
Corelane's then."""

from __future__ import annotations

import importlib.abc
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Sequence

_NAME = "onnxruntime"
_TOLD = ("quantization", "tools", "transformers", "datasets", "backend")


class _Rest(importlib.abc.MetaPathFinder):
    """Finds `onnxruntime.X` in the installed package; what lies below X is found by Python itself."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, part = fullname.partition(".")
        if package != _NAME or not part or "." in part:
            return None
        installed = PathFinder.find_spec(_NAME)
        places = list(installed.submodule_search_locations or ()) if installed is not None else []
        if not places and part in _TOLD:
            raise ModuleNotFoundError(f"{fullname} is a part of onnxruntime itself, which corelane.alias passes "
                                      "on and which is not installed: pip install onnxruntime", name=fullname)
        return PathFinder.find_spec(fullname, places)


_finder = _Rest()


def pass_on() -> None:
    """From now on."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def stop() -> None:
    """No longer, and forgets what was imported so."""
    if _finder not in sys.meta_path:
        return
    sys.meta_path.remove(_finder)
    package = sys.modules.get("corelane")
    for name in [n for n in sys.modules if n.startswith(_NAME + ".")]:
        module = sys.modules[name]
        if not getattr(module, "__name__", "").startswith(_NAME + "."):
            continue  # One of Corelane's under a second name.
        del sys.modules[name]
        part = name.partition(".")[2]
        if vars(package).get(part) is module:
            delattr(package, part)
