/// Whether a submission may enter a line, must wait, makes room, or is refused: a pure function.
/// Sessions and schedulers ask the same one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "corelane/base/clock.h"

namespace corelane::dispatch {

/// What becomes of a submission that finds the line full.
enum class FullPolicy : std::uint8_t { kBlock, kReject, kDropOldest };

/// Which limit a submission met.
enum class LineLimit : std::uint8_t { kNone, kItems, kBytes, kInFlight };

/// What a submission sees. Limits of 0: none. `pending` are tasks that are done and not called
/// back; a submission from inside a callback is not held up by them, since they wait for that
/// callback.
struct AdmissionView {
  std::uint64_t waiting = 0;  ///< Items in the line.
  std::uint64_t max_waiting = 0;
  std::uint64_t waiting_bytes = 0;
  std::uint64_t max_bytes = 0;
  std::uint64_t in_flight = 0;  ///< Items that wait or run.
  std::uint64_t max_in_flight = 0;
  std::uint64_t items = 1;  ///< Of the newcomer.
  std::uint64_t bytes = 0;
  FullPolicy policy = FullPolicy::kBlock;
  std::uint64_t pending = 0;
  std::uint64_t max_pending = 0;
  bool in_callback = false;
  TimePoint pace{};  ///< Not before; `now` or earlier where nothing is paced.
  TimePoint deadline = kNever;
};

enum class Admission : std::uint8_t {
  kEnter,
  kDropOldest,
  kWaitForRoom,
  kWaitForPace,
  kQueueFull,
  kPaced,
  kCallbacksPending,
  kTooLarge
};

/// kEnter; kDropOldest: enter when the oldest of the line are gone, until the sums of `drop_items`
/// and `drop_bytes` are reached; kWait...: ask again at `wait_until`, or earlier when something
/// changed; kTooLarge: an empty line would not hold it; kQueueFull by FullPolicy::kReject, or, with
/// kDropOldest, since what runs leaves no room; else the deadline has come, and why it could not
/// enter before.
struct AdmissionAnswer {
  Admission what = Admission::kEnter;
  TimePoint wait_until{};
  LineLimit limit = LineLimit::kNone;  ///< The first one that the newcomer met.
  std::uint64_t drop_items = 0;
  std::uint64_t drop_bytes = 0;
};

/// Whether the submission ends without having entered.
inline bool is_refusal(Admission what) noexcept { return what >= Admission::kQueueFull; }

/// Whether `limit` holds the newcomer beside what is there.
inline bool holds(std::uint64_t limit, std::uint64_t there, std::uint64_t newcomer) noexcept {
  return limit == 0 || (newcomer <= limit && there <= limit - newcomer);
}

/// How much of what is there must go for a newcomer that `limit` alone would hold.
inline std::uint64_t must_go(std::uint64_t limit, std::uint64_t there,
                             std::uint64_t newcomer) noexcept {
  return holds(limit, there, newcomer) ? 0 : there - (limit - newcomer);
}

/// The first limit that does not hold the newcomer beside `items`, `bytes` and `in_flight`.
inline LineLimit limit_met(const AdmissionView& view, std::uint64_t items, std::uint64_t bytes,
                           std::uint64_t in_flight) noexcept {
  if (!holds(view.max_waiting, items, view.items)) return LineLimit::kItems;
  if (!holds(view.max_bytes, bytes, view.bytes)) return LineLimit::kBytes;
  if (!holds(view.max_in_flight, in_flight, view.items)) return LineLimit::kInFlight;
  return LineLimit::kNone;
}

/// What the policy says of a newcomer that met `limit`.
inline AdmissionAnswer answer_when_full(const AdmissionView& view, LineLimit limit,
                                        TimePoint now) noexcept {
  if (view.policy == FullPolicy::kBlock && now < view.deadline)
    return {Admission::kWaitForRoom, view.deadline, limit};
  if (view.policy != FullPolicy::kDropOldest) return {Admission::kQueueFull, now, limit};
  // Only what waits can go.
  const std::uint64_t running = view.in_flight - std::min(view.in_flight, view.waiting);
  if (!holds(view.max_in_flight, running, view.items))
    return {Admission::kQueueFull, now, LineLimit::kInFlight};
  return {Admission::kDropOldest, now, limit,
          std::max(must_go(view.max_waiting, view.waiting, view.items),
                   must_go(view.max_in_flight, view.in_flight, view.items)),
          must_go(view.max_bytes, view.waiting_bytes, view.bytes)};
}

inline AdmissionAnswer admit(const AdmissionView& view, TimePoint now) noexcept {
  const LineLimit never = limit_met(view, 0, 0, 0);
  if (never != LineLimit::kNone) return {Admission::kTooLarge, now, never};
  const LineLimit limit = limit_met(view, view.waiting, view.waiting_bytes, view.in_flight);
  const bool full = limit != LineLimit::kNone;
  const bool delayed =
      !view.in_callback && view.max_pending > 0 && view.pending >= view.max_pending;
  const bool early = view.pace > now;
  if (!full && !delayed && !early) return {Admission::kEnter, now};
  // Nothing is dropped for a newcomer that has to wait all the same.
  const bool drops = view.policy == FullPolicy::kDropOldest;
  if (full && !(drops && (delayed || early))) return answer_when_full(view, limit, now);
  if (now >= view.deadline)
    return {delayed ? Admission::kCallbacksPending : Admission::kPaced, now};
  if (delayed) return {Admission::kWaitForRoom, view.deadline};
  return {Admission::kWaitForPace, std::min(view.pace, view.deadline)};
}

}  // namespace corelane::dispatch
