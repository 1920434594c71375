#include "corelane/onnx/network_nodes.h"

#include <algorithm>
#include <unordered_map>

#include "base/guard.h"
#include "onnx/graph/onnx_held_model.h"
#include "onnx/graph/onnx_model_bytes.h"

namespace corelane {
namespace {

using Known = std::unordered_map<std::string, TensorDesc>;

/// kUndefined where the graph does not say both type and rank.
TensorDesc desc_of(const ::onnx::ValueInfoProto& value) {
  TensorDesc desc;
  desc.name = value.name();
  desc.dtype = dtype_from_onnx(onnx::elem_type_of(value.type()));
  if (auto shape = onnx::shape_of(value.type()))
    desc.shape = *std::move(shape);
  else
    desc.dtype = DType::kUndefined;
  return desc;
}

/// Declared values and initialisers by name; those of subgraphs are not listed.
Known known_values(const ::onnx::GraphProto& graph) {
  Known known;
  for (const auto* list : {&graph.value_info(), &graph.input(), &graph.output()})
    for (const auto& value : *list) known[value.name()] = desc_of(value);
  for (const auto& tensor : graph.initializer()) {
    TensorDesc desc;
    desc.name = tensor.name();
    desc.dtype = dtype_from_onnx(tensor.data_type());
    desc.shape = Shape(std::vector<std::int64_t>(tensor.dims().begin(), tensor.dims().end()));
    known[tensor.name()] = std::move(desc);
  }
  return known;
}

void add_attribute(const ::onnx::AttributeProto& from, NetworkNode& node) {
  // The import's own notes are no attributes of the operator.
  if (from.name().starts_with("corelane_")) return;
  auto& to = node.attributes;
  switch (from.type()) {
    case ::onnx::AttributeProto::FLOAT:
      to[from.name()] = from.f();
      break;
    case ::onnx::AttributeProto::INT:
      to[from.name()] = static_cast<std::int64_t>(from.i());
      break;
    case ::onnx::AttributeProto::STRING:
      to[from.name()] = from.s();
      break;
    case ::onnx::AttributeProto::FLOATS:
      to[from.name()] = std::vector<float>(from.floats().begin(), from.floats().end());
      break;
    case ::onnx::AttributeProto::INTS:
      to[from.name()] = std::vector<std::int64_t>(from.ints().begin(), from.ints().end());
      break;
    case ::onnx::AttributeProto::STRINGS:
      to[from.name()] = std::vector<std::string>(from.strings().begin(), from.strings().end());
      break;
    // Graphs, tensors and types have no form in NetworkNode.
    default:
      break;
  }
}

/// What the import noted of a custom operator's outputs stands in its attributes.
void add_declared_outputs(const ::onnx::NodeProto& from, NetworkNode& node) {
  const int outputs = from.output_size();
  for (const auto& a : from.attribute()) {
    if (a.name() == "corelane_output_dtypes")
      for (int i = 0; i < std::min(outputs, a.ints_size()); ++i)
        node.outputs[static_cast<std::size_t>(i)].dtype = dtype_from_onnx(a.ints(i));
    if (a.name() == "corelane_output_shapes")
      for (int i = 0; i < std::min(outputs, a.strings_size()); ++i)
        if (auto shape = parse_shape(a.strings(i)))
          node.outputs[static_cast<std::size_t>(i)].shape = *std::move(shape);
  }
}

NetworkNode node_of(const ::onnx::NodeProto& from, const Known& known) {
  NetworkNode node;
  node.type = from.op_type();
  node.domain = from.domain();
  const auto describe = [&](const std::string& name) {
    if (const auto found = known.find(name); found != known.end()) return found->second;
    TensorDesc desc;
    desc.name = name;
    return desc;
  };
  for (const auto& name : from.input()) node.inputs.push_back(describe(name));
  for (const auto& name : from.output()) node.outputs.push_back(describe(name));
  // Many exporters leave the name out; the first output's is unique.
  node.name = !from.name().empty() || from.output_size() == 0 ? from.name() : from.output(0);
  for (const auto& attribute : from.attribute()) add_attribute(attribute, node);
  add_declared_outputs(from, node);
  return node;
}

}  // namespace

Result<std::vector<NetworkNode>> network_nodes(ByteSpan network) {
  return no_throw("reading the network", [&]() -> Result<std::vector<NetworkNode>> {
    const onnx::HeldModel held;
    ::onnx::ModelProto& model = *held;
    CORELANE_TRY(onnx::read_model(network, model));
    const Known known = known_values(model.graph());
    std::vector<NetworkNode> nodes;
    for (const auto& node : model.graph().node()) nodes.push_back(node_of(node, known));
    return nodes;
  });
}

}  // namespace corelane
