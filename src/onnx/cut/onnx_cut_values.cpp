#include "onnx/cut/onnx_cut_values.h"

#include <algorithm>

#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_describe.h"
#include "onnx/graph/onnx_reads.h"
#include "onnx/graph/onnx_tensor.h"

namespace corelane::onnx {

void fold_known(::onnx::GraphProto& graph, const FactsTable& facts) {
  for (auto& node : *graph.mutable_node()) {
    if (node.op_type() == "Constant" || node.output_size() != 1) continue;
    const ValueFacts& known = facts.of(node.output(0));
    if (known.elem != ::onnx::TensorProto::INT64 || !known.known_ints() || !known.is_static())
      continue;
    ::onnx::NodeProto constant;
    constant.set_name(node.name());
    constant.set_op_type("Constant");
    constant.add_output(node.output(0));
    auto& value = *constant.add_attribute();
    value.set_name("value");
    value.set_type(::onnx::AttributeProto::TENSOR);
    *value.mutable_t() = make_ints("", known.shape->dims(), *known.ints);
    node = std::move(constant);
  }
}

/// Where a size is not known and nothing of this kind comes before it, an engine may know it.
std::unordered_set<std::string_view> unsized_values(const ::onnx::GraphProto& graph,
                                                    const FactsTable& facts) {
  std::unordered_set<std::string_view> unsized;
  const auto fixed = [&](int i) { return facts.of(graph.input(i).name()).is_static(); };
  if (!std::ranges::all_of(real_inputs(graph), fixed)) return unsized;
  for (const auto& node : graph.node()) {
    bool decides = is_standard_domain(node.domain()) &&
                   (node.op_type() == "NonZero" || node.op_type() == "NonMaxSuppression");
    for_each_read(node,
                  [&](const std::string& name) { decides = decides || unsized.contains(name); });
    for (const std::string& out : node.output())
      if (decides && !facts.of(out).is_static()) unsized.insert(out);
  }
  return unsized;
}

}  // namespace corelane::onnx
