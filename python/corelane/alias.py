"""The switch that lets code which imports onnxruntime run on Corelane unmodified.

    import corelane.alias
    corelane.alias.install()          # before anything imports onnxruntime
    from rapidocr import RapidOCR     # ... gets Corelane

or, without touching any code, `python -m corelane.alias program.py arguments`.
"""

from __future__ import annotations

import os
import runpy
import sys
from types import ModuleType

import corelane
from corelane.capi import onnxruntime_inference_collection, onnxruntime_pybind11_state

_MODULES: dict[str, ModuleType] = {
    "onnxruntime": corelane,
    "onnxruntime.capi": corelane.capi,
    "onnxruntime.capi.onnxruntime_pybind11_state": onnxruntime_pybind11_state,
    "onnxruntime.capi._pybind_state": onnxruntime_pybind11_state,
    "onnxruntime.capi.onnxruntime_inference_collection": onnxruntime_inference_collection,
}
_replaced: dict[str, ModuleType | None] = {}


def install(force: bool = False) -> None:
    """Makes `import onnxruntime` give Corelane in this process. RuntimeError when the real one has been
    imported already, unless `force`: who holds it keeps it. Calling it twice changes nothing."""
    if _replaced:
        return
    if "onnxruntime" in sys.modules and not force:
        raise RuntimeError("onnxruntime is imported already; call corelane.alias.install() before that, "
                           "or install(force=True)")
    for name in [n for n in sys.modules if n == "onnxruntime" or n.startswith("onnxruntime.")]:
        _replaced[name] = sys.modules.pop(name)
    for name, module in _MODULES.items():
        _replaced.setdefault(name, None)
        sys.modules[name] = module


def uninstall() -> None:
    """Undoes install()."""
    for name, module in _replaced.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
    _replaced.clear()


def installed() -> bool:
    return bool(_replaced)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m corelane.alias program.py [arguments]")
    # This file runs as __main__; the package's own copy keeps the state.
    from corelane.alias import install as install_for_good

    install_for_good()
    sys.argv = sys.argv[1:]
    if not getattr(sys.flags, "safe_path", False):  # As `python program.py` has it: beside the program.
        sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
