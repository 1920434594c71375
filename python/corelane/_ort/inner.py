"""What code reaches behind onnxruntime's classes: `session._sess` and vectors of OrtValues."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy as np

from .values import NodeArg, OrtValue


class OrtValueVector(list):
    """A list of OrtValues with the methods of onnxruntime's vector."""

    def push_back(self, value: OrtValue) -> None:
        """append()."""
        self.append(value)

    def push_back_batch(self, tensors: Iterable[Any], data_ptrs: Sequence[int], element_types: Sequence[Any],
                        shapes: Sequence[Sequence[int]], devices: Any = None) -> None:
        """Values over memory that `tensors` own and that must outlive the vector."""
        from .. import _arrays
        for address, kind, shape in zip(data_ptrs, element_types, shapes):
            number = _arrays.number_of(kind)
            self.append(OrtValue(_arrays.memory_at(int(address), number, list(shape)), number))

    def reserve(self, size: int) -> None:
        """A list needs none."""

    def shrink_to_fit(self) -> None:
        """A list needs none."""

    def element_type_at(self, index: int) -> int:
        """The ONNX number of the element type of one."""
        return self[index].element_type()

    def bool_tensor_indices(self) -> list[int]:
        """The places of tensors of truth values."""
        return [i for i, value in enumerate(self) if value.data_type() == "tensor(bool)"]

    def dlpack_at(self, index: int) -> Any:
        """A capsule that shares the memory of one."""
        return self[index].to_dlpack()

    def to_dlpacks(self, to_tensor: Callable | None = None) -> list:
        """Capsules of all, each given to the function where there is one."""
        capsules = [value.to_dlpack() for value in self]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]


class _Inner:
    """What stands behind an object, under the names of onnxruntime's inner class; _SAME: those that both have."""

    _SAME: tuple[str, ...] = ()

    def __init__(self, outer: Any):
        self._outer = outer

    def __getattr__(self, name: str) -> Any:
        if name not in self._SAME:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}; docs/apis/python.md lists what "
                                 "the object in front of it has")
        return getattr(self._outer, name)


class InnerSession(_Inner):
    """`session._sess`: it shares all with the session that it is taken from."""

    _SAME = ("get_providers", "get_provider_options", "end_profiling", "run_async", "run_with_ortvaluevector",
             "set_ep_dynamic_options", "release_captured_graph", "get_tuning_results", "set_tuning_results",
             "get_provider_graph_assignment_info")

    @property
    def inputs_meta(self) -> list[NodeArg]:
        """get_inputs()."""
        return self._outer.get_inputs()

    @property
    def outputs_meta(self) -> list[NodeArg]:
        """get_outputs()."""
        return self._outer.get_outputs()

    @property
    def overridable_initializers(self) -> list[NodeArg]:
        """get_overridable_initializers()."""
        return self._outer.get_overridable_initializers()

    @property
    def input_meminfos(self) -> list:
        """get_input_memory_infos()."""
        return self._outer.get_input_memory_infos()

    @property
    def output_meminfos(self) -> list:
        """get_output_memory_infos()."""
        return self._outer.get_output_memory_infos()

    @property
    def input_epdevices(self) -> list:
        """get_input_epdevices()."""
        return self._outer.get_input_epdevices()

    @property
    def model_meta(self) -> Any:
        """get_modelmeta()."""
        return self._outer.get_modelmeta()

    @property
    def session_options(self) -> Any:
        """get_session_options()."""
        return self._outer.get_session_options()

    @property
    def get_profiling_start_time_ns(self) -> int:
        """A number here, a method of the session."""
        return self._outer.get_profiling_start_time_ns()

    def run(self, output_names: Any, input_feed: Any, run_options: Any = None) -> list[np.ndarray]:
        """run() of InferenceSession: a class made from that may call it in a run() of its own."""
        return self._outer._run_plain(output_names, input_feed, run_options)

    def run_with_ort_values(self, input_feed: Mapping[str, OrtValue], output_names: Any,
                            run_options: Any = None) -> OrtValueVector:
        """run_with_ort_values() of the session, in this order of arguments."""
        return OrtValueVector(self._outer.run_with_ort_values(output_names, input_feed, run_options))

    def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> None:
        """run_with_iobinding() of the session, of its binding or of what is behind it."""
        outer = iobinding._outer if isinstance(iobinding, InnerBinding) else iobinding
        self._outer.run_with_iobinding(outer, run_options)


class InnerBinding(_Inner):
    """`binding._iobinding`: the binding with the arguments of onnxruntime's inner class."""

    _SAME = ("bind_ortvalue_input", "bind_ortvalue_output", "synchronize_inputs", "synchronize_outputs",
             "clear_binding_inputs", "clear_binding_outputs", "copy_outputs_to_cpu")

    def bind_input(self, name: str, value: Any, element_type: Any = None, shape: Any = None,
                   buffer_ptr: int | None = None) -> None:
        """An array, or an OrtDevice and the memory at an address there."""
        if isinstance(value, np.ndarray):
            self._outer.bind_cpu_input(name, value)
        else:
            self._outer.bind_input(name, value.name(), value.device_id(), element_type, shape, buffer_ptr)

    def bind_output(self, name: str, device: Any, element_type: Any = None, shape: Any = None,
                    buffer_ptr: int | None = None) -> None:
        """Fresh memory of an OrtDevice, or the memory at an address there."""
        self._outer.bind_output(name, device.name(), device.device_id(), element_type, shape, buffer_ptr)

    def get_outputs(self) -> OrtValueVector:
        """get_outputs() of the binding."""
        return self._outer.get_outputs_as_ortvaluevector()


def session_iobinding(session: InnerSession) -> InnerBinding:
    """onnxruntime's SessionIOBinding: of `session._sess`."""
    return session._outer.io_binding()._iobinding
