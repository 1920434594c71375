"""The names of `ztu_somemodelruntime_ez_rknn_async`: corelane's, on its RKNN provider by default, with the helpers,
defaults and answers of that package where they differ.

    import corelane.ez_rknn_async as ort
    options = ort.make_provider_options(schedule=[0, 1, 2])
    session = ort.InferenceSession("model.rknn", provider_options=options)

`corelane.alias.install("ztu_somemodelruntime_ez_rknn_async")` makes it importable under that name.
docs/apis/rknn-python.md has the table of what is served.
"""

from __future__ import annotations

from typing import Any, TypedDict

import corelane as _corelane
from corelane import *  # noqa: F401,F403 - all its names are this module's

_DEFAULT = "RKNPU2ExecutionProvider"

__version__ = _corelane.__version__


class Rknpu2ProviderOptions(TypedDict, total=False):
    """Options of a session; corelane.make_provider_options takes more."""

    layout: str
    zero_copy_layout: str
    max_queue_size: int
    threads_per_core: int
    submit_timeout_ms: int
    sequential_callbacks: bool
    schedule: Any
    tp_mode: str
    enable_pacing: bool
    disable_dup_context: bool
    custom_op_paths: Any
    custom_op_default_path: bool


class Rknpu3ProviderOptions(TypedDict, total=False):
    """Options of a session on "RKNPU3ExecutionProvider"."""

    runtime_library: Any
    device_id: Any
    weight_path: Any
    priority: int
    run_timeout_ms: int
    run_core_mask: Any


RknnProviderOptions = Rknpu2ProviderOptions


def make_rknpu2_provider_options(*, layout: str = "original", zero_copy_layout: str = "nhwc",
                                 max_queue_size: int = 3, threads_per_core: int = 1,
                                 submit_timeout_ms: int = 10000, sequential_callbacks: bool = True,
                                 schedule: Any = None, tp_mode: str | None = None, enable_pacing: bool = False,
                                 disable_dup_context: bool = False, custom_op_paths: Any = None,
                                 custom_op_default_path: bool = False, **more: Any) -> dict[str, Any]:
    """A dict of options with their defaults; without schedule, tp_mode and custom_op_paths where they are None.
    more: Corelane's own, as in corelane.make_provider_options. ValueError when schedule and tp_mode are both
    given; TypeError for an unknown name."""
    optional = {"schedule": schedule, "tp_mode": tp_mode, "custom_op_paths": custom_op_paths}
    made = {"layout": layout, "zero_copy_layout": zero_copy_layout, "max_queue_size": max_queue_size,
            "threads_per_core": threads_per_core, "submit_timeout_ms": submit_timeout_ms,
            "sequential_callbacks": sequential_callbacks, "enable_pacing": enable_pacing,
            "disable_dup_context": disable_dup_context, "custom_op_default_path": custom_op_default_path}
    return _corelane.make_provider_options(**made, **more, **{k: v for k, v in optional.items() if v is not None})


make_provider_options = make_rknpu2_provider_options


def make_rknpu3_provider_options(*, runtime_library: Any = None, device_id: Any = None, weight_path: Any = None,
                                 priority: int = 0, run_timeout_ms: int = 0,
                                 run_core_mask: Any = "auto") -> dict[str, Any]:
    """A dict of options for "RKNPU3ExecutionProvider", without the first three where they are None."""
    optional = {"runtime_library": runtime_library, "device_id": device_id, "weight_path": weight_path}
    return {"priority": priority, "run_timeout_ms": run_timeout_ms, "run_core_mask": run_core_mask,
            **{name: value for name, value in optional.items() if value is not None}}


def get_available_providers() -> list[str]:
    """Providers a session may name. Here the list names them, as the RKNN provider is the default."""
    return [str(name) for name in _corelane.get_available_providers()]


class OrtValue(_corelane.OrtValue):
    """corelane.OrtValue, whose element type is a text."""

    __slots__ = ()

    def element_type(self) -> str:
        """Such as 'tensor(float)'."""
        return self.data_type()


class InferenceSession(_corelane.InferenceSession):
    """corelane.InferenceSession on RKNPU2ExecutionProvider, unless `providers` says otherwise: inputs of
    other types are converted, and schedule, tp_mode and the like apply."""

    _value_class = OrtValue

    def __init__(self, path_or_bytes: Any, sess_options: Any = None, providers: Any = None,
                 provider_options: Any = None, **kwargs: Any):
        super().__init__(path_or_bytes, sess_options, providers or [_DEFAULT], provider_options or None, **kwargs)

    def get_inputs(self) -> list[NodeArg]:  # noqa: F405 - corelane's
        """In model order. Of a model with listed shapes those of the first entry: np.zeros(node.shape) fits."""
        sets = self._native.description()["shape_sets"]
        return [node.of_shape(shape) for node, shape in zip(self._inputs, sets[0])] if sets else list(self._inputs)

    def get_providers(self) -> list[str]:
        """The one provider of the session."""
        return [_DEFAULT if self._provider == "RKNNExecutionProvider" else self._provider]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options in force, and those given that are taken without effect, as texts."""
        (name,) = self.get_providers()
        effective = super().get_provider_options()[self._provider]
        return {name: {**{key: str(value) for key, value in self._given.items()}, **effective}}


__all__ = [*_corelane.__all__, "RknnProviderOptions", "Rknpu2ProviderOptions", "Rknpu3ProviderOptions",
           "make_rknpu2_provider_options", "make_rknpu3_provider_options"]
