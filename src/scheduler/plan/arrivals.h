/// How often requests come, and whether it pays to wait for the next one: pure.
#pragma once

#include <cstdint>

#include "corelane/base/clock.h"

namespace corelane::scheduler {

/// A moving average of the time between arrivals that follows a change of rate within some ten
/// arrivals. Not thread-safe.
class Arrivals {
 public:
  void came(TimePoint now) noexcept;
  /// Expected time from `now` to the next arrival; Duration::max() before the second one, and
  /// growing while none comes.
  Duration gap(TimePoint now) const noexcept;

 private:
  TimePoint last_{};
  Duration average_{};
  std::uint64_t count_ = 0;
};

/// What a decision to wait is made of. Times of the only idle instance; while others are idle a
/// newcomer would start there at once, so that waiting never pays.
struct WaitView {
  std::uint32_t waiting = 0;  ///< Items in the line.
  Duration gap{};             ///< Until the next one, expected.
  Duration now_alone{};       ///< S(waiting).
  Duration with_next{};       ///< S(waiting + 1).
  Duration next_alone{};      ///< S(1).
};

/// Whether all of them together end earlier, in sum, when the call waits for the next arrival:
/// waiting:     n items end at gap + S(n + 1), and the newcomer S(n + 1) after its arrival;
/// not waiting: n items end at S(n), and the newcomer max(S(n) - gap, 0) + S(1) after its arrival.
/// False where nothing waits, or no arrival is expected.
bool pays_to_wait(const WaitView& view) noexcept;

}  // namespace corelane::scheduler
