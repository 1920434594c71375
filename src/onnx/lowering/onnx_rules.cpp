#include "onnx/lowering/onnx_rules.h"

#include "base/leaked.h"
#include "onnx/check/onnx_check.h"

namespace corelane::onnx {

RuleTable::RuleTable(std::initializer_list<std::span<const Rule>> rules) {
  // Rules of one operator are tried in the order of the list.
  for (const auto& subject : rules)
    for (const Rule& rule : subject) by_operator_[rule.op].push_back(&rule);
}

const std::vector<const Rule*>& RuleTable::rules_for(const ::onnx::NodeProto& node) const {
  static Leaked<const std::vector<const Rule*>> none;
  if (!is_onnx_domain(node.domain())) return *none;
  const auto it = by_operator_.find(node.op_type());
  return it == by_operator_.end() ? *none : it->second;
}

/// For OpenVINO 2026.4.1; a change of what they make is a new revision of the lowering.
const RuleTable& openvino_rules() {
  static Leaked<const RuleTable> kTable(RuleTable{
      cast_rules(), shape_rules(), resize_rules(), math_rules(), sizes_rules(), axis_rules(),
      reduction_rules(), attention_rules(), fourier_rules(), recurrent_rules(), training_rules()});
  return *kTable;
}

}  // namespace corelane::onnx
