// Patterns of values that users send by mistake or on purpose.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "case_file.h"

namespace node_tests {

inline constexpr std::size_t kPatterns = 12;

/// Such as "all-lowest".
std::string pattern_name(std::size_t pattern);
/// The inputs of a case, with the same types and shapes and the pattern's values.
std::vector<CaseTensor> with_values(std::vector<CaseTensor> inputs, std::size_t pattern);

}  // namespace node_tests
