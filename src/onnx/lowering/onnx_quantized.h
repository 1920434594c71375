/// Quantized values inside of a graph, in the form that the engine gets right.
///
/// OpenVINO 2026.4.1 computes convolutions after a Concat of signed 8-bit values wrongly, by a
/// fifth of the largest value, and ends the process where such a Concat is quantized on both sides.
/// Both are written in another way, with results that are equal bit for bit:
///  - signed 8-bit pairs of QuantizeLinear and DequantizeLinear as unsigned ones, zero points 128
///    higher;
///  - a pair after a Concat (and Relu between) as one pair before it for each part.
/// Graph inputs and outputs keep their types; the quantization at the boundary is that of the
/// network given. Values inside do not: after a Concat the integers between a moved pair are gone,
/// and so are the Concat's and the Relus' own where nothing else reads them; asked for by name
/// (exposed_values), they are not found. What the DequantizeLinear gives keeps its name.
#pragma once

#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Rewrites the top graph; what was done becomes findings. Pairs whose parameters are not constant,
/// or whose integers are read by anything but a DequantizeLinear with the same parameters, are left
/// alone.
void rewrite_quantized(::onnx::GraphProto& graph, ByteSpan constants,
                       std::vector<ImportFinding>& findings);

}  // namespace corelane::onnx
