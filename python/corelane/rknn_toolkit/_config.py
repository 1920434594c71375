"""The keywords of RKNN.config(): what they take, and which of them change anything here."""

from __future__ import annotations

import numbers
from typing import Any, Sequence

from .._rknn.log import UsageError

PLATFORMS = ("rk3562", "rk3566", "rk3568", "rk3576", "rk3588", "rk2118", "rv1103", "rv1103b", "rv1106",
             "rv1106b", "rv1126b")
INT8 = ("asymmetric_quantized-8", "w8a8")
_ALGORITHMS = {"normal": "minmax", "kl_divergence": "entropy"}

# Hints to the vendor's compiler: accepted, without effect on results here.
HINTS = {"quantized_hybrid_level": 0, "float_dtype": "float16", "optimization_level": 3,
         "compress_weight": False, "single_core_mode": False, "model_pruning": False, "op_target": None,
         "quantize_weight": False, "sparse_infer": False, "enable_flash_attention": False,
         "disable_rules": (), "auto_hybrid_cos_thresh": 0.98, "auto_hybrid_euc_thresh": None}
# These change what a program takes or is; only their defaults are served.
REFUSED = {"remove_weight": (False, "`corelane compile --remove-weights` makes a program without weights"),
           "remove_reshape": (False, "leave it out: reshapes at the ends cost nothing here"),
           "inputs_yuv_fmt": (None, "convert the pictures to RGB before inference")}
SERVED = {"mean_values": None, "std_values": None, "quantized_dtype": INT8[0],
          "quantized_algorithm": "normal", "quantized_method": "channel", "target_platform": None,
          "quant_img_RGB2BGR": False, "custom_string": None, "dynamic_input": None}


class Config:
    """Checked values. TypeError for an unknown keyword, UsageError (a ValueError) for a bad value."""

    def __init__(self, given: dict[str, Any]):
        known = [*SERVED, *HINTS, *REFUSED]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise TypeError(f"config() has no keyword {unknown[0]!r}; it has {', '.join(sorted(known))}")
        for name, (default, remedy) in REFUSED.items():
            value = given.get(name, default)
            if value != default and value is not None:
                raise UsageError(f"{name}={value!r} is not served; {remedy}")
        values = {**SERVED, **given}
        self.hints = sorted(n for n in given if n in HINTS and given[n] is not None and given[n] != HINTS[n])
        _among("optimization_level", given.get("optimization_level"), (None, 0, 1, 2, 3))
        self.means = _channels("mean_values", values["mean_values"])
        self.stds = _channels("std_values", values["std_values"])
        if any(std == 0 for one in self.stds or () for std in one or ()):
            raise UsageError("std_values: 0 cannot be divided by")
        _among("quantized_dtype", values["quantized_dtype"], INT8)
        _among("quantized_algorithm", values["quantized_algorithm"], tuple(_ALGORITHMS))
        self.calibration = _ALGORITHMS[values["quantized_algorithm"]]
        _among("quantized_method", values["quantized_method"], ("channel", "layer"))
        self.per_channel = values["quantized_method"] == "channel"
        self.platform = _platform(values["target_platform"])
        self.rgb_to_bgr = bool(values["quant_img_RGB2BGR"])
        self.custom_string = _text("custom_string", values["custom_string"])
        self.shape_sets = _shape_sets(values["dynamic_input"])


def _among(name: str, value: Any, allowed: tuple) -> None:
    if value not in allowed:
        served = ", ".join(repr(v) for v in allowed if v is not None)
        raise UsageError(f"{name}: {value!r} is not served; {served} {'is' if len(allowed) == 1 else 'are'}")


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"{name}: expected a text, given {value!r}")
    if len(value.encode()) > 1023:
        raise UsageError(f"{name}: {len(value.encode())} bytes are more than the 1023 that a program keeps")
    return value


def _platform(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or value.lower() not in PLATFORMS:
        raise UsageError(f"target_platform: {value!r} is none of {', '.join(PLATFORMS)}")
    return value.lower()


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _channels(name: str, values: Any) -> list | None:
    """A list of numbers (or None) for each input. One plain list of numbers is that of the only input."""
    if values is None:
        return None
    if hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, (list, tuple)) or not values:
        raise UsageError(f"{name}: expected a list with the channels of each input, such as [[0, 0, 0]]; "
                         f"given {values!r}")
    if all(_is_number(v) for v in values):
        values = [values]
    for one in values:
        if one is not None and (not isinstance(one, (list, tuple)) or not all(_is_number(v) for v in one)):
            raise UsageError(f"{name}: {one!r} is not a list of numbers; [[0, 0, 0]] has one for each "
                             "channel")
    return [None if one is None else [float(v) for v in one] for one in values]


def shapes(name: str, values: Any) -> list[list[int]]:
    """A list of shapes of positive dimensions."""
    if not isinstance(values, (list, tuple)) or not values:
        raise UsageError(f"{name}: expected a list of shapes, such as [[1, 3, 224, 224]]; given {values!r}")
    for shape in values:
        if not isinstance(shape, (list, tuple)) or not all(
                isinstance(d, numbers.Integral) and not isinstance(d, bool) and d > 0 for d in shape):
            raise UsageError(f"{name}: {shape!r} is not a shape of positive numbers")
    return [[int(d) for d in shape] for shape in values]


def _shape_sets(values: Any) -> list[list[list[int]]]:
    if values is None:
        return []
    if not isinstance(values, (list, tuple)) or not values:
        raise UsageError("dynamic_input: expected a list of sets, each with the shapes of all inputs, such "
                         f"as [[[1, 3, 224, 224]], [[1, 3, 192, 192]]]; given {values!r}")
    return [shapes("dynamic_input", one) for one in values]


def by_input(name: str, values: Sequence | None, inputs: Sequence[dict]) -> dict[str, list[float]]:
    """What compile() takes: the channels of each input of rank 4."""
    if values is None:
        return {}
    if len(values) != len(inputs):
        raise UsageError(f"{name}: {len(values)} lists for {len(inputs)} inputs; give one for each, None for "
                         "those that have none")
    found = {}
    for channels, desc in zip(values, inputs):
        if channels is None:
            continue
        if len(desc["shape"]) != 4:
            raise UsageError(f"{name}: input {desc['name']!r} has shape {desc['shape']}; only inputs of rank "
                             "4 are normalised, give None for it")
        found[desc["name"]] = channels
    return found
