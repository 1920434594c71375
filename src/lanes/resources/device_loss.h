/// Whether a device is lost, and which of its executables were prepared before.
#pragma once

#include <cstdint>

#include "corelane/base/status.h"

namespace corelane::lanes {

/// A value that knows no jobs and no lock. A generation is what was prepared between two losses.
class DeviceLoss {
 public:
  bool lost() const noexcept { return lost_; }
  void lose() noexcept {
    lost_ = true;
    ++generation_;
  }
  void back() noexcept { lost_ = false; }

  /// True for what may run now.
  bool is_current(std::uint64_t generation) const noexcept { return generation == generation_; }
  /// kDeviceLost, saying what to do, unless is_current().
  Status check(std::uint64_t generation) const {
    if (is_current(generation)) return {};
    return error(Code::kDeviceLost, "the executable was prepared before the device was lost; {}",
                 lost_ ? "prepare again when it is back" : "prepare again");
  }
  /// Of what is prepared now; kDeviceLost while the device is lost.
  Result<std::uint64_t> generation() const {
    if (!lost_) return generation_;
    return error(Code::kDeviceLost, "the device is lost; wait until it is back (EventKind::kBack)");
  }

 private:
  bool lost_ = false;
  std::uint64_t generation_ = 0;
};

}  // namespace corelane::lanes
