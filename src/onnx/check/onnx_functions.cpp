#include "onnx/check/onnx_functions.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/check/onnx_attributes.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_graph.h"

namespace corelane::onnx {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;
/// The attributes of a call, by their names in the function.
using Attributes = std::unordered_map<std::string_view, const ::onnx::AttributeProto*>;

/// The most nodes of all bodies, counted at each call: functions that call others grow by powers.
constexpr std::size_t kMostNodes = 1'000'000;
/// The most bodies and subgraphs in one another: the walk recurses.
constexpr std::size_t kMostDeep = 128;

/// Domain, name and overload of a function, or of what a node calls.
std::string key_of(const std::string& domain, const std::string& name,
                   const std::string& overload) {
  // No name holds the separator that the other two have.
  return (is_standard_domain(domain) ? "" : domain) + '\0' + name + '\0' + overload;
}

/// What an attribute stands for in a body that is called with `call`; null where the call leaves it
/// out.
const ::onnx::AttributeProto* value_of(const ::onnx::AttributeProto& attribute,
                                       const Attributes& call) {
  if (attribute.ref_attr_name().empty()) return &attribute;
  const auto at = call.find(attribute.ref_attr_name());
  return at == call.end() ? nullptr : at->second;
}

/// Goes through the nodes of a graph, and the bodies of what they call, as an engine would write
/// them out.
class CallWalk {
 public:
  Status learn(const ::onnx::ModelProto& model) {
    for (const auto& f : model.functions())
      if (!functions_.emplace(key_of(f.domain(), f.name(), f.overload()), &f).second)
        return error(Code::kMalformed, "the model has two functions '{}' of the domain '{}'",
                     f.name(), f.domain());
    return {};
  }

  /// `call`: the attributes of the call whose body this is; none for a graph of the model.
  Status nodes(const Nodes& nodes, const Attributes& call) {
    if (++depth_ > kMostDeep)
      return error(Code::kUnsupportedModel,
                   "graphs and functions nested more than {} deep; export the model without "
                   "functions",
                   kMostDeep);
    for (int i = 0; i < nodes.size(); ++i) CORELANE_TRY(node(nodes[i], i, call));
    --depth_;
    return {};
  }

 private:
  Status node(const ::onnx::NodeProto& node, int position, const Attributes& call) {
    if (++seen_ > kMostNodes)
      return error(Code::kUnsupportedModel,
                   "the functions of the model have more than {} nodes where all calls are written "
                   "out; export it without functions",
                   kMostNodes);
    for (const auto& attribute : node.attribute()) {
      const auto* const value = value_of(attribute, call);
      if (value == nullptr) continue;
      if (value != &attribute)
        CORELANE_TRY(check_attribute(node, position, attribute.name(), *value));
      if (value->has_g()) CORELANE_TRY(nodes(value->g().node(), call));
      for (const auto& graph : value->graphs()) CORELANE_TRY(nodes(graph.node(), call));
    }
    const auto at = functions_.find(key_of(node.domain(), node.op_type(), node.overload()));
    return at == functions_.end() ? Status() : enter(*at->second, node, position, call);
  }

  /// The body of `f`, which `node` calls.
  Status enter(const ::onnx::FunctionProto& f, const ::onnx::NodeProto& node, int position,
               const Attributes& call) {
    if (node.input_size() > f.input_size() || node.output_size() > f.output_size())
      return error(Code::kMalformed,
                   "node {} ({}) has {} inputs and {} outputs; its function takes {} and makes {}",
                   node_text(node, position), op_text(node), node.input_size(), node.output_size(),
                   f.input_size(), f.output_size());
    if (std::ranges::find(entered_, &f) != entered_.end())
      return error(Code::kMalformed, "the function '{}' of the domain '{}' calls itself", f.name(),
                   f.domain());
    Attributes values;
    for (const auto& attribute : f.attribute_proto()) values[attribute.name()] = &attribute;
    for (const auto& attribute : node.attribute())
      if (const auto* const value = value_of(attribute, call)) values[attribute.name()] = value;
    entered_.push_back(&f);
    CORELANE_TRY(nodes(f.node(), values));
    entered_.pop_back();
    return {};
  }

  std::unordered_map<std::string, const ::onnx::FunctionProto*> functions_;
  std::vector<const ::onnx::FunctionProto*> entered_;  ///< Outermost first.
  std::size_t depth_ = 0;
  std::size_t seen_ = 0;
};

}  // namespace

Status check_calls(const ::onnx::ModelProto& model) {
  if (model.functions().empty()) return {};
  CallWalk walk;
  CORELANE_TRY(walk.learn(model));
  return walk.nodes(model.graph().node(), {});
}

}  // namespace corelane::onnx
