"""The switch that lets code which imports other packages run on Corelane unmodified.

    import corelane.alias
    corelane.alias.install()                    # onnxruntime, before anything imports it
    corelane.alias.install("rknnlite", "rknn")  # rknnlite.api and rknn.api
    corelane.alias.install("qaicrt", "QAicApi_pb2")
    from rapidocr import RapidOCR               # ... gets Corelane

or, without touching any code, `python -m corelane.alias [--as NAME,...] program.py arguments` (or
`-m module arguments`); the environment variable CORELANE_ALIAS is the default of --as. Names are those of
NAMES below. Python processes started from then on have the alias, too: multiprocessing's, and others.
"""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
import runpy
import sys
from types import ModuleType
from typing import Callable

from . import _children, _passed_on

USAGE = "usage: python -m corelane.alias [--as NAME,...] (program.py | -m module) [arguments]"


def _onnxruntime() -> dict[str, ModuleType]:
    state = importlib.import_module("corelane.capi.onnxruntime_pybind11_state")
    return {
        "onnxruntime": importlib.import_module("corelane"),
        "onnxruntime.capi": importlib.import_module("corelane.capi"),
        "onnxruntime.capi.onnxruntime_pybind11_state": state,
        "onnxruntime.capi._pybind_state": state,
        "onnxruntime.capi.onnxruntime_inference_collection":
            importlib.import_module("corelane.capi.onnxruntime_inference_collection"),
    }


def _package(name: str, module: str) -> dict[str, ModuleType]:
    """A package whose submodule `api` is that module of Corelane."""
    package = ModuleType(name, f"Stands for {name}: its api is {module}.")
    package.__path__ = []
    package.api = importlib.import_module(module)
    return {name: package, f"{name}.api": package.api}


def _toolkit() -> dict[str, ModuleType]:
    modules = _package("rknn", "corelane.rknn_toolkit")
    edit = importlib.import_module("corelane.rknn_toolkit.onnx_edit")
    utils = ModuleType("rknn.utils", "Stands for rknn.utils: onnx_edit is a function of this package.")
    utils.__path__ = []
    utils.onnx_edit = edit.onnx_edit
    modules["rknn"].utils = utils
    return {**modules, "rknn.api.rknn": modules["rknn"].api, "rknn.utils": utils, "rknn.utils.onnx_edit": edit,
            "rknn.utils.grq": importlib.import_module("corelane.rknn_toolkit.grq"),
            "rknn.api.custom_op": importlib.import_module("corelane.rknn_toolkit.custom_op")}


NAMES: dict[str, Callable[[], dict[str, ModuleType]]] = {
    "onnxruntime": _onnxruntime,
    "rknnlite": lambda: _package("rknnlite", "corelane.rknnlite"),
    "rknn": _toolkit,
    "ztu_somemodelruntime_ez_rknn_async": lambda: {
        "ztu_somemodelruntime_ez_rknn_async": importlib.import_module("corelane.ez_rknn_async")},
    # Two names, since the second one needs the package protobuf.
    "qaicrt": lambda: {"qaicrt": importlib.import_module("corelane.qaicrt")},
    "QAicApi_pb2": lambda: {"QAicApi_pb2": importlib.import_module("corelane.QAicApi_pb2")},
}
# What sys.modules held before, by alias.
_replaced: dict[str, dict[str, ModuleType | None]] = {}


def install(*names: str, force: bool = False, children: bool = True) -> None:
    """Makes `import NAME` give Corelane's module in this process; without names, onnxruntime. ValueError
    for a name that is not in NAMES; RuntimeError when the real one has been imported already, unless
    `force`: modules that hold it keep it. Installing twice changes nothing. `children`: also in Python
    processes that are started later, by os.environ (PYTHONPATH and CORELANE_ALIAS_CHILDREN)."""
    if names and isinstance(names[0], bool):  # install(force) of earlier versions.
        names, force = names[1:], names[0]
    wanted = _checked(names or ("onnxruntime",))
    for name in wanted:
        if name not in _replaced and name in sys.modules and not force:
            raise RuntimeError(f"{name} is imported already; call corelane.alias.install({name!r}) before it "
                               "is, or with force=True")
    for name in wanted:
        if name not in _replaced:
            _install(name)
    if children:
        _children.take_along(wanted)


def _checked(names: tuple[str, ...]) -> list[str]:
    for name in names:
        if name not in NAMES:
            raise ValueError(f"{name!r} is not an alias; there are {', '.join(NAMES)}")
    return list(dict.fromkeys(names))


def _install(name: str) -> None:
    modules = NAMES[name]()  # Imports first: a failure leaves everything as it was.
    before: dict[str, ModuleType | None] = {
        n: sys.modules.pop(n) for n in list(sys.modules) if n == name or n.startswith(name + ".")}
    for foreign, module in modules.items():
        before.setdefault(foreign, None)
        sys.modules[foreign] = module
    _replaced[name] = before
    if name == "onnxruntime":
        _passed_on.pass_on()


def uninstall(*names: str) -> None:
    """Undoes install(); without names, all of it. Processes that were started keep the alias."""
    for name in _checked(names) if names else list(_replaced):
        if name == "onnxruntime":
            _passed_on.stop()
        for foreign, module in _replaced.pop(name, {}).items():
            if module is None:
                sys.modules.pop(foreign, None)
            else:
                sys.modules[foreign] = module
        if name == "onnxruntime":
            _passed_on.restore()
        _children.leave_behind(name)


def installed(name: str | None = None) -> bool:
    """Whether that alias is in force; without a name, whether any is."""
    return bool(_replaced) if name is None else name in _replaced


def _why_no_file(path: str) -> str | None:
    """Why Python cannot run that program; None where it can be read. It is not opened: a pipe gives its text once."""
    try:
        os.stat(path)
    except OSError as problem:
        return problem.strerror
    return None if os.access(path, os.R_OK) else os.strerror(errno.EACCES)


def _has_module(name: str) -> bool:
    """Packages on the way are imported; what they import in vain is their own error."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{name}.".startswith(f"{problem.name}."):
            raise
        return False
    if spec is None or spec.submodule_search_locations is None:
        return spec is not None
    return _has_module(f"{name}.__main__")


def _run(words: list[str]) -> None:
    """What `python -m corelane.alias` does with its arguments."""
    names = os.environ.get("CORELANE_ALIAS") or "onnxruntime"
    if words[:1] == ["--as"] and len(words) > 1:
        names, words = words[1], words[2:]
    if words[:1] in (["--help"], ["-h"]):
        print(USAGE)
        return
    if not words or (words[0].startswith("-") and (words[0] != "-m" or len(words) < 2)):
        sys.exit(USAGE)
    try:
        install(*(n.strip() for n in names.split(",") if n.strip()))
    except ValueError as problem:
        sys.exit(f"corelane.alias: {problem}")
    if words[0] == "-m":
        sys.argv = words[1:]
        if not _has_module(words[1]):
            sys.exit(f"corelane.alias: no module named {words[1]!r} that can be run")
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    if (why := _why_no_file(words[0])) is not None:
        print(f"corelane.alias: {words[0]!r} cannot be read: {why}", file=sys.stderr)
        sys.exit(2)  # As Python has it.
    sys.argv = words
    if not getattr(sys.flags, "safe_path", False):  # As Python has it for a program.
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    # This file runs as __main__; the package's own copy keeps the state.
    from corelane.alias import _run as run_for_good

    run_for_good(sys.argv[1:])
