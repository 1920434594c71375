"""IOBinding: memory that a session reads and writes, bound once."""

from __future__ import annotations

import math
import operator
import threading
from typing import Any, Iterable, Sequence

import numpy as np

from .. import _arrays, _native
from .._errors import InvalidArgument, StatusError, numbered
from .._printable import printable
from .device_value import DEVICES, Slot, check_layout
from .foreign import ort_value
from .inner import InnerBinding, OrtValueVector
from .memory import check_device
from .values import NodeArg, OrtValue
from .wording import misfit


class CheckedOutput:
    """Memory for an output by onnxruntime's rules: of its type and shape, or left alone."""

    def __init__(self, node: NodeArg, array: np.ndarray, number: int):
        self.name, self.array, self.number = node.name, array, number
        if not array.flags.writeable:
            raise InvalidArgument(f"output {node.name!r}: the memory is read-only")
        # Open dimensions: the size is known after the run.
        self.open = any(not isinstance(size, int) for size in node.shape)
        self.type = node.type
        self.misfit = self._misfit(node.shape)

    def _misfit(self, sizes: Sequence) -> str | None:
        given = (_arrays.type_name(self.number), self.array.shape)
        return misfit("output", self.name, given, (self.type, sizes))

    def check(self, shape: tuple | None = None) -> None:
        """InvalidArgument where the memory does not fit; shape is that of the run's output."""
        found = self.misfit or (None if shape is None else self._misfit(shape))
        if found:
            raise numbered(InvalidArgument, f"Error in execution: {found}", lines=True)


class IOBinding:
    """Made by InferenceSession.io_binding() and used with that session alone. Calls of several threads run
    one after the other."""

    def __init__(self, session: Any):
        self._session = session
        try:
            self._native = _native.Binding(session._native)
        except StatusError as error:
            raise session._translated(error) from None
        self._lock = threading.RLock()
        self._checked: dict[str, CheckedOutput] = {}
        # Values that outputs are written to, by name.
        self._targets: dict[str, OrtValue] = {}
        # What a run needs of `_checked`, computed when that changes.
        self._has_outputs = False
        self._refused: list[CheckedOutput] = []
        self._late: list[CheckedOutput] = []

    @property
    def _iobinding(self) -> InnerBinding:
        """Under the name by which code reaches onnxruntime's inner class."""
        return InnerBinding(self)

    def _changed(self) -> None:
        self._has_outputs = bool(self._native.output_names)
        self._refused = [output for output in self._checked.values() if output.misfit]
        self._late = [output for output in self._checked.values() if output.open]

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            with self._lock:
                return function(*arguments)
        except StatusError as error:
            raise self._session._translated(error) from None

    def _own(self, function: str, ortvalue: Any) -> OrtValue:
        value = ort_value(ortvalue, function)
        device = value._device
        if device is not None and not device.imported and device.slot.session._native is not self._session._native:
            raise RuntimeError(f"{function}: the OrtValue is memory of another session's device; make it with this "
                               "session, or import a descriptor by OrtValue.ortvalue_from_dmabuf")
        return value

    def _known(self, name: str, nodes: Iterable[Any]) -> None:
        if all(node.name != name for node in nodes):
            raise RuntimeError(printable(f"Failed to find NodeArg with name: {name} in the def list"))

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Reads the array at each run, as onnxruntime does (a copy where it is not contiguous). With an RKNN
        provider it is copied now, and may change."""
        self._known(name, self._session.get_inputs())
        if arr_on_cpu is None:
            raise TypeError(f"bind_cpu_input: input {name!r} needs a numpy array, None was given")
        bind = self._native.bind_input if self._session._strict else self._native.copy_input
        self._call(bind, name, arr_on_cpu)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any,
                   shape: Iterable[int], buffer_ptr: int) -> None:
        """Reads the memory at an address, which must stay valid."""
        check_device(device_type, device_id)
        self._known(name, self._session.get_inputs())
        self._call(self._native.bind_raw_input, name, operator.index(buffer_ptr), _arrays.number_of(element_type),
                   list(shape))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Reads the memory of the OrtValue at each run."""
        self._known(name, self._session.get_inputs())
        self._call(self._native.bind_input, name, self._own("bind_ortvalue_input", ortvalue))

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Iterable[int] | None = None, buffer_ptr: int | None = None, *,
                    layout: str = "native", mem_flags: Any = "cacheable") -> None:
        """Fresh memory at each run, or the memory at an address. Without an RKNN provider that must have the
        output's type and shape, else run_with_iobinding raises InvalidArgument and leaves it as it is. With
        one device_type may be "rknpu2": memory of the device, made once, as OrtValue makes it."""
        self._known(name, self._session.get_outputs())
        check_layout(layout, mem_flags)
        if device_type in DEVICES and buffer_ptr is None and not self._session._strict:
            self._bind_on_device(name, (device_type, device_id), element_type, shape, layout)
            return
        check_device(device_type, device_id)
        if buffer_ptr is None:
            self._bind_fresh(name)
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is "
                             "provided")
        number, shape, address = _arrays.number_of(element_type), list(shape), operator.index(buffer_ptr)
        if self._session._strict:
            memory = _arrays.memory_at(address, number, shape)
            self._bind_checked(CheckedOutput(self._output(name), memory, number))
        else:
            with self._lock:
                self._call(self._native.bind_raw_output, name, address, number, shape)
                self._targets.pop(name, None)
                self._changed()

    def _bind_fresh(self, name: str) -> None:
        with self._lock:
            self._call(self._native.bind_output, name)
            self._checked.pop(name, None)
            self._targets.pop(name, None)
            self._changed()

    def _bind_on_device(self, name: str, device: tuple[str, int], element_type: Any, shape: Any,
                        layout: str) -> None:
        sizes = self._output(name).shape if shape is None else list(shape)
        if any(not isinstance(size, int) for size in sizes):  # Known after the run: memory is made then.
            self._bind_fresh(name)
            return
        slot = Slot(self._session, name, "output", device)
        self.bind_ortvalue_output(name, self._session._value_class.ortvalue_from_shape_and_type(
            sizes, slot.number if element_type is None else element_type, *device, name=name,
            session=self._session, io_kind="output", layout=layout))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """The memory of the OrtValue; see bind_output."""
        self._known(name, self._session.get_outputs())
        ortvalue = self._own("bind_ortvalue_output", ortvalue)
        array, number = _arrays.coerce(ortvalue, name, ortvalue._type)
        if self._session._strict:
            self._bind_checked(CheckedOutput(self._output(name), array, ortvalue._type))
        else:
            with self._lock:
                self._call(self._native.bind_output_array, name, array, number)
                self._targets[name] = ortvalue
                self._changed()

    def _output(self, name: str) -> NodeArg:
        return next(node for node in self._session.get_outputs() if node.name == name)

    def _bind_checked(self, output: CheckedOutput) -> None:
        """Memory of open dimensions, or that does not fit, is filled or refused after the run."""
        with self._lock:
            if output.open or output.misfit:
                self._call(self._native.bind_output, output.name)
            else:
                self._call(self._native.bind_output_array, output.name, output.array, output.number)
            self._checked[output.name] = output
            self._changed()

    def synchronize_inputs(self) -> None:
        """Memory of the host needs none."""

    def synchronize_outputs(self) -> None:
        """Memory of the host needs none."""

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """Copies of what the last run gave, in order of binding."""
        return [array.copy() for array in self._outputs()]

    def get_outputs(self) -> list[OrtValue]:
        """What the last run gave, in order of binding; shared memory."""
        with self._lock:
            arrays, names = self._outputs(), list(self._native.output_names)
            targets = [self._targets.get(name) for name in names] + [None] * (len(arrays) - len(names))
        made = self._session._value_class
        kinds = {node.name: _arrays.number_beyond_numpy(node.type) for node in self._session.get_outputs()}
        names += [""] * (len(arrays) - len(names))
        outputs = []
        for array, value, name in zip(arrays, targets, names):
            # Memory may be larger than an output with open dimensions, which is a part of it then.
            whole = value is not None and math.prod(value.shape()) == array.size
            outputs.append(value if whole else made(array, kinds.get(name, 0)))
        return outputs

    def _outputs(self) -> list[np.ndarray]:
        with self._lock:
            given = self._call(self._native.outputs)
            names = self._native.output_names
            return [self._checked[name].array if name in self._checked and self._checked[name].open else array
                    for name, array in zip(names, given)] + given[len(names):]

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """See get_outputs()."""
        return OrtValueVector(self.get_outputs())

    def clear_binding_inputs(self) -> None:
        """Unbinds all inputs."""
        self._call(self._native.clear_inputs)

    def clear_binding_outputs(self) -> None:
        """Unbinds all outputs."""
        with self._lock:
            self._call(self._native.clear_outputs)
            self._checked.clear()
            self._targets.clear()
            self._changed()

    def _run(self, terms: Any) -> None:
        if not self._has_outputs:
            raise InvalidArgument("Error in execution: At least one output should be requested.")
        with self._lock:
            for output in self._refused:
                output.check()
            try:
                self._native.run(terms)
            except StatusError as error:
                raise self._session._translated(error) from None
            if not self._late:
                return
            given = dict(zip(self._native.output_names, self._call(self._native.outputs)))
            for output in self._late:
                output.check(given[output.name].shape)
            for output in self._late:
                output.array[...] = given[output.name].view(output.array.dtype)
