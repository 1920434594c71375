/// Whether a submission may enter, must wait, or is too late: a pure function.
#pragma once

#include <algorithm>
#include <cstdint>

#include "corelane/base/clock.h"

namespace corelane::dispatch {

/// What a submission sees. `pending` are tasks that are done and not called back; a submission from
/// inside a callback is not held up by them, since they wait for that callback.
struct AdmissionView {
  std::int64_t waiting = 0;
  std::int64_t max_waiting = 0;
  std::int64_t pending = 0;
  std::int64_t max_pending = 0;
  bool in_callback = false;
  TimePoint pace{};  ///< Not before; `now` or earlier where nothing is paced.
  TimePoint deadline = kNever;
};

enum class Admission : std::uint8_t {
  kEnter,
  kWaitForRoom,
  kWaitForPace,
  kQueueFull,
  kPaced,
  kCallbacksPending
};

/// kEnter; kWait...: ask again at `wait_until`, or earlier when something changed; the others: the
/// deadline has come, and why it could not enter before.
struct AdmissionAnswer {
  Admission what = Admission::kEnter;
  TimePoint wait_until{};
};

/// Whether the deadline came before the submission could enter.
inline bool is_refusal(Admission what) noexcept {
  return what == Admission::kQueueFull || what == Admission::kPaced ||
         what == Admission::kCallbacksPending;
}

inline AdmissionAnswer admit(const AdmissionView& view, TimePoint now) noexcept {
  const bool full = view.waiting >= view.max_waiting;
  const bool delayed = !view.in_callback && view.pending >= view.max_pending;
  const bool early = view.pace > now;
  if (!full && !delayed && !early) return {Admission::kEnter, now};
  if (now >= view.deadline) {
    return {
        full ? Admission::kQueueFull : (delayed ? Admission::kCallbacksPending : Admission::kPaced),
        now};
  }
  if (full || delayed) return {Admission::kWaitForRoom, view.deadline};
  return {Admission::kWaitForPace, std::min(view.pace, view.deadline)};
}

}  // namespace corelane::dispatch
