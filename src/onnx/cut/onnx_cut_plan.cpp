#include "onnx/cut/onnx_cut_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/leaked.h"
#include "base/nearest_name.h"
#include "onnx/graph/onnx_describe.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_reads.h"

namespace corelane::onnx {
namespace {

/// Each run of them gives something else: two parts must not have one each.
bool is_random(const ::onnx::NodeProto& node) {
  static Leaked<const std::unordered_set<std::string_view>> kOperators(
      {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform", "RandomNormalLike",
       "RandomUniformLike"});
  return kOperators->contains(node.op_type());
}

std::string list_of(const std::vector<std::string_view>& values) {
  return fmt::format("'{}'", fmt::join(values, "', '"));
}

}  // namespace

CutPlan::CutPlan(const ::onnx::GraphProto& graph, std::span<const CutValues> cuts)
    : graph_(graph),
      cuts_(cuts),
      reads_(static_cast<std::size_t>(graph.node_size())),
      part_(static_cast<std::size_t>(graph.node_size()), last()) {
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const auto& out : graph.node(i).output())
      if (!out.empty()) makers_.emplace(out, i);
    std::vector<std::string_view>& reads = reads_[static_cast<std::size_t>(i)];
    for_each_read(graph.node(i), [&](const std::string& name) {
      if (!name.empty() && std::ranges::find(reads, name) == reads.end()) reads.push_back(name);
    });
  }
}

/// In the order of the graph: what a node reads is known before it.
void CutPlan::find_constants() {
  std::unordered_set<std::string_view> given;
  for (const int i : real_inputs(graph_)) given.insert(graph_.input(i).name());
  for (int i = 0; i < graph_.node_size(); ++i) {
    const auto& node = graph_.node(i);
    const bool own = node.op_type() == "Constant";
    if (is_random(node) || (node.input_size() == 0 && !own)) continue;
    const bool depends = std::ranges::any_of(reads(i), [&](std::string_view name) {
      const auto made = makers_.find(name);
      if (made == makers_.end()) return given.contains(name);
      return part_[static_cast<std::size_t>(made->second)] != kEverywhere;
    });
    if (!depends && subgraphs(node).empty()) part_[static_cast<std::size_t>(i)] = kEverywhere;
  }
}

int CutPlan::part_of(std::string_view value) const {
  const auto made = makers_.find(value);
  return made == makers_.end() ? kEverywhere : part_[static_cast<std::size_t>(made->second)];
}

Status CutPlan::check_value(const std::string& cut, const std::string& value) const {
  const auto made = makers_.find(value);
  if (made != makers_.end() && part_[static_cast<std::size_t>(made->second)] != kEverywhere)
    return {};
  const auto is = [&](const auto& list) {
    return std::ranges::any_of(list, [&](const auto& v) { return v.name() == value; });
  };
  if (made != makers_.end() || is(graph_.initializer()))
    return error(Code::kInvalidArgument,
                 "cut '{}': '{}' is a constant, which each part has by itself; leave it out", cut,
                 value);
  if (is(graph_.input()))
    return error(Code::kInvalidArgument,
                 "cut '{}': '{}' is an input of the network, which each part can read; name values "
                 "that its nodes make",
                 cut, value);
  std::vector<std::string> known;
  for (const auto& node : graph_.node())
    for (const auto& out : node.output())
      if (!out.empty()) known.push_back(out);
  return error(Code::kNotFound,
               "cut '{}': no node of the network makes a value '{}'{}; name outputs of its nodes, "
               "such as '{}'",
               cut, value, nearest_hint(value, known), known.empty() ? "" : known[known.size() / 2])
      .with(Detail::kGiven, value);
}

bool CutPlan::take(std::string_view value, int part) {
  bool any = false;
  std::vector<int> open;
  const auto want = [&](std::string_view name) {
    const auto made = makers_.find(name);
    if (made == makers_.end()) return;
    int& of = part_[static_cast<std::size_t>(made->second)];
    if (of != last()) return;  // Of an earlier part, of this one, or of everywhere.
    of = part;
    any = true;
    open.push_back(made->second);
  };
  want(value);
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    for (const std::string_view read : reads(node)) want(read);
  }
  return any;
}

/// Every value that a later node reads of `part` or an earlier one is named, and read.
Status CutPlan::check_crossing(const CutValues& cut, int part) const {
  const std::string text = fmt::format("{}", fmt::join(cut, ","));
  std::unordered_set<std::string_view> unread(cut.begin(), cut.end());
  std::vector<std::string_view> missing;
  std::string reader;
  bool any = false;
  for (int i = 0; i < graph_.node_size(); ++i) {
    if (part_[static_cast<std::size_t>(i)] != last()) continue;
    any = true;
    for (const std::string_view read : reads(i)) {
      const int made = part_of(read);
      if (made == kEverywhere || made > part) continue;
      unread.erase(read);
      const bool named = std::ranges::find(cut, read) != cut.end();
      if (named || std::ranges::find(missing, read) != missing.end()) continue;
      if (missing.empty()) reader = node_text(graph_.node(i), i);
      missing.push_back(read);
    }
  }
  if (!any)
    return error(Code::kInvalidArgument,
                 "cut '{}' is not a cut: no node of the network comes after it", text);
  if (!missing.empty())
    return error(Code::kInvalidArgument,
                 "cut '{}' is not a cut: node {} after it reads '{}', which is made before it; "
                 "name all values that cross it: --cut {},{}",
                 text, reader, missing.front(), text, fmt::join(missing, ","))
        .with(Detail::kAllowed, fmt::format("{},{}", text, fmt::join(missing, ",")));
  if (!unread.empty())
    return error(Code::kInvalidArgument, "cut '{}': no node after the cut reads {}; leave {} out",
                 text, list_of({unread.begin(), unread.end()}), unread.size() == 1 ? "it" : "them");
  return {};
}

Result<CutPlan> CutPlan::make(const ::onnx::GraphProto& graph, std::span<const CutValues> cuts) {
  CutPlan plan(graph, cuts);
  plan.find_constants();
  for (std::size_t j = 0; j < cuts.size(); ++j) {
    const std::string text = fmt::format("{}", fmt::join(cuts[j], ","));
    bool any = false;
    if (cuts[j].empty())
      return error(Code::kInvalidArgument, "cut {} names no value; name what crosses it", j + 1);
    for (const std::string& value : cuts[j]) {
      CORELANE_TRY(plan.check_value(text, value));
      any = plan.take(value, static_cast<int>(j)) || any;
    }
    if (!any)
      return error(Code::kInvalidArgument,
                   "cut '{}' is not a cut: no node lies between it and the one before; give the "
                   "cuts in the order of the network, each once",
                   text);
    CORELANE_TRY(plan.check_crossing(cuts[j], static_cast<int>(j)));
  }
  return plan;
}

std::vector<int> CutPlan::nodes_of(int part) const {
  std::vector<char> wanted(part_.size(), 0);
  std::vector<int> open;
  const auto want = [&](std::string_view value) {
    const auto made = makers_.find(value);
    if (made == makers_.end()) return;
    const auto at = static_cast<std::size_t>(made->second);
    if (part_[at] != kEverywhere || wanted[at] != 0) return;
    wanted[at] = 1;
    open.push_back(made->second);
  };
  for (std::size_t i = 0; i < part_.size(); ++i) {
    if (part_[i] != part) continue;
    wanted[i] = 1;
    for (const std::string_view read : reads_[i]) want(read);
  }
  // An output that is computed from constants alone is of the first part.
  if (part == 0)
    for (const auto& out : graph_.output()) want(out.name());
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    for (const std::string_view read : reads(node)) want(read);
  }
  std::vector<int> nodes;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] != 0) nodes.push_back(static_cast<int>(i));
  return nodes;
}

std::vector<std::string_view> CutPlan::links_into(int part) const {
  std::unordered_set<std::string_view> read;
  for (const int node : nodes_of(part)) read.insert(reads(node).begin(), reads(node).end());
  std::vector<std::string_view> links;
  if (part == 0) return links;
  // What crosses into it crosses the cut before it, which names all of that.
  for (const std::string& value : cuts_[static_cast<std::size_t>(part) - 1])
    if (read.contains(value) && std::ranges::find(links, value) == links.end())
      links.emplace_back(value);
  return links;
}

std::vector<std::string_view> CutPlan::links_out_of(int part) const {
  std::vector<std::string_view> links;
  if (part == last()) return links;
  for (const std::string& value : cuts_[static_cast<std::size_t>(part)])
    if (part_of(value) == part && std::ranges::find(links, value) == links.end())
      links.emplace_back(value);
  return links;
}

}  // namespace corelane::onnx
