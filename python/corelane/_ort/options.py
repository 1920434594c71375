"""Providers and their options: names, allowed values and defaults.

Without an RKNN provider a session follows onnxruntime's rules; with one, those of RKNN users: inputs
of other element types are converted, and option errors are RuntimeErrors.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Mapping, Sequence

import numpy as np

from .. import _native
from .._errors import StatusError
from . import option_values
from .original_options import NAMES as _ORIGINAL
from .providers import AVAILABLE, CPU_PROVIDER, RKNN_PROVIDERS, named

UNLIMITED = -1
_MOST_CORES = 64  # Of a device.
_TEN_YEARS_MS = 10 * 365 * 24 * 3600 * 1000

# By name: a function of (name, value) that checks the value.
_READERS = {
    "schedule": option_values.cores, "tp_mode": option_values.tp_mode, "placement": option_values.text,
    "layout": option_values.text, "device": option_values.text, "profile": option_values.text,
    "precision": option_values.text, "output_form": option_values.text, "part": option_values.text,
    "engine": option_values.engine, "custom_operators": option_values.operators,
    "threads_per_core": option_values.integer, "max_queue_size": option_values.integer,
    "submit_timeout_ms": option_values.integer, "max_pending_callbacks": option_values.integer,
    "run_timeout_ms": option_values.limit, "load_timeout_ms": option_values.limit, "load_memory": option_values.limit,
    **dict.fromkeys(("enable_pacing", "disable_dup_context", "sequential_callbacks", "fast_math", "normalize", "cache",
                     "time_engines", "static_forms"), option_values.flag),
}
OPTIONS = tuple(_READERS)
# None means "not given" for these; elsewhere it is an error, as in the original.
_OPTIONAL = ("schedule", "tp_mode", "device", "profile")


def make_provider_options(schedule=None, tp_mode=None, threads_per_core=None, **options) -> dict[str, Any]:
    """A dict of provider options, without those that are None. Further names: placement, enable_pacing,
    disable_dup_context, max_queue_size, submit_timeout_ms, run_timeout_ms, sequential_callbacks,
    max_pending_callbacks, layout, device, profile, output_form, custom_operators, precision, fast_math, normalize,
    cache, engine, time_engines, static_forms, load_timeout_ms, load_memory, part. See docs/apis/python.md.

    ValueError when schedule and tp_mode are both given; TypeError for an unknown name."""
    given = {"schedule": schedule, "tp_mode": tp_mode, "threads_per_core": threads_per_core, **options}
    for name in given:
        if name not in _READERS and name not in _ORIGINAL:
            raise TypeError(f"unknown provider option {name!r}; known are {', '.join(_READERS)}")
    if schedule is not None and tp_mode is not None:
        raise ValueError("schedule and tp_mode exclude each other; leave one of them out")
    return {name: value for name, value in given.items() if value is not None}


def read_provider_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Checked options for the native session. RuntimeError names the option and what it takes."""
    read = {}
    for name, value in options.items():
        if name not in _READERS:
            raise RuntimeError(f"unknown provider option {name!r}; known are {', '.join(_READERS)}")
        if value is None and name in _OPTIONAL:
            continue
        try:
            read[name] = _READERS[name](name, value)
        except StatusError as error:
            raise RuntimeError(f"{name}: {error}") from None
    if "schedule" in read and "tp_mode" in read:
        raise RuntimeError("schedule and tp_mode exclude each other; leave one of them out")
    profile = read.pop("profile", None)
    if profile is not None:
        kind, mark, rest = read.get("device", "").partition("?")
        if ":" in kind:
            raise RuntimeError(f"profile {profile!r} and device {read['device']!r} both name a profile")
        read["device"] = f"{kind or 'virtual'}:{profile}{mark}{rest}"
    return read


def rknn_session_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for a session by the rules of RKNN users."""
    return {**read_provider_options(options), "lenient": True}


def strict_session_options(options: Mapping[str, Any], intra_op_num_threads: int = 0) -> dict[str, Any]:
    """Options by onnxruntime's rules: it has no queue that could be full, so callers wait; its device is this
    machine, so the default is a virtual one with a core for each CPU of the process's affinity and quota. A call
    that is alone takes all of them, or one where that is quicker (with intra_op_num_threads 1 always one); calls at
    the same time take one each."""
    read = {"max_queue_size": UNLIMITED, "max_pending_callbacks": UNLIMITED,
            "submit_timeout_ms": _TEN_YEARS_MS, **read_provider_options(options), "lenient": False}
    if "device" not in read and not os.environ.get("CORELANE_DEVICE"):
        cores = min(_native.usable_cpus(), _MOST_CORES)
        read["device"] = f"virtual:generic:{cores}"
        if "schedule" not in read and "tp_mode" not in read:
            read["schedule"] = list(range(cores))
            read.setdefault("placement", "least_loaded" if intra_op_num_threads == 1 else "adaptive")
    return read


def copied(given: Any) -> Any:
    """The same providers and options; what is changed in the ones given from now on is not changed in them."""
    if isinstance(given, Mapping):
        return {key: copied(value) for key, value in given.items()}
    if isinstance(given, (list, tuple)):
        return type(given)(copied(value) for value in given) if type(given) in (list, tuple) else given
    return given.copy() if isinstance(given, np.ndarray) else given


def check_once(here: Mapping[str, Any], there: Mapping[str, Any]) -> None:
    """RuntimeError where SessionOptions and the provider's options both give one thing."""
    for name in here:
        if name in there:
            raise RuntimeError(f"{name} is given by SessionOptions and by the provider's options; leave one out")


def split_providers(providers: Any, provider_options: Any) -> list[tuple[str, dict]]:
    """Pairs of name and options. ValueError, in onnxruntime's words, for lists that do not fit."""
    if providers is None:
        return []
    if isinstance(providers, str) or _is_pair(providers):
        providers = [providers]
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is not None:
        if isinstance(provider_options, Mapping):
            provider_options = [provider_options]
        if not isinstance(provider_options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are "
                             "given.")
        if any(_is_pair(p) and p[1] for p in providers):
            raise ValueError("Cannot specify options both inline and in 'provider_options'.")
    pairs = []
    for i, provider in enumerate(providers):
        options = provider_options[i] if provider_options is not None else {}
        if _is_pair(provider):
            provider, inline = provider
            options = options or inline
        if not isinstance(provider, str):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        if not isinstance(options, Mapping):
            raise ValueError("'provider_options' values must be dicts.")
        pairs.append((provider, dict(options)))
    return pairs


def _is_pair(given: Any) -> bool:
    """Whether it is a provider's name with its options."""
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], Mapping)


def choose_provider(pairs: list[tuple[str, dict]]) -> tuple[list[str], str, dict]:
    """(names with the deciding provider first, the deciding provider, its options). An RKNN provider that the
    program names decides at any place of the list; two of them are a RuntimeError, since a session has one
    device. Unknown names warn."""
    names: list[str] = []
    pairs = named(pairs)
    for name, _ in pairs:
        if name not in RKNN_PROVIDERS and name != CPU_PROVIDER:
            warnings.warn(f"Specified provider '{name}' is not in available provider names."
                          f"Available providers: '{', '.join(AVAILABLE)}'", UserWarning, stacklevel=4)
            continue
        if name in names:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", UserWarning, stacklevel=4)
            continue
        names.append(name)
    devices = [name for name in names if name in RKNN_PROVIDERS]
    if len(devices) > 1:
        raise RuntimeError(f"providers: {' and '.join(devices)} are both providers of a device; name one")
    chosen = devices[0] if devices else CPU_PROVIDER
    options = next((given for name, given in pairs if name == chosen), {})
    return devices + [CPU_PROVIDER], chosen, options
