/// What stands between the stages of `S[a,(filter)b]`: it says for each request whether the next
/// stage runs.
#pragma once

#include <cstdint>
#include <string_view>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/scheduler/backend.h"
#include "corelane/scheduler/request.h"

namespace corelane::scheduler {

/// What a filter says of one request.
enum class FilterAction : std::uint8_t {
  kRun,           ///< The stage runs.
  kSkip,          ///< This stage does not run; the next one has a filter of its own.
  kBreak,         ///< No more stages for this request: it has what it has by now.
  kSerialSkip,    ///< As kBreak within `S`.
  kSubGraphSkip,  ///< As kBreak within `S`.
  kError,         ///< The whole call fails.
};

/// "Run", "Skip", ...: also the names of the filters that always say so.
CORELANE_API std::string_view action_name(FilterAction action) noexcept;

/// One filter of one stage of one instance. Both functions are called in the instance's thread.
class CORELANE_API Filter {
 public:
  virtual ~Filter() = default;
  /// Reads the settings of its stage. A failure ends the whole node.
  virtual Status init(const Config& /*config*/, const SharedDict& /*shared*/) { return {}; }
  /// Decides for `request`, and may change its values. Request::fail() or an exception fails this
  /// request alone.
  virtual FilterAction apply(Request& request) = 0;
};

}  // namespace corelane::scheduler
