/// What a network computes in one run, told from its nodes and shapes.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "onnx/graph/onnx_proto.h"
#include "onnx/infer/onnx_count.h"
#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {

/// An upper bound, in steps: a multiply-accumulate is one, an element that another operator reads
/// or makes is 8. Nodes are added in their order. One thread.
class Work {
 public:
  /// After infer_node(). `facts`: of the graph that the node is in.
  void add(const ::onnx::NodeProto& node, const FactsTable& facts);
  /// Nothing where a node has no bound: loops, operators without a known cost, unknown shapes.
  const Count& steps() const noexcept { return steps_; }

 private:
  Count elements(const std::string& name, const FactsTable& facts) const;
  Count inputs_of(const ::onnx::NodeProto& node, const FactsTable& facts) const;
  Count steps_of(const ::onnx::NodeProto& node, const FactsTable& facts, const Count& made) const;
  /// At most as many elements are in any output of the node.
  Count made_by(const ::onnx::NodeProto& node, const FactsTable& facts) const;

  Count steps_ = 0;
  /// At most as many elements are in a value without a known shape.
  std::unordered_map<std::string, std::uint64_t> bounds_;
};

}  // namespace corelane::onnx
