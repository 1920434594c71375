/// Multiply-accumulates of a node, for the description.
#pragma once

#include "onnx/infer/onnx_count.h"
#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {

/// Multiplications of Conv, ConvTranspose, MatMul, Gemm and their quantised forms; 0 for other
/// operators, nullopt where a shape is not known.
Count macs_of(const ::onnx::NodeProto& node, const FactsTable& facts);

}  // namespace corelane::onnx
