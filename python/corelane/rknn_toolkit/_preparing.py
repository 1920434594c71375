"""A float model as ONNX Runtime's quantizer can take it: it finds nodes by name, makes new names of old ones
without a look at those that are taken, and reads biases of one dimension alone."""

from __future__ import annotations

from typing import Any

from ._network import UNNAMED

_SUFFIXES = ("_scale", "_zero_point", "_quantized", "_QuantizeLinear_Input", "_QuantizeLinear_Output",
             "_DequantizeLinear_Output")
_NODE_SUFFIXES = ("_QuantizeLinear", "_DequantizeLinear")
# Of operators whose third input is a bias that becomes int32.
_BIASED = ("Conv", "ConvTranspose", "Gemm", "BatchNormalization", "InstanceNormalization", "LayerNormalization")


def prepare(graph: Any) -> None:
    """Changes the graph, not what it computes."""
    _constants_as_initializers(graph)
    _name_nodes(graph)
    _free_names(graph)
    _own_biases(graph)


def _constants_as_initializers(graph: Any) -> None:
    kept = []
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensor = graph.initializer.add()
            tensor.CopyFrom(node.attribute[0].t)
            tensor.name = node.output[0]
        else:
            kept.append(node)
    if len(kept) < len(graph.node):
        del graph.node[:]
        graph.node.extend(kept)


def _name_nodes(graph: Any) -> None:
    taken: set[str] = set()
    for number, node in enumerate(graph.node):
        if not node.name or node.name in taken or node.name.endswith(_NODE_SUFFIXES):
            node.name = f"{UNNAMED}{number}"
        taken.add(node.name)


def _free_names(graph: Any) -> None:
    """Inner values and constants that are named as the quantizer would name what it adds for another one."""
    values = {value for node in graph.node for value in node.output} | {t.name for t in graph.initializer}
    ends = {value.name for value in (*graph.input, *graph.output)}
    renamed = {}
    for value in values - ends:
        for suffix in _SUFFIXES:
            if value.endswith(suffix) and value[:-len(suffix)] in values | ends:
                renamed[value] = f"{value}_of_model"
    if not renamed:
        return
    _rename(graph.node, renamed)
    for named in (*graph.initializer, *graph.value_info):
        named.name = renamed.get(named.name, named.name)


def _rename(nodes: Any, names: dict[str, str]) -> None:
    for node in nodes:
        for values in (node.input, node.output):
            for i, value in enumerate(values):
                values[i] = names.get(value, value)
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                _rename(body.node, names)
                for output in body.output:
                    output.name = names.get(output.name, output.name)


def _own_biases(graph: Any) -> None:
    """A bias for each node, of one dimension: a Gemm's [1, N] adds as [N] does."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    readers: dict[str, int] = {}
    for node in graph.node:
        for value in node.input:
            readers[value] = readers.get(value, 0) + 1
    for node in graph.node:
        bias = constants.get(node.input[2]) if node.op_type in _BIASED and len(node.input) > 2 else None
        flat = bias is None or node.op_type != "Gemm" or len(bias.dims) != 2 or bias.dims[0] != 1
        if bias is None or (flat and readers[bias.name] <= 1):
            continue
        own = graph.initializer.add()
        own.CopyFrom(bias)
        own.name = f"{bias.name}_of_{node.name}"
        if not flat:
            del own.dims[0]
        node.input[2] = own.name
        readers[bias.name] -= 1
        if readers[bias.name] == 0:
            graph.initializer.remove(bias)
