/// What is known of all values of a graph before it runs.
#pragma once

#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {

/// The facts of the values of a graph whose nodes are in order.
FactsTable facts_of(const ::onnx::GraphProto& graph, std::int64_t opset, ByteSpan constants);

/// The same, and of what If and Loop make what their bodies declare. Lowerings do without it.
FactsTable facts_with_bodies_of(const ::onnx::GraphProto& graph, std::int64_t opset,
                                ByteSpan constants);

/// Writes what is known into a value's declaration: the type, which must be known, and the shape,
/// where the rank is.
void declare(::onnx::ValueInfoProto& value, const ValueFacts& known);

/// Gives outputs without a type, as tools leave them that make outputs of inner values, the one
/// that is inferred; those of which none is stay as they are.
void declare_untyped_outputs(::onnx::GraphProto& graph, std::int64_t opset, ByteSpan constants);

}  // namespace corelane::onnx
