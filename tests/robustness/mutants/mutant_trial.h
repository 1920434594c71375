/// What becomes of one damaged file when it is loaded and run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "corelane/base/bytes.h"

namespace corelane::robustness {

struct Trial {
  bool loaded = false;
  std::string engine;   ///< That computes it.
  std::size_t ran = 0;  ///< Runs that computed.
  std::size_t load_peak =
      0;                 ///< Bytes that the process took more than before, at most, to load it.
  std::size_t peak = 0;  ///< The same to load and to run it.
  std::string text;      ///< Of the first failure.
};

/// Loads it as an application does, on an engine that `number` decides, and runs it three times
/// with values that nobody expects. Loads and runs have the limits that a careful host gives them.
Trial try_file(ByteSpan file, std::uint64_t number);

}  // namespace corelane::robustness
