/// Environment variables that switch something on or off.
#pragma once

#include <atomic>

#include "corelane/base/api.h"

namespace corelane {

/// One variable: "1" is on, "0" is off, anything else the default. A `static constinit` object
/// where the variable is read.
class CORELANE_API EnvironmentSwitch {
 public:
  /// `name` outlives the switch.
  constexpr EnvironmentSwitch(const char* name, bool by_default) noexcept
      : name_(name), by_default_(by_default) {}

  /// What the environment says now. The first value that is neither "0", "1" nor empty is a warning
  /// in the log. Any thread, as environment().
  bool on() noexcept;

 private:
  const char* name_;
  bool by_default_;
  std::atomic<bool> told_{false};
};

}  // namespace corelane
