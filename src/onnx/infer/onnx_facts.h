/// What is known of the values of a graph before it runs: element type, shape, small integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/tensor/shape.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// An element of ValueFacts::ints whose value is not known.
inline constexpr std::int64_t kUnknownInt = std::numeric_limits<std::int64_t>::min();

/// Everything optional: an empty one says nothing.
struct ValueFacts {
  std::int32_t elem = 0;       ///< ONNX element type; 0 unknown.
  std::optional<Shape> shape;  ///< Open dimensions -1; nullopt: not even the rank is known.
  /// Elements of a small integer tensor in row-major order, kUnknownInt for those not known.
  std::optional<std::vector<std::int64_t>> ints;
  /// All elements of a small float constant (rank 0 or 1).
  std::optional<std::vector<double>> floats;

  bool is_static() const { return shape && shape->is_static(); }
  /// All elements known.
  bool known_ints() const;
  /// The element of a list of one, where it is known.
  std::optional<std::int64_t> one_int() const;
  std::int64_t rank() const { return shape ? static_cast<std::int64_t>(shape->rank()) : -1; }
};

/// Facts by value name; looks into the graph around it when it does not know a name.
class FactsTable {
 public:
  explicit FactsTable(const FactsTable* outer = nullptr) : outer_(outer) {}
  /// Makes room for so many names.
  void reserve(std::size_t names) { facts_.reserve(names); }
  /// An empty one for "" and unknown names.
  const ValueFacts& of(const std::string& name) const;
  void set(const std::string& name, ValueFacts facts) { facts_[name] = std::move(facts); }
  /// Fills what is missing: type and shape from a value_info.
  void learn(const ::onnx::ValueInfoProto& value);
  /// From an initialiser or the value of a Constant; values of the smallest only.
  void learn(const std::string& name, const ::onnx::TensorProto& tensor, ByteSpan constants);

 private:
  const FactsTable* outer_;
  std::unordered_map<std::string, ValueFacts> facts_;
};

/// Adds what follows for the outputs of `node`. Never wrong: a case that is not understood, or a
/// node whose inputs do not fit, adds nothing.
void infer_node(const ::onnx::NodeProto& node, std::int64_t opset, ByteSpan constants,
                FactsTable& facts);

}  // namespace corelane::onnx
