#include "onnx/graph/onnx_graph.h"

#include "base/leaked.h"

namespace corelane::onnx {
namespace {

/// Replaces: protobuf would keep both attributes, and readers take the first.
::onnx::AttributeProto& fresh_attribute(::onnx::NodeProto& node, const std::string& name) {
  remove_attribute(node, name);
  auto* a = node.add_attribute();
  a->set_name(name);
  return *a;
}

}  // namespace

const ::onnx::AttributeProto* find_attribute(const ::onnx::NodeProto& node, std::string_view name) {
  for (const auto& a : node.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

namespace {

/// A writer of proto3 leaves a value of 0 out: the attribute's type says that it is there. One that
/// stands for a function's attribute has a type and no value.
bool is_left_out(const ::onnx::AttributeProto& a, ::onnx::AttributeProto::AttributeType type) {
  return a.type() == type && a.ref_attr_name().empty();
}

}  // namespace

std::int64_t int_attribute(const ::onnx::NodeProto& node, std::string_view name,
                           std::int64_t otherwise) {
  const auto* a = find_attribute(node, name);
  if (a == nullptr) return otherwise;
  return a->has_i() || is_left_out(*a, ::onnx::AttributeProto::INT) ? a->i() : otherwise;
}

float float_attribute(const ::onnx::NodeProto& node, std::string_view name, float otherwise) {
  const auto* a = find_attribute(node, name);
  if (a == nullptr) return otherwise;
  return a->has_f() || is_left_out(*a, ::onnx::AttributeProto::FLOAT) ? a->f() : otherwise;
}

std::string string_attribute(const ::onnx::NodeProto& node, std::string_view name,
                             std::string otherwise) {
  const auto* a = find_attribute(node, name);
  if (a == nullptr) return otherwise;
  return a->has_s() || is_left_out(*a, ::onnx::AttributeProto::STRING) ? a->s() : otherwise;
}

std::vector<std::int64_t> ints_attribute(const ::onnx::NodeProto& node, std::string_view name) {
  const auto* a = find_attribute(node, name);
  if (a == nullptr) return {};
  return {a->ints().begin(), a->ints().end()};
}

void set_attribute(::onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  auto& a = fresh_attribute(node, name);
  a.set_type(::onnx::AttributeProto::INT);
  a.set_i(value);
}

void set_attribute(::onnx::NodeProto& node, const std::string& name, float value) {
  auto& a = fresh_attribute(node, name);
  a.set_type(::onnx::AttributeProto::FLOAT);
  a.set_f(value);
}

void set_attribute(::onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto& a = fresh_attribute(node, name);
  a.set_type(::onnx::AttributeProto::STRING);
  a.set_s(value);
}

void set_attribute(::onnx::NodeProto& node, const std::string& name,
                   const std::vector<std::int64_t>& values) {
  auto& a = fresh_attribute(node, name);
  a.set_type(::onnx::AttributeProto::INTS);
  for (const auto v : values) a.add_ints(v);
}

void remove_attribute(::onnx::NodeProto& node, std::string_view name) {
  // From the back, so that the indices still to come stay right.
  for (int i = node.attribute_size() - 1; i >= 0; --i)
    if (node.attribute(i).name() == name) node.mutable_attribute()->DeleteSubrange(i, 1);
}

/// Trailing inputs may be missing, inner ones are "" when left out: both are "" here.
const std::string& input_of(const ::onnx::NodeProto& node, int i) {
  static Leaked<const std::string> none;
  return i < node.input_size() ? node.input(i) : *none;
}

bool has_output(const ::onnx::NodeProto& node, int i) {
  return i < node.output_size() && !node.output(i).empty();
}

std::vector<const ::onnx::GraphProto*> subgraphs(const ::onnx::NodeProto& node) {
  std::vector<const ::onnx::GraphProto*> graphs;
  for (const auto& a : node.attribute()) {
    if (a.has_g()) graphs.push_back(&a.g());
    for (const auto& g : a.graphs()) graphs.push_back(&g);
  }
  return graphs;
}

std::vector<::onnx::GraphProto*> mutable_subgraphs(::onnx::NodeProto& node) {
  std::vector<::onnx::GraphProto*> graphs;
  for (auto& a : *node.mutable_attribute()) {
    if (a.has_g()) graphs.push_back(a.mutable_g());
    for (auto& g : *a.mutable_graphs()) graphs.push_back(&g);
  }
  return graphs;
}

GraphIndex::GraphIndex(const ::onnx::GraphProto& graph) {
  // Each name is made once: check_structure() has refused other models.
  for (const auto& t : graph.initializer()) constants_.emplace(t.name(), &t);
  for (const auto& node : graph.node()) {
    for (const auto& out : node.output())
      if (!out.empty()) producers_.emplace(out, &node);
    if (node.op_type() == "Constant" && node.output_size() == 1) {
      const auto* value = find_attribute(node, "value");
      if (value != nullptr && value->has_t()) constants_.emplace(node.output(0), &value->t());
    }
    add_readers(node, node);
  }
  for (const auto& out : graph.output()) outputs_.insert(out.name());
}

/// What a subgraph reads its node reads: a rewrite of the graph above has to see it.
void GraphIndex::add_readers(const ::onnx::NodeProto& reader, const ::onnx::NodeProto& node) {
  for (const auto& in : node.input())
    if (!in.empty()) readers_[in].push_back(&reader);
  for (const auto* g : subgraphs(node)) {
    for (const auto& n : g->node()) add_readers(reader, n);
    for (const auto& out : g->output()) readers_[out.name()].push_back(&reader);
  }
}

const ::onnx::TensorProto* GraphIndex::constant(std::string_view name) const {
  const auto it = constants_.find(name);
  return it == constants_.end() ? nullptr : it->second;
}

const ::onnx::NodeProto* GraphIndex::producer(std::string_view name) const {
  const auto it = producers_.find(name);
  return it == producers_.end() ? nullptr : it->second;
}

const std::vector<const ::onnx::NodeProto*>& GraphIndex::readers(std::string_view name) const {
  static Leaked<const std::vector<const ::onnx::NodeProto*>> nobody;
  const auto it = readers_.find(name);
  return it == readers_.end() ? *nobody : it->second;
}

bool GraphIndex::is_output(std::string_view name) const { return outputs_.contains(name); }

}  // namespace corelane::onnx
