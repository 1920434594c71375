/// What is known of all values of a graph before it runs.
#pragma once

#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {

/// Of a graph whose nodes are in order.
FactsTable facts_of(const ::onnx::GraphProto& graph, std::int64_t opset, ByteSpan constants);

}  // namespace corelane::onnx
