"""IOBinding: memory that a session reads and writes, bound once."""

from __future__ import annotations

import threading
from typing import Any, Iterable

import numpy as np

from . import _arrays, _native
from ._errors import InvalidArgument, StatusError
from ._values import OrtValue, check_device


class IOBinding:
    """Made by InferenceSession.io_binding() and used with that session alone. Threads take turns."""

    def __init__(self, session: Any):
        self._session = session
        try:
            self._native = _native.Binding(session._native)
        except StatusError as error:
            raise session._translated(error) from None
        self._turn = threading.RLock()

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            with self._turn:
                return function(*arguments)
        except StatusError as error:
            raise self._session._translated(error) from None

    def _known(self, name: str, nodes: Iterable[Any]) -> None:
        if all(node.name != name for node in nodes):
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Reads the array at each run, as onnxruntime does (a copy where it is not contiguous). With an RKNN
        provider it is copied now, and may change."""
        self._known(name, self._session.get_inputs())
        bind = self._native.bind_input if self._session._strict else self._native.copy_input
        self._call(bind, name, arr_on_cpu)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any,
                   shape: Iterable[int], buffer_ptr: int) -> None:
        """Reads the memory at an address, which must stay valid."""
        check_device(device_type, device_id)
        self._known(name, self._session.get_inputs())
        self._call(self._native.bind_raw_input, name, int(buffer_ptr), _arrays.number_of(element_type),
                   list(shape))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._known(name, self._session.get_inputs())
        self._call(self._native.bind_input, name, ortvalue)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Iterable[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Fresh memory at each run, or the memory at an address."""
        check_device(device_type, device_id)
        self._known(name, self._session.get_outputs())
        if buffer_ptr is None:
            self._call(self._native.bind_output, name)
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is "
                             "provided")
        self._call(self._native.bind_raw_output, name, int(buffer_ptr), _arrays.number_of(element_type),
                   list(shape))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._known(name, self._session.get_outputs())
        array, number = _arrays.coerce(ortvalue, name, ortvalue.element_type())
        self._call(self._native.bind_output_array, name, array, number)

    def synchronize_inputs(self) -> None:
        """Memory of the host needs none."""

    def synchronize_outputs(self) -> None:
        """Memory of the host needs none."""

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        return [array.copy() for array in self._call(self._native.outputs)]

    def get_outputs(self) -> list[OrtValue]:
        """What the last run gave, in order of binding; shared memory."""
        return [OrtValue(array) for array in self._call(self._native.outputs)]

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        return self.get_outputs()

    def clear_binding_inputs(self) -> None:
        self._call(self._native.clear_inputs)

    def clear_binding_outputs(self) -> None:
        self._call(self._native.clear_outputs)

    def _run(self, terms: Any) -> None:
        if not self._native.output_names:
            raise InvalidArgument("Error in execution: At least one output should be requested.")
        self._call(self._native.run, terms)
