"""The names of `ztu_somemodelruntime_ez_rknn_async`: corelane's, on its RKNN provider by default.

    import corelane.ez_rknn_async as ort
    options = ort.make_provider_options(schedule=[0, 1, 2])
    session = ort.InferenceSession("model.rknn", provider_options=options)

`corelane.alias.install("ztu_somemodelruntime_ez_rknn_async")` makes it importable under that name.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import corelane as _corelane
from corelane import *  # noqa: F401,F403 - all its names are this module's

_DEFAULT = "RKNPU2ExecutionProvider"

__version__ = _corelane.__version__


class InferenceSession(_corelane.InferenceSession):
    """corelane.InferenceSession on RKNPU2ExecutionProvider, unless `providers` says otherwise: inputs of
    other types are converted, and schedule, tp_mode and the like apply."""

    def __init__(self, path_or_bytes: Any, sess_options: Any = None, providers: Any = None,
                 provider_options: Any = None, **kwargs: Any):
        super().__init__(path_or_bytes, sess_options, providers or [_DEFAULT], provider_options, **kwargs)

    def run_async(self, output_names: Sequence[str] | None, input_feed: Any, callback: Callable,
                  user_data: Any = None, run_options: Any = None) -> None:
        """callback(outputs, user_data, "") or callback(None, user_data, message)."""
        super().run_async(output_names, input_feed, callback, user_data, run_options)


__all__ = [*_corelane.__all__]
