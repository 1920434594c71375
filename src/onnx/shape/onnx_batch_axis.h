/// Where the copies of a batch lie in a node's outputs, given where they lie in its inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {

/// The dimension that holds the copies, by value name; values without copies are absent.
using BatchAxes = std::unordered_map<std::string, std::size_t>;

/// Names of constants: the same for any number of copies.
using FixedValues = std::unordered_set<std::string>;

struct BatchStep {
  bool known = true;    ///< False: the operator is not one of those understood here.
  std::string refusal;  ///< Not empty: what the node does that a batch cannot have.
  std::vector<std::optional<std::size_t>> axes;  ///< By output; nullopt: no copies.
};

/// One node; `facts` already hold its outputs.
BatchStep follow_batch(const ::onnx::NodeProto& node, std::int64_t opset, std::int64_t batch,
                       const FactsTable& facts, const BatchAxes& axes, const FixedValues& fixed);

}  // namespace corelane::onnx
