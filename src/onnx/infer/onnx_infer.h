/// The parts of shape inference: each handles some operators. Private to onnx_infer*.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "onnx/graph/onnx_graph.h"
#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {

/// More dimensions than any operator of a real model makes.
inline constexpr std::size_t kMostDims = 64;
/// Integers and floats kept of a value that a node makes. Enough for shapes, axes and scales; a
/// file cannot multiply a larger list by handing it on from node to node.
inline constexpr std::size_t kMostKept = 64;

/// `facts`, or nothing where the file declares a shape that no tensor can have.
const ValueFacts& sound(const ValueFacts& facts);

/// One node while its outputs are inferred.
struct InferContext {
  const ::onnx::NodeProto& node;
  std::int64_t opset;
  ByteSpan constants;
  FactsTable& facts;

  const ValueFacts& in(int i) const { return sound(facts.of(input_of(node, i))); }
  void set(int output, std::int32_t elem, std::optional<Shape> shape) const;
  /// The only way into the table: drops what does not fit together, or is too much to keep, so that
  /// `ints` and `floats` that a rule finds have as many elements as the shape says.
  void set(int output, ValueFacts known) const;
  /// Known integers of input i, or of the attribute where older operator sets have it.
  std::optional<std::vector<std::int64_t>> ints_of(int i, std::string_view attribute) const;
};

/// `axis` in 0..rank-1; nullopt when it is outside, as kUnknownInt is.
std::optional<std::size_t> normal_axis(std::int64_t axis, std::size_t rank);
/// Numpy broadcasting; an open dimension stays open unless the other decides it.
std::optional<Shape> broadcast(const std::optional<Shape>& a, const std::optional<Shape>& b);

/// By operator. Of those that compute or change shapes, and of those that compute with elements.
using InferTable = std::unordered_map<std::string_view, void (*)(const InferContext&)>;
const InferTable& shape_inference();
const InferTable& layer_inference();

}  // namespace corelane::onnx
