"""The descriptive part of a session: inputs and outputs, providers, figures, records."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from .._errors import Fail, StatusError, numbered, translated
from .._errors import NotImplemented as NotSupported
from .inner import InnerSession
from .memory import OrtMemoryInfo, check_device
from .options import choose_provider, split_providers
from .model_bytes import OrtEpAssignedSubgraph
from .profile import Profile, own_number
from .providers import CPU_PROVIDER, ELSEWHERE, RKNN_PROVIDERS, named
from .settings import SessionOptions
from .values import ModelMetadata, NodeArg, OrtValue


class Shown:
    """A property that an attribute of an instance hides: classes made from InferenceSession, and their users,
    set attributes of these names."""

    def __init__(self, get: Callable[[Any], Any]):
        self._get = get
        self.__doc__ = get.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else self._get(instance)


class Described:
    """The part of InferenceSession that runs nothing."""

    _native: Any
    _options: SessionOptions
    _strict: bool
    _inputs: list[NodeArg]
    _outputs: list[NodeArg]
    _providers: list[str]
    _provider: str
    _profile: Profile | None
    _assigned: list[OrtEpAssignedSubgraph] | None

    def _node(self, description: dict) -> NodeArg:
        four = len(description["shape"]) == 4
        nhwc = description["layout"] == "nhwc"
        return NodeArg(description, ("NHWC" if nhwc else "NCHW") if four else "UNDEFINED")

    def get_inputs(self) -> list[NodeArg]:
        """In model order, as run() takes them."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """In model order, as run() returns them."""
        return list(self._outputs)

    @Shown
    def input_names(self) -> list[str]:
        """Names of get_inputs()."""
        return [node.name for node in self._inputs]

    @Shown
    def output_names(self) -> list[str]:
        """Names of get_outputs()."""
        return [node.name for node in self._outputs]

    # Names that onnxruntime does not document and programs read.
    _inputs_meta = Shown(lambda self: self.get_inputs())
    _outputs_meta = Shown(lambda self: self.get_outputs())
    _overridable_initializers = Shown(lambda self: self.get_overridable_initializers())
    _model_meta = Shown(lambda self: self.get_modelmeta())
    _sess_options = Shown(lambda self: self.get_session_options())
    _provider_options = Shown(lambda self: self.get_provider_options())

    def get_native_inputs(self) -> list[NodeArg]:
        """Inputs as the program has them: quantized types with scale and zero point."""
        return [self._node(d) for d in self._native.native_inputs()]

    def get_native_outputs(self) -> list[NodeArg]:
        """Outputs as the program has them: quantized types with scale and zero point."""
        return [self._node(d) for d in self._native.native_outputs()]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Initializers of which a feed of run() may hold other values."""
        return list(self._overridable)

    def get_modelmeta(self) -> ModelMetadata:
        """The model's own metadata; with an RKNN provider also "rknn_custom_string"."""
        description = self._native.description()
        meta = ModelMetadata()
        meta.custom_metadata_map = dict(description["metadata"])
        if not self._strict:
            meta.custom_metadata_map["rknn_custom_string"] = description["custom_string"]
        meta.graph_name = description["name"]
        meta.producer_name = description["producer_name"]
        meta.domain, meta.description = description["domain"], description["description"]
        meta.graph_description = description["graph_description"]
        if description["version"] is not None:
            meta.version = description["version"]
        return meta

    def get_providers(self) -> list[str]:
        """Names, the deciding provider first."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options in force by provider, as texts."""
        effective: dict[str, str] = {}
        if not self._strict:
            for key, value in self._native.options().items():
                if isinstance(value, list):
                    value = ",".join(map(str, value))
                effective[key] = str(value).lower() if isinstance(value, bool) else str(value)
            effective["device"] = self._native.device()["instance"]
        return {name: effective if name == self._provider else {} for name in self._providers}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """NotImplemented for providers of other rules: a session stays on its device. Providers that other builds
        of onnxruntime have warn; RuntimeError for other names."""
        pairs = named(split_providers(providers, provider_options))
        for name, _ in pairs:
            if name not in (*RKNN_PROVIDERS, CPU_PROVIDER, *ELSEWHERE):
                raise RuntimeError(f"Unknown Provider Type: {name}")
        _, chosen, _ = choose_provider(pairs)
        if pairs and (chosen in RKNN_PROVIDERS) == self._strict:
            raise NotSupported("a session cannot change its provider; make a new one")

    def disable_fallback(self) -> None:
        """There is nothing to fall back to."""

    def enable_fallback(self) -> None:
        """There is nothing to fall back to."""

    def get_session_options(self) -> SessionOptions:
        """A copy of what the session was made with."""
        return self._options._copied()

    def get_profiling_start_time_ns(self) -> int:
        """On the clock of time.monotonic_ns(); 0 when off."""
        return 0 if self._profile is None else self._profile.started_ns

    def end_profiling(self) -> str:
        """Writes the records of this session's tasks as a Chrome trace and returns the file's name; '' when
        off. Fail where the file cannot be written; the profile has ended all the same."""
        profile, self._profile = self._profile, None
        return "" if profile is None else profile.end()

    def statistics(self) -> dict[str, Any]:
        """Figures since the session was made: tasks accepted, failed, by context, ..."""
        return self._native.statistics()

    def set_trace(self, records: int) -> None:
        """Keeps the last `records` records of each core of the device; 0 switches it off. The ring is the
        device's: sessions that share it see each other's tasks."""
        if not isinstance(records, (int, np.integer)) or not 0 <= records < 2**63:
            raise ValueError(f"records: expected an integer from 0 on, given {records!r}")
        self._traced(self._native.set_trace, int(records))

    def read_trace(self) -> list[dict[str, Any]]:
        """task_id, core_bits, queue_depth, code ("ok", or the name of the failure, such as "engine_failed") and the
        times queued_ns, started_ns, ended_ns."""
        records = self._traced(self._native.read_trace)
        for record in records:
            record["task_id"] = own_number(record["task_id"])
        return records

    def _traced(self, function: Callable, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except StatusError as error:
            raise translated(error, self._strict) from None

    def device(self) -> dict[str, Any]:
        """kind, profile, instance, engine (texts) and cores (a number) of the session's device."""
        return self._native.device()

    def engine(self) -> dict[str, str]:
        """engine: name and version of the engine that computes the session's tasks by now; '' once it is closed. why:
        the reason in one line, where that is not the device's own engine; else ''. Both may change while the session
        runs (provider option time_engines)."""
        return self._native.engine()

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """For each input: the memory of the host."""
        return [OrtMemoryInfo("Cpu") for _ in self._inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """For each output: the memory of the host."""
        return [OrtMemoryInfo("Cpu") for _ in self._outputs]

    def get_input_epdevices(self) -> list[None]:
        """For each input None, as for onnxruntime's CPU provider: there is no device of a plug-in."""
        return [None for _ in self._inputs]

    @property
    def _sess(self) -> InnerSession:
        return InnerSession(self)

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Each node of the model, of the one provider that runs it. Fail unless the session entry
        "session.record_ep_graph_assignment_info" was "1" when the session was made."""
        if self._assigned is None:
            raise numbered(Fail, "Session configuration entry 'session.record_ep_graph_assignment_info' must be "
                                 'set to "1" to retrieve EP graph assignment information.')
        return list(self._assigned)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotSupported("this member of InferenceSession is not served by corelane; "
                           "docs/apis/python.md lists what is")

    get_tuning_results = set_tuning_results = _refuse
    set_ep_dynamic_options = release_captured_graph = _refuse

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: Any, device_type: str,
                                            device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        """Fresh memory; see OrtValue.ortvalue_from_shape_and_type()."""
        check_device(device_type, device_id)
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type)
