"""Options of `ztu_somemodelruntime_ez_rknn_async` that Corelane's sessions have no counterpart of: checked like
all others, taken at their defaults, and refused with another way where they would ask for more."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Mapping

from .option_values import flag
from .settings import RunOptions

# By name of the provider's second generation: its core masks, and what tp_mode says for them.
_MASKS = {"auto": "auto", "all": "all", 0: "auto", 1: "0", 2: "1", 4: "2", 3: "0,1", 7: "0,1,2", 0xFFFF: "all"}


def _zero_copy_layout(name: str, value: Any) -> None:
    if not isinstance(value, str) or value not in ("nhwc", "native"):
        raise RuntimeError(f"{name}: {value!r} is none of nhwc and native")


def _plugins(name: str, value: Any) -> None:
    paths = [value] if isinstance(value, (str, os.PathLike)) else [] if value is None else value
    if not isinstance(paths, (list, tuple)) or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise RuntimeError(f"{name}: {value!r} is neither a path nor a list of paths")
    for path in paths:
        if not os.path.exists(path):
            raise RuntimeError(f"{name}: there is no file {os.fspath(path)!r}")
    if paths:
        raise RuntimeError(f"{name}: plug-ins of RKNN's C API are loaded by librknnrt alone (docs/apis/rknn.md); "
                           "give a Python function by the option custom_operators")


def _plugin_folder(name: str, value: Any) -> None:
    if flag(name, value):
        warnings.warn(f"{name}: no folder is searched for plug-ins; the option custom_operators takes Python "
                      "functions", UserWarning, stacklevel=2)


def _absent(remedy: str) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not (value is None or isinstance(value, (int, str)) and value in (0, "0")):
            raise RuntimeError(f"{name} is not served: {remedy}")

    return check


_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "zero_copy_layout": _zero_copy_layout,
    "custom_op_path": _plugins, "custom_op_paths": _plugins,
    "custom_op_default_path": _plugin_folder, "load_custom_ops_from_default_path": _plugin_folder,
}
_CHECKS_3: dict[str, Callable[[str, Any], None]] = {
    "runtime_library": _absent("the option device names a library, as in 'rknn:rk3588?library=PATH'"),
    "device_id": _absent("there is one device; the option device names another"),
    "weight_path": _absent("use_weight_from takes the constants of another session"),
}
_SAME = (("custom_op_path", "custom_op_paths"),
         ("custom_op_default_path", "load_custom_ops_from_default_path"))
NAMES = tuple(_CHECKS)


def take_original(options: Mapping[str, Any], provider: str) -> tuple[dict[str, Any], RunOptions | None]:
    """(the options that are left, what calls without RunOptions run with). RuntimeError for a value that is not
    allowed, and for two names of one thing."""
    left = dict(options)
    for one, other in _SAME:
        if one in left and other in left:
            raise RuntimeError(f"{one} and {other} are two names for one thing; leave one of them out")
    third = provider == "RKNPU3ExecutionProvider"
    for name, check in {**_CHECKS, **(_CHECKS_3 if third else {})}.items():
        if name in left:
            check(name, left.pop(name))
    return left, _of_third(left) if third else None


def _of_third(left: dict[str, Any]) -> RunOptions | None:
    if "run_core_mask" in left:
        mask = left.pop("run_core_mask")
        if not isinstance(mask, (int, str)) or mask not in _MASKS:
            raise RuntimeError(f"run_core_mask: {mask!r} is none of {', '.join(map(repr, _MASKS))}")
        left.setdefault("tp_mode", _MASKS[mask])
    priority = str(left.pop("priority", 0))
    if priority in ("0", "", "None"):
        return None
    calls = RunOptions()
    calls.add_run_config_entry("corelane.priority", priority)
    return calls
