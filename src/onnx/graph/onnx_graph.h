/// Look-ups in one graph: the node that makes a value, the nodes that read it, which values are
/// constant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "corelane/base/bytes.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// The attribute, or null.
const ::onnx::AttributeProto* find_attribute(const ::onnx::NodeProto& node, std::string_view name);
std::int64_t int_attribute(const ::onnx::NodeProto& node, std::string_view name,
                           std::int64_t otherwise);
float float_attribute(const ::onnx::NodeProto& node, std::string_view name, float otherwise);
std::string string_attribute(const ::onnx::NodeProto& node, std::string_view name,
                             std::string otherwise);
/// Empty when there is none.
std::vector<std::int64_t> ints_attribute(const ::onnx::NodeProto& node, std::string_view name);
void set_attribute(::onnx::NodeProto& node, const std::string& name, std::int64_t value);
void set_attribute(::onnx::NodeProto& node, const std::string& name, float value);
void set_attribute(::onnx::NodeProto& node, const std::string& name, const std::string& value);
void set_attribute(::onnx::NodeProto& node, const std::string& name,
                   const std::vector<std::int64_t>& values);
void remove_attribute(::onnx::NodeProto& node, std::string_view name);

/// Input i's name, "" when it is left out.
const std::string& input_of(const ::onnx::NodeProto& node, int i);
/// False for an output that is left out.
bool has_output(const ::onnx::NodeProto& node, int i);

/// The graphs that the node's attributes hold, in their order.
std::vector<const ::onnx::GraphProto*> subgraphs(const ::onnx::NodeProto& node);
std::vector<::onnx::GraphProto*> mutable_subgraphs(::onnx::NodeProto& node);

/// An index over a graph that must not change while it is used.
class GraphIndex {
 public:
  explicit GraphIndex(const ::onnx::GraphProto& graph);

  /// The initialiser or Constant node's tensor of that name; null when it is not constant.
  const ::onnx::TensorProto* constant(std::string_view name) const;
  /// Null for inputs and initialisers.
  const ::onnx::NodeProto* producer(std::string_view name) const;
  /// Nodes that read the value, those of subgraphs included (as the node that holds them).
  const std::vector<const ::onnx::NodeProto*>& readers(std::string_view name) const;
  bool is_output(std::string_view name) const;

 private:
  void add_readers(const ::onnx::NodeProto& reader, const ::onnx::NodeProto& node);

  std::unordered_map<std::string_view, const ::onnx::TensorProto*> constants_;
  std::unordered_map<std::string_view, const ::onnx::NodeProto*> producers_;
  std::unordered_map<std::string_view, std::vector<const ::onnx::NodeProto*>> readers_;
  std::unordered_set<std::string_view> outputs_;
};

}  // namespace corelane::onnx
