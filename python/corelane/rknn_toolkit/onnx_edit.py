"""`rknn.utils.onnx_edit`: an ONNX model with inputs and outputs of other shapes, by equations such as
"a,b,c->b,a,c"."""

from __future__ import annotations

import math
import os
import re
from typing import Any, Mapping, Sequence

import numpy as np

from .._rknn.door import FAILURES
from .._rknn.log import Log, UsageError
from ._dataset import read_dataset
from ._quantizing import real_onnx

_FORM = re.compile(r"([a-z1,]+)(?:\[([^\]]*)\])?->([a-z1,]+)")


class Equation:
    """"ab,c[a=2]->a,cb": dimensions are letters or 1; those of the left, split by letters together, come in
    the order of the right. UsageError when it is not one, or does not fit the shape."""

    def __init__(self, name: str, text: str, shape: Sequence[int]):
        self._name = f"transform of {name!r}, {text!r}"
        found = _FORM.fullmatch("".join(str(text).split()))
        if found is None:
            raise UsageError(f"{self._name}: expected dimensions of letters a to z or 1 on both sides of ->, such "
                             "as 'a,b,c->b,1,ac' or 'ab,c[a=2]->a,b,c'")
        left, right = found[1].strip(",").split(","), found[3].strip(",").split(",")
        self.left, self.right = self._letters(left), self._letters(right)
        if sorted(self.left) != sorted(self.right):
            raise UsageError(f"{self._name}: each letter of one side must be on the other; {self.left} and "
                             f"{self.right}")
        if len(left) != len(shape):
            raise UsageError(f"{self._name}: {len(left)} dimensions on the left, and the model's shape is "
                             f"{list(shape)}")
        self.sizes = self._assigned(found[2])
        for word, size in zip(left, shape):
            self._solve(word, size)
        self.before = list(shape)
        self.after = [self._size(word) for word in right]

    def _letters(self, words: Sequence[str]) -> str:
        letters = "".join(words).replace("1", "")
        if not all(words) or len(set(letters)) != len(letters):
            raise UsageError(f"{self._name}: each letter stands once on a side, and no dimension is empty")
        return letters

    def _assigned(self, text: str | None) -> dict[str, int]:
        sizes = {}
        for item in (text or "").split(",") if text else []:
            found = re.fullmatch(r"([a-z])=([1-9][0-9]*)", item)
            if found is None or found[1] not in self.left:
                raise UsageError(f"{self._name}: {item!r} is not the size of a letter, such as a=2")
            sizes[found[1]] = int(found[2])
        return sizes

    def _size(self, word: str) -> int:
        return math.prod(self.sizes[letter] for letter in word.replace("1", ""))

    def _solve(self, word: str, size: int) -> None:
        letters = word.replace("1", "")
        unknown = [letter for letter in letters if letter not in self.sizes]
        known = math.prod(self.sizes[letter] for letter in letters if letter in self.sizes)
        if len(unknown) > 1:
            raise UsageError(f"{self._name}: {word!r} needs sizes for all but one of its letters, such as "
                             f"[{unknown[0]}=2]")
        if size % known or (not unknown and known != size):
            raise UsageError(f"{self._name}: {word!r} does not fit the model's {size}")
        if unknown:
            self.sizes[unknown[0]] = size // known

    def steps(self, backwards: bool) -> list[tuple[str, list[int]]]:
        """("Reshape", shape) and ("Transpose", order) that make `after` of `before`, or `before` of `after`;
        none that changes nothing."""
        start, goal = (self.after, self.before) if backwards else (self.before, self.after)
        have, want = (self.right, self.left) if backwards else (self.left, self.right)
        order = [have.index(letter) for letter in want]
        if order == sorted(order):
            return [("Reshape", goal)] if start != goal else []
        found: list[tuple[str, list[int]]] = []
        split, moved = ([self.sizes[letter] for letter in letters] for letters in (have, want))
        if split != start:
            found.append(("Reshape", split))
        found.append(("Transpose", order))
        if moved != goal:
            found.append(("Reshape", goal))
        return found

    def applied(self, array: np.ndarray) -> np.ndarray:
        """An array of the shape before, in that after."""
        for kind, numbers in self.steps(backwards=False):
            array = array.reshape(numbers) if kind == "Reshape" else array.transpose(numbers)
        return np.ascontiguousarray(array)


def onnx_edit(model: Any, export_path: Any, inputs_transform: Mapping[str, str] | None = None,
              outputs_transform: Mapping[str, str] | None = None, dataset: Any = None) -> int:
    """Writes the model with Reshape and Transpose at its ends, so that its inputs and outputs have the shapes
    on the right of the equations. With dataset, its .npy files in their new shapes and
    dataset_for_NAME.txt are written beside the model. 0, or -1 and the reason in the log of
    corelane.rknn_toolkit."""
    log = Log("corelane.rknn_toolkit", False)
    try:
        _edit(model, os.fsdecode(export_path), dict(inputs_transform or {}), dict(outputs_transform or {}),
              dataset)
    except FAILURES as problem:
        log.error("onnx_edit", problem)
        return -1
    return 0


def _edit(path: Any, target: str, inputs: dict[str, str], outputs: dict[str, str], dataset: Any) -> None:
    onnx = real_onnx("onnx_edit()")
    if not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path):
        raise UsageError(f"model {path!r}: there is no such file")
    model = onnx.load(path)
    graph = model.graph
    given = [i for i in graph.input if i.name not in {t.name for t in graph.initializer}]
    ends = {"inputs": _equations("inputs_transform", inputs, given),
            "outputs": _equations("outputs_transform", outputs, graph.output)}
    for value in given:
        if value.name in ends["inputs"]:
            _edit_input(onnx, graph, value, ends["inputs"][value.name])
    for value in graph.output:
        if value.name in ends["outputs"]:
            _edit_output(onnx, graph, value, ends["outputs"][value.name])
    onnx.save(model, target)
    if dataset is not None:
        _edit_dataset(dataset, target, [value.name for value in given], ends["inputs"])


def _equations(what: str, texts: Mapping[str, str], values: Sequence[Any]) -> dict[str, Equation]:
    known = {value.name: value for value in values}
    found = {}
    for name, text in texts.items():
        if name not in known:
            raise UsageError(f"{what}: the model has no {name!r}; it has {', '.join(map(repr, known))}")
        dims = known[name].type.tensor_type.shape.dim
        if any(not d.HasField("dim_value") for d in dims):
            raise UsageError(f"{what}: the shape of {name!r} is open; fix it first, for example with "
                             "onnxruntime.tools.make_dynamic_shape_fixed")
        found[name] = Equation(name, text, [d.dim_value for d in dims])
    return found


def _edit_input(onnx: Any, graph: Any, value: Any, equation: Equation) -> None:
    nodes, last = _chain(onnx, graph, value.name, equation.steps(backwards=True))
    if nodes:
        _rename(graph.node, value.name, last, results=False)
        for node in reversed(nodes):
            graph.node.insert(0, node)
    _set_shape(value, equation.after)


def _edit_output(onnx: Any, graph: Any, value: Any, equation: Equation) -> None:
    steps = equation.steps(backwards=False)
    if steps:
        if value.name in {i.name for i in graph.input}:
            raise UsageError(f"outputs_transform: {value.name!r} is an input too; give the output a name of its own")
        inner = f"{value.name}_before_edit"
        _rename(graph.node, value.name, inner, results=True)
        nodes, last = _chain(onnx, graph, inner, steps)
        nodes[-1].output[0] = value.name
        graph.node.extend(nodes)
    _set_shape(value, equation.after)


def _chain(onnx: Any, graph: Any, start: str, steps: Sequence[tuple[str, list[int]]]) -> tuple[list, str]:
    nodes, last = [], start
    for number, (kind, numbers) in enumerate(steps):
        name = f"{start}_edit_{number}"
        if kind == "Reshape":
            graph.initializer.append(onnx.numpy_helper.from_array(np.array(numbers, np.int64), f"{name}_shape"))
            nodes.append(onnx.helper.make_node("Reshape", [last, f"{name}_shape"], [name], name))
        else:
            nodes.append(onnx.helper.make_node("Transpose", [last], [name], name, perm=numbers))
        last = name
    return nodes, last


def _rename(nodes: Sequence[Any], old: str, new: str, results: bool) -> None:
    """In what the nodes and their bodies read and, with results, make."""
    for node in nodes:
        for values in (node.input, node.output) if results else (node.input,):
            for i, value in enumerate(values):
                if value == old:
                    values[i] = new
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                _rename(body.node, old, new, False)


def _set_shape(value: Any, shape: Sequence[int]) -> None:
    del value.type.tensor_type.shape.dim[:]
    for size in shape:
        value.type.tensor_type.shape.dim.add().dim_value = size


def _edit_dataset(dataset: Any, target: str, names: Sequence[str], equations: Mapping[str, Equation]) -> None:
    folder, stem = os.path.dirname(os.path.abspath(target)), os.path.splitext(os.path.basename(target))[0]
    lines = []
    for number, sample in enumerate(read_dataset(dataset, len(names)), 1):
        words = []
        for position, (name, file) in enumerate(zip(names, sample)):
            if name in equations:
                changed = equations[name].applied(_array(name, file, equations[name].before))
                file = os.path.join(folder, f"{stem}_{number}_{position}.npy")
                np.save(file, changed)
            words.append(os.path.abspath(file))
        lines.append(" ".join(words) + "\n")
    with open(os.path.join(folder, f"dataset_for_{stem}.txt"), "w", encoding="utf-8") as file:
        file.writelines(lines)


def _array(name: str, file: str, shape: Sequence[int]) -> np.ndarray:
    if not file.lower().endswith(".npy"):
        raise UsageError(f"dataset: {file} is for input {name!r}, which is transformed; give .npy files")
    array = np.load(file, allow_pickle=False)
    if list(array.shape) != list(shape):
        raise UsageError(f"dataset: {file} has shape {list(array.shape)}, input {name!r} {list(shape)}")
    return array
