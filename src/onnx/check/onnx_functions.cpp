#include "onnx/check/onnx_functions.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/check/onnx_attributes.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_graph.h"

namespace corelane::onnx {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

/// Of all bodies, once for each call. Functions that call functions grow by powers.
constexpr std::size_t kMostNodes = 1'000'000;

/// Domain, name and overload of a function, or of what a node calls.
std::string key_of(const std::string& domain, const std::string& name,
                   const std::string& overload) {
  // No name holds the separator that the other two have.
  return (is_standard_domain(domain) ? "" : domain) + '\0' + name + '\0' + overload;
}

/// A call whose attributes are values.
struct Call {
  const ::onnx::FunctionProto& function;
  const ::onnx::NodeProto& node;
};

/// The value that a call gives to an attribute of its function: its own, the default or none.
const ::onnx::AttributeProto* value_of(const Call& call, const std::string& name) {
  if (const auto* given = find_attribute(call.node, name)) return given;
  const auto& defaults = call.function.attribute_proto();
  const auto at = std::ranges::find(defaults, name, &::onnx::AttributeProto::name);
  return at == defaults.end() ? nullptr : &*at;
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

  /// `call`: of the function whose body this is; null for a graph of the model.
  Status nodes(const Nodes& nodes, const Call* call) {
    for (int i = 0; i < nodes.size(); ++i) CORELANE_TRY(node(nodes[i], i, call));
    return {};
  }

 private:
  Status node(const ::onnx::NodeProto& given, int position, const Call* call) {
    if (++seen_ > kMostNodes)
      return error(Code::kUnsupportedModel,
                   "the functions of the model have more than {} nodes where all calls are written "
                   "out; export it without functions",
                   kMostNodes);
    ::onnx::NodeProto resolved;
    const ::onnx::NodeProto* n = &given;
    if (std::ranges::any_of(given.attribute(), is_reference)) {
      CORELANE_TRY(resolve(given, position, call, resolved));
      n = &resolved;
      CORELANE_TRY(check_attributes(*n, position));
    }
    for (const auto* g : subgraphs(*n)) CORELANE_TRY(nodes(g->node(), call));
    const auto at = functions_.find(key_of(n->domain(), n->op_type(), n->overload()));
    return at == functions_.end() ? Status() : enter({*at->second, *n}, position);
  }

  static bool is_reference(const ::onnx::AttributeProto& a) { return !a.ref_attr_name().empty(); }

  /// The node with the values that the call gives.
  static Status resolve(const ::onnx::NodeProto& given, int position, const Call* call,
                        ::onnx::NodeProto& node) {
    node = given;
    node.clear_attribute();
    for (const auto& attribute : given.attribute()) {
      if (!is_reference(attribute)) {
        *node.add_attribute() = attribute;
        continue;
      }
      if (call == nullptr)
        return error(Code::kMalformed,
                     "node {} ({}): the attribute '{}' refers to one of a function, but is in none",
                     node_text(given, position), op_text(given), attribute.name());
      const auto* value = value_of(*call, attribute.ref_attr_name());
      if (value == nullptr) continue;
      auto& taken = *node.add_attribute();
      taken = *value;
      taken.set_name(attribute.name());
    }
    return {};
  }

  Status enter(const Call& call, int position) {
    const ::onnx::FunctionProto& f = call.function;
    if (call.node.input_size() > f.input_size() || call.node.output_size() > f.output_size())
      return error(Code::kMalformed,
                   "node {} ({}) has {} inputs and {} outputs; its function takes {} and makes {}",
                   node_text(call.node, position), op_text(call.node), call.node.input_size(),
                   call.node.output_size(), f.input_size(), f.output_size());
    if (std::ranges::find(entered_, &f) != entered_.end())
      return error(Code::kMalformed, "the function '{}' of the domain '{}' calls itself", f.name(),
                   f.domain());
    entered_.push_back(&f);
    CORELANE_TRY(nodes(f.node(), &call));
    entered_.pop_back();
    return {};
  }

  std::unordered_map<std::string, const ::onnx::FunctionProto*> functions_;
  std::vector<const ::onnx::FunctionProto*> entered_;  ///< Outermost first.
  std::size_t seen_ = 0;
};

}  // namespace

Status check_calls(const ::onnx::ModelProto& model) {
  if (model.functions().empty()) return {};
  CallWalk walk;
  CORELANE_TRY(walk.learn(model));
  return walk.nodes(model.graph().node(), nullptr);
}

}  // namespace corelane::onnx
