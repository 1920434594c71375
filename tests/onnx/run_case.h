// One case through import, load and run.
#pragma once

#include <string>

#include "case_file.h"

namespace node_tests {

enum class Outcome : char {
  kPass = 'p',
  kRefused = 'r',  ///< kUnsupportedModel: a message that names the node or the tensor.
  kWrong = 'w',
  kError = 'e',  ///< Any other failure, a crash, a hang.
};

struct Result {
  Outcome outcome = Outcome::kError;
  std::string text;
  std::string warnings;  ///< Of the import.
  std::string verdict;   ///< Why an engine would compute the network wrongly; mostly empty.
};

/// `random`: the values are drawn, so types and shapes alone are compared.
Result run_case(const Case& c, bool random);

}  // namespace node_tests
