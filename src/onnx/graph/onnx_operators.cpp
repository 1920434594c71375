#include "onnx/graph/onnx_operators.h"

#include <algorithm>

namespace corelane::onnx {
namespace {

/// In the order of their names, and of versions.
#define CORELANE_ONNX_OPERATOR(type, standard, since, least, most, least_out, most_out, needed) \
  OperatorFacts{type, standard, since, least, most, least_out, most_out, needed},
constexpr OperatorFacts kFactsOfOperators[] = {
#include "onnx/graph/onnx_operators.inc"
};
#undef CORELANE_ONNX_OPERATOR
static_assert(std::ranges::is_sorted(kFactsOfOperators, {}, &OperatorFacts::type));

}  // namespace

const OperatorFacts* find_operator(std::string_view type, std::int64_t version) noexcept {
  const auto versions = std::ranges::equal_range(kFactsOfOperators, type, {}, &OperatorFacts::type);
  if (versions.empty()) return nullptr;
  const OperatorFacts* found = versions.begin();
  while (found + 1 != versions.end() && found[1].since <= version) ++found;
  return found;
}

bool is_standard_operator(std::string_view type) noexcept {
  const OperatorFacts* const facts = find_operator(type, 1);
  return facts != nullptr && facts->standard;
}

}  // namespace corelane::onnx
