/// Reading of one setting of a backend. All fail with kInvalidArgument, which names the key, what
/// was given and what is allowed.
#pragma once

#include <cstdint>
#include <string_view>

#include "corelane/base/status.h"
#include "corelane/scheduler/backend.h"
#include "corelane/scheduler/statistics.h"

namespace corelane::scheduler {

/// The text of `key`; null where it is not set.
const std::string* text_of(const Config& config, std::string_view key);

/// A whole number of `least` to `most`; `fallback` where it is not set.
Result<std::uint64_t> whole_number(const Config& config, std::string_view key,
                                   std::uint64_t fallback, std::uint64_t least, std::uint64_t most);

/// A whole number that may be negative, of `least` to `most`; `fallback` where it is not set.
Result<std::int32_t> level(const Config& config, std::string_view key, std::int32_t fallback,
                           std::int32_t least, std::int32_t most);

/// A number of `least` to `most`, with a fraction; `fallback` where it is not set.
Result<double> real_number(const Config& config, std::string_view key, double fallback,
                           double least, double most);

/// A number above 0, at most `most`; `fallback` where it is not set.
Result<double> share(const Config& config, std::string_view key, double fallback, double most);

/// "true", "1", "false" or "0".
Result<bool> flag(const Config& config, std::string_view key, bool fallback);

/// `min` (1 where it is not set) and `max` (`most` where it is not set), 1 <= min <= max.
Result<Range> min_max(const Config& config, std::uint32_t most);

/// "lo,hi" of `key`, which must be set, 1 <= lo <= hi.
Result<Range> range_pair(const Config& config, std::string_view key);

}  // namespace corelane::scheduler
