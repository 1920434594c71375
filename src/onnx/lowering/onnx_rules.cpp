#include "onnx/lowering/onnx_rules.h"

#include <string_view>
#include <unordered_map>

#include "onnx/graph/onnx_check.h"

namespace corelane::onnx {
namespace {

using Table = std::unordered_map<std::string_view, std::vector<const Rule*>>;

Table make_table() {
  Table table;
  for (const auto rules :
       {cast_rules(), shape_rules(), resize_rules(), math_rules(), attention_rules(),
        fourier_rules(), recurrent_rules(), training_rules()}) {
    for (const Rule& rule : rules) table[rule.op].push_back(&rule);
  }
  return table;
}

}  // namespace

const std::vector<const Rule*>& rules_for(const ::onnx::NodeProto& node) {
  static const Table kTable = make_table();
  static const std::vector<const Rule*> kNone;
  const bool known = is_standard_domain(node.domain()) || node.domain() == "ai.onnx.ml" ||
                     node.domain().starts_with("ai.onnx.preview");
  if (!known) return kNone;
  const auto it = kTable.find(node.op_type());
  return it == kTable.end() ? kNone : it->second;
}

}  // namespace corelane::onnx
