"""Names of providers, and lists of them as programs write them."""

from __future__ import annotations

import warnings
from typing import Any, Iterable, Mapping, Sequence


class Listed(str):
    """A name as get_available_providers() gives it. Programs that hand that list on, or what they left of it,
    have named no provider; a plain text of the same letters names one."""

    __slots__ = ()


RKNN_PROVIDERS = ("RKNPU2ExecutionProvider", "RKNNExecutionProvider", "RKNPU3ExecutionProvider")
CPU_PROVIDER = "CPUExecutionProvider"
#: Those of other builds of onnxruntime: it warns where one is named that it lacks, and knows no others.
ELSEWHERE = tuple(f"{name}ExecutionProvider" for name in (
    "ACL", "Azure", "CANN", "CUDA", "CoreML", "Dml", "Dnnl", "Js", "MIGraphX", "Nnapi", "NvTensorRTRTX", "OpenVINO",
    "QNN", "Rknpu", "ROCM", "Tensorrt", "VSINPU", "VitisAI", "WebGpu", "WebNN", "Xnnpack"))
AVAILABLE = [Listed("RKNPU2ExecutionProvider"), Listed(CPU_PROVIDER)]


def named(pairs: Iterable[tuple[str, dict]]) -> list[tuple[str, dict]]:
    """The pairs of name and options without the RKNN providers that a program did not name: those that
    get_available_providers() listed along with the CPU's, and that have no options. Names are plain then."""
    pairs = list(pairs)
    handed_on = any(isinstance(name, Listed) and name == CPU_PROVIDER for name, _ in pairs)
    return [(str(name), options) for name, options in pairs
            if options or not (handed_on and isinstance(name, Listed) and name in RKNN_PROVIDERS)]


def check_and_normalize_provider_args(providers: Any, provider_options: Any,
                                      available_provider_names: Sequence[str]) -> tuple[list, list]:
    """onnxruntime's function of this name: the names, each once, and a dict of texts for each. ValueError for
    lists that do not fit; names that are not available, or come twice, warn."""
    if providers is None:
        return [], []
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is None:
        provider_options = [None] * len(providers)
    elif not isinstance(provider_options, Sequence):
        raise ValueError("'provider_options' should be a sequence.")
    elif len(providers) != len(provider_options):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    normalized: dict[str, dict[str, str]] = {}
    for provider, given in zip(providers, provider_options):
        name, options = _pair(provider, given)
        if name not in available_provider_names:
            warnings.warn(f"Specified provider '{name}' is not in available provider names."
                          f"Available providers: '{', '.join(available_provider_names)}'", stacklevel=2)
        if name in normalized:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=2)
            continue
        normalized[name] = {str(key): str(value) for key, value in options.items()}
    return list(normalized), list(normalized.values())


def _pair(provider: Any, given: Any) -> tuple[str, Mapping]:
    if isinstance(provider, str):
        if given is not None and not isinstance(given, dict):
            raise ValueError("'provider_options' values must be dicts.")
        return provider, given or {}
    if given is not None:
        raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
    if not (isinstance(provider, tuple) and len(provider) == 2 and isinstance(provider[0], str)
            and isinstance(provider[1], dict)):
        raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
    return provider
