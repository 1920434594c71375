/// Which nodes of a network belong to which part of a chain.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// The values that one cut names.
using CutValues = std::vector<std::string>;

/// A graph cut into parts, each after the one before. It must not change while this is used.
class CutPlan {
 public:
  /// The part of nodes computed from constants alone: each part that reads them has them.
  static constexpr int kEverywhere = -1;

  /// kNotFound for a value that is not there, kInvalidArgument for an incomplete cut: the
  /// message says which values it has to name as well.
  static Result<CutPlan> make(const ::onnx::GraphProto& graph, std::span<const CutValues> cuts);

  int parts() const noexcept { return static_cast<int>(cuts_.size()) + 1; }
  /// The part that makes a value; kEverywhere where no node does, or each part may.
  int part_of(std::string_view value) const;
  /// The nodes of a part, in the order of the graph, with those of everywhere that it needs.
  std::vector<int> nodes_of(int part) const;
  /// What a node reads, inside its subgraphs too, and no name twice.
  const std::vector<std::string_view>& reads(int node) const {
    return reads_[static_cast<std::size_t>(node)];
  }
  /// The values that part `part` gets from earlier ones, in the order in which the cut names them.
  std::vector<std::string_view> links_into(int part) const;
  /// The values that it makes for later ones.
  std::vector<std::string_view> links_out_of(int part) const;

 private:
  explicit CutPlan(const ::onnx::GraphProto& graph, std::span<const CutValues> cuts);
  void find_constants();
  Status check_value(const std::string& cut, const std::string& value) const;
  /// Gives what `value` needs to the part, where it has none yet; true where that was anything.
  bool take(std::string_view value, int part);
  Status check_crossing(const CutValues& cut, int part) const;
  int last() const noexcept { return static_cast<int>(cuts_.size()); }

  const ::onnx::GraphProto& graph_;
  std::span<const CutValues> cuts_;
  std::unordered_map<std::string_view, int> makers_;  ///< The node that makes a value.
  std::vector<std::vector<std::string_view>> reads_;  ///< By node.
  std::vector<int> part_;                             ///< By node.
};

}  // namespace corelane::onnx
