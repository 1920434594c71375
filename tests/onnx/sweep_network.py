"""Networks of many patterns side by side, and the operators that follow others in them."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPERATORS = ("Add", "Sub", "Mul", "Div", "PRelu", "Max", "Min", "Sum", "from", "over")
OPEN = (False, True)


class Network:
    """Patterns side by side, each with inputs of its own: equal nodes would be merged."""

    def __init__(self, opset, is_open, seed):
        self.opset, self.is_open = opset, is_open
        self.random = np.random.default_rng(seed)
        self.inputs, self.constants, self.nodes, self.outputs = {}, [], [], []
        self.types = {}  # Of outputs that are not float.

    def input(self, shape, low=0.5, high=1.5):
        return self.take(self.random.uniform(low, high, shape).astype(np.float32))

    def take(self, array):
        """An input of this value."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = np.asarray(array)
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def floats(self, shape):
        return self.constant(self.random.uniform(0.5, 2.5, shape).astype(np.float32))

    def add(self, op, *inputs, outputs=1, domain="", **attributes):
        """The name of the one output, or the names of all."""
        names = [f"v{len(self.nodes)}{'_' + str(i) if i else ''}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def give(self, name, dtype=np.float32):
        """Makes a value an output."""
        self.outputs.append(name)
        self.types[name] = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def reduce(self, op, x, axes, keep):
        if self.opset >= (13 if op == "ReduceSum" else 18):
            return self.add(op, x, self.constant(np.array(axes, np.int64)), keepdims=keep)
        return self.add(op, x, axes=list(axes), keepdims=keep)

    def reshape(self, op, x, axes):
        if self.opset >= 13:
            return self.add(op, x, self.constant(np.array(axes, np.int64)))
        return self.add(op, x, axes=list(axes))

    def parts(self, most):
        """Networks of `most` outputs each, with what these need."""
        return [self.part(self.outputs[i:i + most]) for i in range(0, len(self.outputs), most)]

    def part(self, outputs):
        needed, nodes = set(outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                nodes.insert(0, node)
                needed.update(read_by(node))
        part = Network(self.opset, self.is_open, 0)
        part.inputs = {name: value for name, value in self.inputs.items() if name in needed}
        part.constants = [c for c in self.constants if c.name in needed]
        part.nodes, part.outputs, part.types = nodes, outputs, self.types
        return part

    def model(self):
        declared = []
        for name, value in self.inputs.items():
            shape = [f"{name}_{i}" for i in range(value.ndim)] if self.is_open else value.shape
            elem = helper.np_dtype_to_tensor_dtype(value.dtype)
            declared.append(helper.make_tensor_value_info(name, elem, shape))
        graph = helper.make_graph(
            self.nodes, "sweep", declared,
            [helper.make_tensor_value_info(o, self.types.get(o, TensorProto.FLOAT), None)
             for o in self.outputs],
            self.constants)
        sets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=8)


def read_by(node):
    """Names of what a node reads, by itself or in its graphs."""
    graphs = [a.g for a in node.attribute if a.HasField("g")]
    inner = [n for graph in graphs for n in graph.node]
    return {*node.input, *(name for n in inner for name in read_by(n)),
            *(o.name for graph in graphs for o in graph.output)}


def reduced(shape, axes, keep):
    return [1 if i in axes else s for i, s in enumerate(shape) if keep or i not in axes]


def forms_of(shape):
    """Shapes that broadcast to `shape`: one value, all, along each dimension, and without the ones
    before it."""
    forms = {(1,) * len(shape), tuple(shape)}
    for i, size in enumerate(shape):
        along = tuple(size if i == k else 1 for k in range(len(shape)))
        forms.update((along, along[i:]))
    return sorted(forms)


def follow(n, op, r, form):
    c = n.floats(form)
    if op == "from":
        return n.add("Sub", c, r)
    if op == "over":
        return n.add("Div", c, r)
    return n.add(op, r, c)
