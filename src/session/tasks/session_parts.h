/// What a session is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "corelane/session/session.h"

namespace corelane::session {

struct SessionParts {
  SessionOptions options;
  std::vector<Program> programs;  ///< One, or one for each context.
  std::vector<Context> contexts;
  std::vector<std::int32_t> cores;  ///< Of each context; -1: `any_cores`.
  device::CoreSet any_cores;
  std::size_t duplicated = 0;
  std::vector<std::string> warnings;
};

}  // namespace corelane::session
