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
  std::string engine;    ///< What computed it; empty where nothing did.
};

/// `random`: the values are drawn, so types and shapes alone are compared. `engine`: of the device,
/// which refuses what that one does not compute rightly; empty: the device chooses.
Result run_case(const Case& c, bool random, const std::string& engine);

}  // namespace node_tests
