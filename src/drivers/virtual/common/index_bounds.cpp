#include "drivers/virtual/common/index_bounds.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "drivers/virtual/common/integer_value.h"
#include "drivers/virtual/common/onnx_node.h"
#include "drivers/virtual/common/onnx_parts.h"

namespace corelane::drivers::virtual_npu {
namespace {

using enum onnx_fields::Number;

/// Operators whose values are those of their first input.
constexpr std::string_view kMovers[] = {"Cast",    "Flatten",   "Identity", "Reshape",
                                        "Squeeze", "Transpose", "Unsqueeze"};
/// Operators whose result has the shape of their first input: what stands between a table and a
/// Gather.
constexpr std::string_view kShapeKeepers[] = {"Cast", "DequantizeLinear", "Identity"};

/// The integer of the one attribute that a Gather and a Cast have; `otherwise` without one.
Result<std::int64_t> integer_of(const NodeLinks& node, std::int64_t otherwise) {
  if (node.attributes.empty()) return otherwise;
  for (WireReader fields(node.attributes.back()); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_varint(kAttributeInt)) return field.integer();
  }
  return otherwise;
}

/// Follows values through the top graph, whose nodes are in order.
class Walk {
 public:
  explicit Walk(const std::vector<GraphValue>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      origin_[inputs[i].name] = i;
      if (inputs[i].has_shape) dims_[inputs[i].name] = inputs[i].shape.dims();
    }
  }

  Status constant(ByteSpan tensor) {
    CORELANE_ASSIGN(TensorFacts facts, read_tensor(tensor));
    dims_[facts.name] = std::move(facts.dims);
    return {};
  }

  Status node(ByteSpan message) {
    CORELANE_ASSIGN(const NodeLinks step, read_links(message));
    if (!step.domain.empty() || step.inputs.empty()) return {};
    if (step.op == "Gather" && step.inputs.size() == 2) CORELANE_TRY(gather(step));
    if (std::ranges::find(kMovers, step.op) != std::end(kMovers)) CORELANE_TRY(move(step));
    if (std::ranges::find(kShapeKeepers, step.op) != std::end(kShapeKeepers))
      copy(dims_, step.inputs[0], step.output);
    return {};
  }

  std::vector<IndexBound> take() { return std::move(bounds_); }

 private:
  template <class Map>
  static void copy(Map& map, std::string_view from, std::string_view to) {
    if (const auto known = map.find(from); known != map.end()) map[to] = known->second;
  }

  Status move(const NodeLinks& step) {
    if (step.op == "Cast") {
      CORELANE_ASSIGN(const std::int64_t to, integer_of(step, 0));
      if (to != kInt32 && to != kInt64) return {};
    }
    copy(origin_, step.inputs[0], step.output);
    return {};
  }

  Status gather(const NodeLinks& step) {
    const auto data = dims_.find(step.inputs[0]);
    const auto indices = origin_.find(step.inputs[1]);
    if (data == dims_.end() || indices == origin_.end()) return {};
    CORELANE_ASSIGN(const std::int64_t given, integer_of(step, 0));
    const auto rank = static_cast<std::int64_t>(data->second.size());
    const std::int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank) return {};
    const std::int64_t size = data->second[static_cast<std::size_t>(axis)];
    const std::string_view name = step.name.empty() ? step.output : step.name;
    if (size >= 0) bounds_.push_back({indices->second, size, std::string(name)});
    return {};
  }

  std::map<std::string_view, std::size_t> origin_;  ///< Value -> the input that it comes from.
  std::map<std::string_view, std::vector<std::int64_t>> dims_;
  std::vector<IndexBound> bounds_;
};

/// An index and where it stands.
struct Outside {
  std::int64_t value = 0;
  std::size_t place = 0;
};

template <class T>
std::optional<Outside> first_outside(const void* data, std::size_t elements, std::int64_t size) {
  for (std::size_t i = 0; i < elements; ++i) {
    const auto value = value_at<T>(data, i);
    if (value < -size || value >= size) return Outside{value, i};
  }
  return std::nullopt;
}

/// The first element out of bounds, of any type that a Cast makes an integer of.
std::optional<Outside> first_outside(DType dtype, const void* data, std::size_t elements,
                                     std::int64_t size) {
  for (std::size_t i = 0; i < elements; ++i) {
    const auto value = integer_at(dtype, data, i);
    if (!value) return std::nullopt;
    if (*value < -size || *value >= size) return Outside{*value, i};
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<IndexBound>> index_bounds(ByteSpan model,
                                             const std::vector<GraphValue>& inputs) {
  Walk walk(inputs);
  for (WireReader fields(model); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (!field.is_bytes(kModelGraph)) continue;
    // Constants may come after the nodes that read them.
    for (const auto part : {kGraphInitializer, kGraphNode}) {
      for (WireReader graph(field.payload); !graph.at_end();) {
        CORELANE_ASSIGN(const WireField piece, graph.next());
        if (!piece.is_bytes(part)) continue;
        CORELANE_TRY(part == kGraphNode ? walk.node(piece.payload) : walk.constant(piece.payload));
      }
    }
  }
  return walk.take();
}

Status check_indices(const IndexBound& bound, const std::string& input, DType dtype,
                     const void* data, std::size_t elements) {
  const std::optional<Outside> found =
      dtype == DType::kI64   ? first_outside<std::int64_t>(data, elements, bound.size)
      : dtype == DType::kI32 ? first_outside<std::int32_t>(data, elements, bound.size)
                             : first_outside(dtype, data, elements, bound.size);
  if (!found) return {};
  return error(Code::kEngineFailed,
               "node '{}' (Gather): input '{}' has the index {} at element {}; allowed are {} to "
               "{}",
               bound.node, input, found->value, found->place, -bound.size, bound.size - 1)
      .with(Detail::kInput, input)
      .with(Detail::kNode, bound.node)
      .with(Detail::kGiven, found->value);
}

}  // namespace corelane::drivers::virtual_npu
