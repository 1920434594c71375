/// The operators that the standard itself defines.
#pragma once

#include <cstdint>
#include <string_view>

namespace corelane::onnx {

/// What holds for an operator of ONNX's own domains, from one version on.
struct OperatorFacts {
  std::string_view type;
  bool standard = false;  ///< In the standard domain, not "ai.onnx.ml" or a preview.
  std::int64_t since = 1;
  int least_inputs = 0;
  int most_inputs = 0;  ///< -1: any number.
  int least_outputs = 0;
  int most_outputs = 0;
  std::uint16_t needed = 0;  ///< Bit i: input i may not be absent; bit 15: nor those after it.

  bool needs(int input) const noexcept { return (needed >> (input < 15 ? input : 15) & 1U) != 0; }
};

/// The operator in this version of its domain, or its first version if that came later. Null for
/// types that no version of the standard has.
const OperatorFacts* find_operator(std::string_view type, std::int64_t version) noexcept;
/// True for the types of the standard domain, in any version of it.
bool is_standard_operator(std::string_view type) noexcept;

}  // namespace corelane::onnx
