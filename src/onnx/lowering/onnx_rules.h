/// The rules of the rewriter, by engine and by subject: each function is one file of rules.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/lowering/onnx_rewriter.h"

namespace corelane::onnx {

/// The rules of one engine.
class RuleTable {
 public:
  explicit RuleTable(std::initializer_list<std::span<const Rule>> rules);
  /// The rules for a node's operator, in the order in which they are tried. Standard domains only.
  const std::vector<const Rule*>& rules_for(const ::onnx::NodeProto& node) const;

 private:
  std::unordered_map<std::string_view, std::vector<const Rule*>> by_operator_;
};

/// What OpenVINO has no conversion for, or computes wrongly.
const RuleTable& openvino_rules();

std::span<const Rule> cast_rules();
std::span<const Rule> shape_rules();
std::span<const Rule> resize_rules();
std::span<const Rule> math_rules();
std::span<const Rule> sizes_rules();
std::span<const Rule> axis_rules();
std::span<const Rule> reduction_rules();
std::span<const Rule> attention_rules();
std::span<const Rule> fourier_rules();
std::span<const Rule> recurrent_rules();
std::span<const Rule> training_rules();

}  // namespace corelane::onnx
