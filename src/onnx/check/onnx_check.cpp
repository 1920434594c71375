#include "onnx/check/onnx_check.h"

#include <limits>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "onnx/check/onnx_arity.h"
#include "onnx/check/onnx_attributes.h"
#include "onnx/check/onnx_functions.h"
#include "onnx/graph/onnx_graph.h"

namespace corelane::onnx {
namespace {

using Names = std::unordered_set<std::string_view>;
using Nodes = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;
using Imports = google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>;

std::int64_t standard_version(const Imports& imports) {
  for (const auto& o : imports)
    if (is_standard_domain(o.domain())) return o.version();
  // ONNX: a model that imports no operator set is of version 1.
  return 1;
}

/// Scopes from the outermost graph to the one being checked.
class ScopeChecker {
 public:
  /// `imports`: of the model, or of the function that is checked.
  explicit ScopeChecker(const Imports& imports) : imports_(imports) {}

  Status graph(const ::onnx::GraphProto& g, bool top) {
    // More than any exporter nests; the walks over a model recurse.
    if (++depth_ > 32) return error(Code::kMalformed, "graphs nested more than 32 deep");
    scopes_.emplace_back();
    graphs_.push_back(&g.node());
    CORELANE_TRY(declare(g, top));
    CORELANE_TRY(nodes(g.node()));
    for (const auto& out : g.output()) {
      if (!known(out.name())) {
        return error(Code::kMalformed, "graph '{}': nothing produces its output '{}'", g.name(),
                     out.name())
            .with(Detail::kOutput, out.name());
      }
    }
    scopes_.pop_back();
    graphs_.pop_back();
    --depth_;
    return {};
  }

  Status function(const ::onnx::FunctionProto& f) {
    in_function_ = true;
    scopes_.emplace_back();
    graphs_.push_back(&f.node());
    for (const auto& in : f.input())
      if (in.empty() || !scopes_.back().insert(in).second)
        return error(Code::kMalformed, "function '{}': the input name '{}' is empty or used twice",
                     f.name(), in);
    CORELANE_TRY(nodes(f.node()));
    for (const auto& out : f.output())
      if (!known(out))
        return error(Code::kMalformed, "function '{}': nothing produces its output '{}'", f.name(),
                     out);
    return {};
  }

 private:
  Status nodes(const Nodes& nodes) {
    for (int i = 0; i < nodes.size(); ++i) {
      const Status status = node(nodes[i], i);
      // Of nodes one in the other, the innermost is at fault.
      if (!status.ok() && status.detail(Detail::kNode).empty())
        return status.with(Detail::kNode, node_text(nodes[i], i))
            .with(Detail::kOperator, op_text(nodes[i]));
      CORELANE_TRY(status);
    }
    return {};
  }

  /// The names that a graph has from the start. Dimensions of inner graphs are not used: they may
  /// say what they like.
  Status declare(const ::onnx::GraphProto& g, bool top) {
    Names& names = scopes_.back();
    for (const auto& in : g.input()) {
      if (in.name().empty() || !names.insert(in.name()).second) {
        return error(Code::kMalformed, "graph '{}': the input name '{}' is empty or used twice",
                     g.name(), in.name())
            .with(Detail::kInput, in.name());
      }
      if (top) CORELANE_TRY(declared_dims(in));
    }
    for (const auto& out : g.output())
      if (top) CORELANE_TRY(declared_dims(out));
    // An initialiser may have the name of an input, whose default it is: initialisers are compared
    // among themselves only.
    Names constants;
    for (const auto& t : g.initializer()) {
      if (t.name().empty() || !constants.insert(t.name()).second) {
        return error(Code::kMalformed,
                     "graph '{}': the initialiser name '{}' is empty or used twice", g.name(),
                     t.name());
      }
      names.insert(t.name());
    }
    for (const auto& t : g.sparse_initializer()) names.insert(t.values().name());
    return {};
  }

  static Status declared_dims(const ::onnx::ValueInfoProto& value) {
    if (!value.type().has_tensor_type()) return {};
    // No engine has that many; inference keeps vectors of them.
    if (value.type().tensor_type().shape().dim_size() > 64)
      return error(Code::kMalformed, "'{}' declares more than 64 dimensions", value.name());
    for (const auto& d : value.type().tensor_type().shape().dim()) {
      // Some exporters write -1 for an open dimension.
      if (d.has_dim_value() && d.dim_value() < -1) {
        return error(Code::kMalformed, "'{}' declares the dimension {}; 0 or more is allowed",
                     value.name(), d.dim_value());
      }
    }
    return {};
  }

  /// A subgraph sees the values of all graphs around it.
  bool known(std::string_view name) const {
    for (const Names& n : scopes_)
      if (n.contains(name)) return true;
    return false;
  }

  /// By a node of these graphs, wherever it stands.
  bool made(std::string_view name) const {
    for (const Nodes* nodes : graphs_)
      for (const auto& n : *nodes)
        for (const auto& out : n.output())
          if (out == name) return true;
    return false;
  }

  static Status no_references(const ::onnx::NodeProto& n, int position) {
    for (const auto& attribute : n.attribute())
      if (!attribute.ref_attr_name().empty())
        return error(Code::kMalformed,
                     "node {} ({}): the attribute '{}' refers to one of a function, but is in none",
                     node_text(n, position), op_text(n), attribute.name());
    return {};
  }

  /// Nodes are in topological order (ONNX IR), so what a node reads is known when it comes.
  Status node(const ::onnx::NodeProto& n, int position) {
    if (n.op_type().empty())
      return error(Code::kMalformed, "node {} has no operator type", node_text(n, position));
    CORELANE_TRY(check_arity(n, position, version_of(n.domain())));
    CORELANE_TRY(check_attributes(n, position));
    if (!in_function_) CORELANE_TRY(no_references(n, position));
    for (const auto& in : n.input()) {
      if (!in.empty() && !known(in)) {
        return error(Code::kMalformed, "node {} ({}) reads '{}', which {}", node_text(n, position),
                     op_text(n), in, made(in) ? "only a circle of nodes makes" : "nothing makes");
      }
    }
    for (const auto* g : subgraphs(n)) CORELANE_TRY(graph(*g, false));
    // After the subgraphs, which must not read what their own node makes.
    for (const auto& out : n.output()) {
      if (!out.empty() && !scopes_.back().insert(out).second) {
        return error(Code::kMalformed, "node {} ({}) makes '{}', which exists already",
                     node_text(n, position), op_text(n), out);
      }
    }
    return {};
  }

  /// The version of a domain; the newest one if the model does not import it.
  std::int64_t version_of(const std::string& domain) const {
    if (is_standard_domain(domain)) return standard_version(imports_);
    for (const auto& o : imports_)
      if (o.domain() == domain) return o.version();
    return std::numeric_limits<std::int64_t>::max();
  }

  const Imports& imports_;
  std::vector<Names> scopes_;
  std::vector<const Nodes*> graphs_;
  int depth_ = 0;
  bool in_function_ = false;  ///< Whose attributes a node may refer to.
};

}  // namespace

bool is_standard_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

bool is_onnx_domain(const std::string& domain) {
  return is_standard_domain(domain) || domain == "ai.onnx.ml" ||
         domain.starts_with("ai.onnx.preview");
}

std::int64_t opset_of(const ::onnx::ModelProto& model) {
  return standard_version(model.opset_import());
}

namespace {

/// Engines look for an operator in one version after the other, downwards from this number. The
/// newest versions are those of onnx 1.23; for other domains any bound will do that no one reaches.
std::int64_t newest_version(const std::string& domain) {
  if (is_standard_domain(domain)) return 28;
  if (domain == "ai.onnx.ml") return 5;
  return is_onnx_domain(domain) ? 1 : 1000;
}

Status check_opsets(const Imports& imports) {
  for (const auto& o : imports) {
    const std::int64_t newest = newest_version(o.domain());
    if (o.version() >= 1 && o.version() <= newest) continue;
    return error(o.version() < 1 ? Code::kMalformed : Code::kUnsupportedModel,
                 "the model imports version {} of the operators of '{}'; 1 to {} are known: export "
                 "it for one of these",
                 o.version(), is_standard_domain(o.domain()) ? "ai.onnx" : o.domain(), newest);
  }
  return {};
}

}  // namespace

Status check_structure(const ::onnx::ModelProto& model) {
  if (!model.has_graph()) return error(Code::kMalformed, "not an ONNX model: it holds no graph");
  CORELANE_TRY(check_opsets(model.opset_import()));
  const auto& graph = model.graph();
  if (graph.output_size() == 0)
    return error(Code::kMalformed, "the graph '{}' has no output", graph.name());
  // Doors bind outputs by name.
  std::unordered_set<std::string_view> outputs;
  for (const auto& out : graph.output())
    if (out.name().empty() || !outputs.insert(out.name()).second)
      return error(Code::kMalformed, "the output name '{}' is empty or used twice", out.name());
  for (const auto& f : model.functions()) {
    CORELANE_TRY(check_opsets(f.opset_import()));
    CORELANE_TRY(ScopeChecker(f.opset_import()).function(f));
  }
  CORELANE_TRY(ScopeChecker(model.opset_import()).graph(graph, true));
  return check_calls(model);
}

}  // namespace corelane::onnx
