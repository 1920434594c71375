#include "onnx/check/onnx_arity.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_operators.h"

namespace corelane::onnx {
namespace {

/// Without absent ones at the end, which some exporters write.
template <class Names>
int count_of(const Names& names) {
  int count = names.size();
  while (count > 0 && names.Get(count - 1).empty()) --count;
  return count;
}

bool is_between(int count, int least, int most) {
  return count >= least && (most < 0 || count <= most);
}

std::string range_text(int least, int most) {
  if (most < 0) return fmt::format("{} or more", least);
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

}  // namespace

Status check_arity(const ::onnx::NodeProto& node, int position, std::int64_t version) {
  if (!is_onnx_domain(node.domain())) return {};
  const OperatorFacts* const facts = find_operator(node.op_type(), version);
  if (facts == nullptr) return {};
  const int inputs = node.input_size();
  const int outputs = node.output_size();
  const bool enough = is_between(inputs, facts->least_inputs, -1) &&
                      is_between(count_of(node.input()), 0, facts->most_inputs) &&
                      is_between(outputs, facts->least_outputs, -1) &&
                      is_between(count_of(node.output()), 0, facts->most_outputs);
  if (!enough)
    return error(
        Code::kMalformed,
        "node {} ({}) has {} inputs and {} outputs; version {} of the operator has {} and {}",
        node_text(node, position), op_text(node), inputs, outputs, facts->since,
        range_text(facts->least_inputs, facts->most_inputs),
        range_text(facts->least_outputs, facts->most_outputs));
  // Where any number is allowed, absent ones at the end are inputs, too.
  const int counted = facts->most_inputs < 0 ? inputs : count_of(node.input());
  for (int i = 0; i < std::max(facts->least_inputs, counted); ++i) {
    if (!node.input(i).empty() || !facts->needs(i)) continue;
    return error(Code::kMalformed, "node {} ({}) leaves out input {}, which the operator needs",
                 node_text(node, position), op_text(node), i);
  }
  return {};
}

}  // namespace corelane::onnx
