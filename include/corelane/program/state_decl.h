/// A value that a program keeps from one run to the next.
#pragma once

#include <string>

namespace corelane {

/// The output of a run is the input of the one after it. By name.
struct StateDecl {
  std::string output;
  std::string input;
  bool operator==(const StateDecl&) const = default;
};

}  // namespace corelane
