#include "onnx/graph/onnx_sort.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/graph/onnx_reads.h"
#include "onnx/graph/onnx_walk.h"

namespace corelane::onnx {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

/// The positions of the nodes in their new order; those in a circle, or after one, come last.
std::vector<int> order_of(const Nodes& nodes) {
  std::unordered_map<std::string_view, int> makers;
  for (int i = 0; i < nodes.size(); ++i)
    for (const auto& out : nodes[i].output()) makers.emplace(out, i);
  std::vector<std::vector<int>> readers(static_cast<std::size_t>(nodes.size()));
  std::vector<int> missing(readers.size(), 0);  // Reads of values that are not made yet.
  for (int i = 0; i < nodes.size(); ++i) {
    for_each_read(nodes[i], [&](const std::string& name) {
      const auto it = name.empty() ? makers.end() : makers.find(name);
      if (it == makers.end()) return;
      readers[static_cast<std::size_t>(it->second)].push_back(i);
      ++missing[static_cast<std::size_t>(i)];
    });
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (missing[static_cast<std::size_t>(i)] == 0) ready.push(i);
  std::vector<int> order;
  order.reserve(readers.size());
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const int reader : readers[static_cast<std::size_t>(next)])
      if (--missing[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
  }
  for (int i = 0; i < nodes.size(); ++i)
    if (missing[static_cast<std::size_t>(i)] > 0) order.push_back(i);
  return order;
}

bool sort_graph(::onnx::GraphProto& graph) {
  auto& nodes = *graph.mutable_node();
  const std::vector<int> order = order_of(nodes);
  if (std::is_sorted(order.begin(), order.end())) return false;
  Nodes sorted;
  sorted.Reserve(nodes.size());
  for (const int i : order) *sorted.Add() = std::move(nodes[i]);
  nodes.Swap(&sorted);
  return true;
}

}  // namespace

bool sort_nodes(::onnx::ModelProto& model) {
  bool changed = false;
  for_each_graph(*model.mutable_graph(),
                 [&](::onnx::GraphProto& graph) { changed = sort_graph(graph) || changed; });
  return changed;
}

}  // namespace corelane::onnx
