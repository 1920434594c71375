"""The words for what is wrong with a call: onnxruntime's, or those of RKNN's driver."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from .. import _arrays
from .._errors import RUN, InvalidArgument, StatusError, driver_text, numbered, strict_text, translated
from .._native import Code
from .._printable import printable
from .values import NodeArg, OrtValue

# Failures of what the caller gave, which onnxruntime finds in an order and in words of its own.
_OF_INPUTS = (Code.SHAPE_MISMATCH, Code.TYPE_MISMATCH)
_OF_ARGUMENTS = (Code.INVALID_ARGUMENT, Code.NOT_FOUND, *_OF_INPUTS)


class Wording:
    """strict: in onnxruntime's words."""

    def __init__(self, strict: bool, inputs: list[NodeArg], outputs: list[NodeArg],
                 overridable: Sequence[NodeArg] = ()):
        self.strict, self.inputs, self.outputs = strict, inputs, outputs
        self.overridable = list(overridable)

    def check_missing(self, input_feed: Any) -> None:
        """Raises for a missing input, which onnxruntime looks for first."""
        if isinstance(input_feed, Mapping):
            missing = [node.name for node in self.inputs if node.name not in input_feed]
            if missing:
                raise self._missing(missing, input_feed)

    def check_names(self, output_names: Any, input_feed: Any) -> None:
        """Raises for names that onnxruntime refuses before it starts."""
        self.check_missing(input_feed)
        if isinstance(input_feed, Mapping):
            names = {node.name for node in self.inputs + self.overridable}
            for name, value in input_feed.items():
                if name not in names and value is not None:
                    raise self._worded(InvalidArgument, f"Invalid input name: {name}")
        if output_names and not isinstance(output_names, str):
            known = {node.name for node in self.outputs}
            for name in output_names:
                if name not in known:
                    raise self._worded(InvalidArgument, f"Invalid output name:{name}" if self.strict else
                                       f"Unknown output name: {name}; the model has "
                                       + ", ".join(sorted(known)))

    def _missing(self, missing: list, feed: Mapping) -> Exception:
        if not self.strict:
            return InvalidArgument(printable(f"Missing input: {missing[0]}; required "
                                             f"{[n.name for n in self.inputs]}, given {list(feed)}"))
        return ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")

    def _worded(self, kind: type, text: str) -> Exception:
        return numbered(kind, text) if self.strict else kind(printable(text))

    def explained(self, error: StatusError, output_names: Any, feed: Any) -> Exception:
        """The exception for a failure of a call, in onnxruntime's words where it has some."""
        if error.code not in _OF_ARGUMENTS:
            return translated(error, self.strict)
        try:
            self.check_names(output_names, feed)
        except (ValueError, RuntimeError) as found:
            return found
        if self.strict and isinstance(feed, Mapping) and error.code in _OF_INPUTS:
            for node in self.inputs + self.overridable:
                value = feed.get(node.name)
                text = None if value is None else mismatch(node, value)
                if text:
                    return numbered(InvalidArgument, text, lines=True)
        return translated(error, self.strict)


def listed(output_names: Any) -> Any:
    """Names that can be read more than once: an iterator or an array as a list."""
    if output_names is None or isinstance(output_names, (list, tuple, str)):
        return output_names
    return list(output_names)


def callback_text(problem: StatusError, strict: bool) -> str:
    """The text with which callbacks report a failure."""
    return strict_text(problem) if strict else driver_text(problem, RUN)


def single(options: tuple[Any, bool]) -> Any:
    """The terms of a call that takes one sample."""
    terms, batch = options
    if batch:
        raise InvalidArgument("ztu_modelrt_dispatch_batch: run, run_async, submit and run_awaitable split "
                              "a batch; this call takes one sample")
    return terms


def mismatch(node: NodeArg, value: Any) -> str | None:
    """onnxruntime's message for an input that does not fit; None when it fits, or where only its parts say."""
    if not node.ranked or not node.type.startswith("tensor("):
        return None
    if isinstance(value, OrtValue):
        return misfit("input", node.name, (value.data_type(), tuple(value.shape())), (node.type, node.shape))
    if not hasattr(value, "dtype"):
        value = _arrays.from_list(value, node.name, node.type)
    try:
        actual = _arrays.type_name(_arrays.number_of(value.dtype))
    except RuntimeError:
        actual = "tensor(string)" if value.dtype.kind in "OUST" else str(value.dtype)
    return misfit("input", node.name, (actual, value.shape), (node.type, node.shape))


def misfit(what: str, name: str, given: tuple[str, Sequence], wanted: tuple[str, Sequence]) -> str | None:
    """onnxruntime's message where a (type, shape) does not fit that of an "input" or "output"; None where it
    fits."""
    (actual, shape), (type_text, sizes) = given, wanted
    name = printable(name)
    if actual != type_text:
        return f"Unexpected {what} data type. Actual: ({actual}) , expected: ({type_text})"
    if len(shape) != len(sizes):
        return (f"Invalid rank for {what}: {name} Got: {len(shape)} Expected: {len(sizes)} "
                "Please fix either the inputs/outputs or the model.")
    wrong = [f" index: {i} Got: {got} Expected: {want}"
             for i, (got, want) in enumerate(zip(shape, sizes)) if isinstance(want, int) and got != want]
    if wrong:
        return (f"Got invalid dimensions for {what}: {name} for the following indices\n"
                + "\n".join(wrong) + "\n Please fix either the inputs/outputs or the model.")
    return None
