/// Quantization at the boundary of a graph: a QuantizeLinear right after an input, a
/// DequantizeLinear right before an output.
#pragma once

#include "corelane/base/bytes.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_graph.h"

namespace corelane::onnx {

/// Sets quant_dtype and quant when every reader of the input is a QuantizeLinear with the same
/// constant parameters and an i8, u8, i16 or u16 result.
void find_input_quant(const GraphIndex& index, ByteSpan constants, IoEntry& entry);
/// The same for an output that a DequantizeLinear with constant parameters makes.
void find_output_quant(const GraphIndex& index, ByteSpan constants, IoEntry& entry);

}  // namespace corelane::onnx
