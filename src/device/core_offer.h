/// Which cores a waiting job gets, when jobs are walked in the order in which an arbiter prefers
/// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "corelane/device/arbiter.h"

namespace corelane::device {

/// One decision. What a job needs but cannot have yet is reserved for it.
class CoreOffer {
 public:
  CoreOffer(std::span<const WaitingJob> waiting, std::span<const CoreState> cores);

  /// The cores for the next job in order; nullopt when it cannot start now.
  std::optional<std::uint64_t> offer(const WaitingJob& job);
  /// True when no job after this can start.
  bool exhausted() const noexcept { return free_ == 0; }

 private:
  std::uint64_t choose(std::uint64_t from, std::size_t count) const;

  std::uint64_t usable_ = 0;
  std::uint64_t free_ = 0;
  std::uint64_t owned_ = 0;
  std::array<std::uint32_t, CoreSet::kMaxCores> demand_{};  ///< Jobs that wait for just this core.
};

}  // namespace corelane::device
