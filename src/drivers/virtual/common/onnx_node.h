/// Reading one ONNX node: the facts that the patch decides by, and all that a host operator gets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu {

struct NodeFacts {
  std::string op_type;
  std::string domain;
  std::string name;
  std::string first_output;
  bool has_nested = false;  ///< An attribute holds tensors (sparse ones too) or graphs.
};

Result<NodeFacts> read_node(ByteSpan node);

/// What a walk along the values of a graph needs of a node. Points into the node's bytes.
struct NodeLinks {
  std::string_view op;
  std::string_view domain;  ///< By normal_domain().
  std::string_view name;
  std::vector<std::string_view> inputs;
  std::string_view output;  ///< The first one.
  std::vector<ByteSpan> attributes;
};

/// kMalformed where the bytes are no NodeProto.
Result<NodeLinks> read_links(ByteSpan node);

/// Type, name, attributes (without those named `corelane_*`) and the declared outputs. Sets the
/// node's refusal where an attribute is a tensor, a graph or a type: host operators get none.
Result<CustomNode> read_custom_node(ByteSpan node);

/// An AttributeProto with an integer.
std::string make_integer_attribute(std::string_view name, std::int64_t value);

/// "" and "ai.onnx" are one domain.
std::string_view normal_domain(std::string_view domain) noexcept;

}  // namespace corelane::drivers::virtual_npu
