#include "onnx/lowering/onnx_rules.h"

#include "onnx/graph/onnx_check.h"

namespace corelane::onnx {

RuleTable::RuleTable(std::initializer_list<std::span<const Rule>> rules) {
  for (const auto& subject : rules)
    for (const Rule& rule : subject) by_operator_[rule.op].push_back(&rule);
}

const std::vector<const Rule*>& RuleTable::rules_for(const ::onnx::NodeProto& node) const {
  static const std::vector<const Rule*> kNone;
  const bool known = is_standard_domain(node.domain()) || node.domain() == "ai.onnx.ml" ||
                     node.domain().starts_with("ai.onnx.preview");
  if (!known) return kNone;
  const auto it = by_operator_.find(node.op_type());
  return it == by_operator_.end() ? kNone : it->second;
}

const RuleTable& openvino_rules() {
  static const RuleTable kTable{cast_rules(),      shape_rules(),     resize_rules(),
                                math_rules(),      attention_rules(), fourier_rules(),
                                recurrent_rules(), training_rules()};
  return kTable;
}

}  // namespace corelane::onnx
