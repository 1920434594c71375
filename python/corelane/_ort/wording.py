"""How a session speaks of what is wrong with a call: as onnxruntime does, or as RKNN's driver does."""

from __future__ import annotations

from typing import Any, Mapping

from .. import _arrays
from .._errors import InvalidArgument, StatusError, driver_text, numbered, translated
from .values import NodeArg, OrtValue


class Wording:
    """strict: in onnxruntime's words."""

    def __init__(self, strict: bool, inputs: list[NodeArg], outputs: list[NodeArg]):
        self.strict, self.inputs, self.outputs = strict, inputs, outputs

    def check_missing(self, input_feed: Any) -> None:
        """What onnxruntime finds wrong before anything else."""
        if isinstance(input_feed, Mapping):
            missing = [node.name for node in self.inputs if node.name not in input_feed]
            if missing:
                raise self._missing(missing, input_feed)

    def check_names(self, output_names: Any, input_feed: Any) -> None:
        """What onnxruntime finds wrong before it starts."""
        self.check_missing(input_feed)
        if isinstance(input_feed, Mapping):
            names = {node.name for node in self.inputs}
            for name in input_feed:
                if name not in names:
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
            return InvalidArgument(f"Missing input: {missing[0]}; required {[n.name for n in self.inputs]}, "
                                   f"given {list(feed)}")
        return ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")

    def _worded(self, kind: type, text: str) -> Exception:
        return numbered(kind, text) if self.strict else kind(text)

    def explained(self, error: StatusError, output_names: Any, feed: Any) -> Exception:
        """A failure of a call in the words of onnxruntime, where it has some."""
        if error.code not in (101, 102, 106, 107):
            return translated(error, self.strict)
        try:
            self.check_names(output_names, feed)
        except (ValueError, RuntimeError) as found:
            return found
        if self.strict and isinstance(feed, Mapping) and error.code in (106, 107):
            for node in self.inputs:
                text = mismatch(node, feed[node.name])
                if text:
                    return numbered(InvalidArgument, text)
        return translated(error, self.strict)


def said(problem: StatusError, strict: bool) -> str:
    """A failure as callbacks are told of it."""
    if strict:
        return str(translated(problem, strict)).split(" : ", 3)[-1]  # Without the number and name.
    return driver_text(problem, "rknn_run")


def single(options: tuple[Any, bool]) -> Any:
    """The terms of a call that takes one sample."""
    terms, batch = options
    if batch:
        raise InvalidArgument("ztu_modelrt_dispatch_batch: run, run_async, submit and run_awaitable split "
                              "a batch; this call takes one sample")
    return terms


def mismatch(node: NodeArg, value: Any) -> str | None:
    """What onnxruntime says of an input that does not fit; None when it fits."""
    if not hasattr(value, "dtype"):
        value = (value.numpy() if isinstance(value, OrtValue)
                 else _arrays.from_list(value, node.name, node.type))
    try:
        actual = _arrays.type_name(_arrays.number_of(value.dtype))
    except RuntimeError:
        actual = "tensor(string)" if value.dtype.kind in "OUST" else str(value.dtype)
    if actual != node.type:
        return f"Unexpected input data type. Actual: ({actual}) , expected: ({node.type})"
    shape = value.shape
    if len(shape) != len(node.shape):
        return (f"Invalid rank for input: {node.name} Got: {len(shape)} Expected: {len(node.shape)} "
                "Please fix either the inputs/outputs or the model.")
    wrong = [f" index: {i} Got: {got} Expected: {want}"
             for i, (got, want) in enumerate(zip(shape, node.shape))
             if isinstance(want, int) and got != want]
    if wrong:
        return (f"Got invalid dimensions for input: {node.name} for the following indices\n"
                + "\n".join(wrong) + "\n Please fix either the inputs/outputs or the model.")
    return None
