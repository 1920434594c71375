"""ONNX Runtime's quantizer, made to quantize every activation. By itself it leaves those between operators
that its own kernels compute as floats; a board has them as int8. It is imported when it is needed, since it
needs the extra."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import QuantType
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

from ._network import Network

# Of these the constants are quantized too. Those of others stay as they are: they cost nothing as floats, and
# some, such as exponents, must not be off by a rounding.
_WITH_CONSTANTS = {*QLinearOpsRegistry, *QDQRegistry}
_PARAMETERS = ("Clip", "Pad", "Resize")  # All inputs but the first say how they work.


class WholeQuantizer(QDQQuantizer):
    """kept: activations that stay float. model is changed; its nodes have names, each its own."""

    def __init__(self, model: Any, network: Network, ranges: Any, kept: set[str], per_channel: bool):
        self._wanted = [value for value in network.activations() if value not in kept]
        self._cut_outputs = [value for value in network.outputs
                             if any(node.op_type in ("Clip", "Relu") for node in network.readers.get(value, []))]
        self._taken = {*self._wanted, *_constants_to_quantize(model, set(self._wanted))}
        # What an operator of the registry asks for fits together: it is left out as a whole.
        excluded = [node.name for node in network.nodes if node.op_type in QDQRegistry
                    and not kept.isdisjoint((*node.input, *node.output))]
        # It sets their range, and fails where there is none, as of float64.
        excluded += [node.name for node in network.nodes
                     if node.op_type == "Softmax" and node.output[0] not in ranges]
        types = sorted({node.op_type for node in network.nodes} - {"Shape", "Size"})
        super().__init__(model, per_channel, False, QuantType.QInt8, QuantType.QInt8, ranges, [], excluded,
                         types, {"ForceQuantizeNoInputCheck": True})

    def adjust_tensor_ranges(self) -> None:
        """The base class gives what a Clip or Relu reads the range that is left of it: an output of the graph
        has its own."""
        own = {value: self.tensors_range[value] for value in self._cut_outputs if value in self.tensors_range}
        super().adjust_tensor_ranges()
        for value, data in own.items():
            self.tensors_range[value] = data

    def quantize_activation_tensor(self, tensor_name: str) -> None:
        if tensor_name in self._taken:
            super().quantize_activation_tensor(tensor_name)

    def quantize_output_same_as_input(self, output_name: str, input_name: str, node_name: str) -> None:
        if output_name in self._taken and self.is_tensor_quantized(input_name):
            super().quantize_output_same_as_input(output_name, input_name, node_name)
        else:  # It would wait forever for the scale of an input that has none.
            self.quantize_activation_tensor(output_name)

    def _calc_initializer_quant_params(self) -> dict:
        """The base class calls it when all operators have been asked: here the rest of the activations is
        added."""
        present = {*self.model.output_name_to_node(), *(i.name for i in self.model.graph().input)}
        for value in self._wanted:
            if value in present and not self.is_tensor_quantized(value):
                self.quantize_activation_tensor(value)
        return super()._calc_initializer_quant_params()


def _constants_to_quantize(model: Any, wanted: set[str]) -> set[str]:
    """Names of constants that operators of _WITH_CONSTANTS make int8 values of. Other readers of them get
    copies."""
    def takes_int8(node: Any, position: int) -> bool:
        return node.op_type in _WITH_CONSTANTS and not wanted.isdisjoint(node.output) and not (
            position > 0 and node.op_type in _PARAMETERS)

    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    found = {name for node in model.graph.node for i, name in enumerate(node.input)
             if name in constants and takes_int8(node, i) and _is_finite(constants[name])}
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            if name not in found or takes_int8(node, i):
                continue
            copy = model.graph.initializer.add()
            copy.CopyFrom(constants[name])
            copy.name = f"{name}_of_{node.name}_{i}"
            node.input[i] = copy.name
    return found


def _is_finite(tensor: Any) -> bool:
    kinds = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
    return tensor.data_type in kinds and bool(np.isfinite(onnx.numpy_helper.to_array(tensor)).all())
