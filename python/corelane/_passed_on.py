"""Parts of onnxruntime that Corelane does not have, taken from an installed onnxruntime while corelane.alias
stands in its place: onnxruntime.quantization, tools, transformers, datasets and the like, whose sessions are
Corelane's then, and functions of onnxruntime's own native module that those import."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Sequence

_NAME = "onnxruntime"
_INNER = "onnxruntime.capi.onnxruntime_pybind11_state"
_TOLD = ("quantization", "tools", "transformers", "datasets", "backend")
#: Functions of the native module that no session needs: packing of weights, lists of operators.
FUNCTIONS = ("get_all_operator_schema", "get_all_opkernel_def", "opkernel", "pack_fp4_weights_for_cuda_moe_gemm",
             "quantize_matmul_2bits", "quantize_matmul_4bits", "quantize_matmul_8bits", "quantize_matmul_bnb4",
             "quantize_qdq_matmul_2bits", "quantize_qdq_matmul_4bits", "schemadef")


def _folders() -> list[str]:
    """Of the installed package; empty where there is none."""
    installed = PathFinder.find_spec(_NAME)
    return list(installed.submodule_search_locations or ()) if installed is not None else []


def _not_installed(what: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"{what} is a part of onnxruntime itself, which is not installed: pip install "
                               "onnxruntime", name=what)


class _Rest(importlib.abc.MetaPathFinder):
    """Finds `onnxruntime.X` in the installed package; what lies below X is found by Python itself."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, part = fullname.partition(".")
        if package != _NAME or not part or "." in part:
            return None
        folders = _folders()
        if not folders and part in _TOLD:
            raise _not_installed(fullname)
        return PathFinder.find_spec(fullname, folders)


_finder = _Rest()
# The native module, where it was loaded beside Corelane's under its name. A process loads it once.
_inner: ModuleType | None = None


def inner_module(purpose: str) -> Any:
    """The native module of an installed onnxruntime. ModuleNotFoundError, which names the purpose, where there is
    none."""
    global _inner
    if _inner is not None:
        return _inner
    if _finder not in sys.meta_path:
        if not _folders():
            raise _not_installed(purpose)
        return importlib.import_module(_INNER)
    spec = PathFinder.find_spec(_INNER, [os.path.join(folder, "capi") for folder in _folders()])
    if spec is None or spec.loader is None:
        raise _not_installed(purpose)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _inner = module
    return module


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


def restore() -> None:
    """After stop(), and once Corelane's modules have given the names back: lets an import of onnxruntime find its
    native module where that is loaded already."""
    if _inner is not None:
        sys.modules.setdefault(_INNER, _inner)
