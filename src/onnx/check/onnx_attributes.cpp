#include "onnx/check/onnx_attributes.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "onnx/check/onnx_check.h"

namespace corelane::onnx {
namespace {

/// Ends of a Slice or a Shape, values, and keys: numbers that are compared or handed on.
constexpr std::string_view kWide[] = {"start",
                                      "end",
                                      "starts",
                                      "ends",
                                      "value_int",
                                      "value_ints",
                                      "ignore_index",
                                      "default_int64",
                                      "keys_int64s",
                                      "values_int64s",
                                      "classlabels_int64s",
                                      "cats_int64s",
                                      "pool_int64s",
                                      "classlabels_ints"};
/// Divisors and sizes.
constexpr std::string_view kCounts[] = {"q_num_heads", "kv_num_heads", "num_heads", "num_groups",
                                        "group",       "blocksize",    "block_size"};

template <std::size_t N>
bool contains(const std::string_view (&list)[N], std::string_view name) {
  return std::ranges::find(list, name) != std::end(list);
}

using Narrow = std::numeric_limits<std::int32_t>;

/// Why `number` is refused: it is outside of what its attribute may be.
Status bad_number(const ::onnx::NodeProto& node, int position, std::string_view name,
                  std::int64_t number) {
  if (contains(kCounts, name) && number < 1)
    return error(Code::kMalformed, "node {} ({}): {} is {}; 1 or more is allowed",
                 node_text(node, position), op_text(node), name, number);
  return error(Code::kUnsupportedModel,
               "node {} ({}): {} is {}; engines take {} to {}: export the model with such a number",
               node_text(node, position), op_text(node), name, number, Narrow::min(),
               Narrow::max());
}

}  // namespace

Status check_attribute(const ::onnx::NodeProto& node, int position, std::string_view name,
                       const ::onnx::AttributeProto& value) {
  if (!is_onnx_domain(node.domain()) && !node.domain().starts_with("com.microsoft")) return {};
  const bool single = value.type() == ::onnx::AttributeProto::INT;
  if (!single && value.ints().empty()) return {};
  // The name decides once: lists may be long.
  const bool wide = contains(kWide, name);
  const std::int64_t low = contains(kCounts, name) ? 1
                           : wide                  ? std::numeric_limits<std::int64_t>::min()
                                                   : Narrow::min();
  const std::int64_t high = wide ? std::numeric_limits<std::int64_t>::max() : Narrow::max();
  if (single && (value.i() < low || value.i() > high))
    return bad_number(node, position, name, value.i());
  for (const std::int64_t number : value.ints())
    if (number < low || number > high) return bad_number(node, position, name, number);
  return {};
}

Status check_attributes(const ::onnx::NodeProto& node, int position) {
  for (const auto& attribute : node.attribute())
    if (attribute.ref_attr_name().empty())
      CORELANE_TRY(check_attribute(node, position, attribute.name(), attribute));
  return {};
}

}  // namespace corelane::onnx
