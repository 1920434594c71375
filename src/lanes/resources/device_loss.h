/// Whether a device is lost, and which of its executables were prepared before.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "corelane/base/status.h"

namespace corelane::lanes {

/// What was prepared between two losses has the same number.
using Generation = std::atomic<std::uint64_t>;

/// Knows no jobs and no lock. The generation of now can be read by any thread.
class DeviceLoss {
 public:
  bool lost() const noexcept { return lost_; }
  void lose(std::string reason) {
    lost_ = true;
    reason_ = std::move(reason);
    current_->fetch_add(1);
  }
  void back() noexcept { lost_ = false; }

  /// True for what may run now.
  bool is_current(std::uint64_t generation) const noexcept { return generation == *current_; }
  /// kDeviceLost, saying what to do, unless is_current().
  Status check(std::uint64_t generation) const {
    if (is_current(generation)) return {};
    return error(Code::kDeviceLost,
                 "the executable was prepared before the device was lost ({}); {}", reason_,
                 lost_ ? "prepare again when it is back" : "prepare again");
  }
  /// The generation of what is prepared now; kDeviceLost while the device is lost.
  Result<std::uint64_t> generation() const {
    if (!lost_) return current_->load();
    return error(Code::kDeviceLost, "the device is lost ({}); try again when it is back", reason_);
  }
  const std::shared_ptr<Generation>& current() const noexcept { return current_; }

 private:
  bool lost_ = false;
  std::string reason_;  ///< Of the last loss.
  const std::shared_ptr<Generation> current_ = std::make_shared<Generation>(0);
};

}  // namespace corelane::lanes
