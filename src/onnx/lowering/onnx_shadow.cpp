#include "onnx/lowering/onnx_shadow.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>

#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_walk.h"

namespace corelane::onnx {
namespace {

using Set = std::unordered_set<std::string>;
/// Name that hides another -> its new name.
using Renames = std::map<std::string, std::string>;

/// `f(name)` for the names that a graph has from its start, each as one that can be changed.
template <class F>
void for_each_first(::onnx::GraphProto& graph, const F& f) {
  for (auto& in : *graph.mutable_input()) f(*in.mutable_name());
  for (auto& t : *graph.mutable_initializer()) f(*t.mutable_name());
  for (auto& t : *graph.mutable_sparse_initializer()) f(*t.mutable_values()->mutable_name());
}

/// `f(name)` for those, and for what its nodes make.
template <class F>
void for_each_own(::onnx::GraphProto& graph, const F& f) {
  for_each_first(graph, f);
  for (auto& node : *graph.mutable_node())
    for (auto& out : *node.mutable_output()) f(out);
}

void change(std::string& name, const Renames& renames) {
  if (const auto it = renames.find(name); it != renames.end()) name = it->second;
}

/// Renames what the graph, and those below it, read: `visible` from the start on, and what its
/// nodes make, `made`, from there on.
void apply(::onnx::GraphProto& graph, Renames visible, const Renames& made) {
  for (auto& node : *graph.mutable_node()) {
    for (auto& in : *node.mutable_input()) change(in, visible);
    for (auto* inner : mutable_subgraphs(node)) {
      Renames below = visible;
      for_each_first(*inner, [&](const std::string& name) { below.erase(name); });
      apply(*inner, std::move(below), {});
    }
    for (auto& out : *node.mutable_output()) {
      const auto it = made.find(out);
      visible.erase(out);  // Hidden from here on, under whichever name.
      if (it == made.end()) continue;
      visible.insert(*it);
      out = it->second;
    }
  }
  for (auto* list : {graph.mutable_output(), graph.mutable_value_info()})
    for (auto& value : *list) change(*value.mutable_name(), visible);
}

class Shadows {
 public:
  explicit Shadows(::onnx::GraphProto& top) {
    for_each_graph(top, [&](::onnx::GraphProto& graph) {
      for_each_own(graph, [&](const std::string& name) { all_.insert(name); });
    });
  }

  /// True where a name in the graphs of `node` was changed. `outer`: names around them.
  bool below(::onnx::NodeProto& node, const Set& outer) {
    bool changed = false;
    for (auto* graph : mutable_subgraphs(node)) {
      changed = rename(*graph, outer) || changed;
      Set seen = outer;
      for_each_own(*graph, [&](const std::string& name) { seen.insert(name); });
      for (auto& inner : *graph->mutable_node()) changed = below(inner, seen) || changed;
    }
    return changed;
  }

 private:
  bool rename(::onnx::GraphProto& graph, const Set& outer) {
    Renames first;
    for_each_first(graph, [&](std::string& name) {
      if (name.empty() || !outer.contains(name)) return;
      // An initialiser may stand for the input of its name: both get the same new one.
      auto& fresh = first[name];
      if (fresh.empty()) fresh = fresh_name(name);
      name = fresh;
    });
    Renames made;
    for (auto& node : graph.node())
      for (auto& out : node.output())
        if (!out.empty() && outer.contains(out)) made[out] = fresh_name(out);
    if (first.empty() && made.empty()) return false;
    apply(graph, std::move(first), made);
    return true;
  }

  std::string fresh_name(const std::string& name) {
    std::string fresh;
    do {
      fresh = fmt::format("{}/inner{}", name, next_++);
    } while (!all_.insert(fresh).second);
    return fresh;
  }

  Set all_;
  std::uint64_t next_ = 0;
};

}  // namespace

void rename_shadows(::onnx::GraphProto& graph, std::vector<ImportFinding>& findings) {
  bool any = false;
  for (auto& node : *graph.mutable_node()) any = any || !mutable_subgraphs(node).empty();
  if (!any) return;
  Shadows shadows(graph);
  Set names;
  for_each_own(graph, [&](const std::string& name) { names.insert(name); });
  for (int i = 0; i < graph.node_size(); ++i) {
    auto& node = *graph.mutable_node(i);
    if (!shadows.below(node, names)) continue;
    findings.push_back({ImportFinding::Kind::kRewritten, node_text(node, i), op_text(node),
                        "names inside that hide values of the graph around it: renamed"});
  }
}

}  // namespace corelane::onnx
