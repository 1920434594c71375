#include "dispatch/admission.h"

#include <gtest/gtest.h>

#include <limits>

namespace corelane::dispatch {
namespace {

using std::chrono::milliseconds;

TimePoint at(int ms) { return TimePoint{} + milliseconds(ms); }

AdmissionView view() {
  AdmissionView v;
  v.max_waiting = 3;
  v.max_pending = 8;
  v.deadline = at(50);
  return v;
}

TEST(Admission, RoomIsEntered) { EXPECT_EQ(admit(view(), at(0)).what, Admission::kEnter); }

TEST(Admission, AFullQueueWaitsUntilTheDeadlineAndNoLonger) {
  AdmissionView v = view();
  v.waiting = 3;
  EXPECT_EQ(admit(v, at(0)).what, Admission::kWaitForRoom);
  EXPECT_EQ(admit(v, at(0)).wait_until, at(50));
  EXPECT_EQ(admit(v, at(49)).what, Admission::kWaitForRoom);
  EXPECT_EQ(admit(v, at(50)).what, Admission::kQueueFull);
  v.waiting = 2;
  EXPECT_EQ(admit(v, at(50)).what, Admission::kEnter);
}

TEST(Admission, PendingCallbacksHoldUpAllButTheirOwnThread) {
  AdmissionView v = view();
  v.pending = 8;
  EXPECT_EQ(admit(v, at(0)).what, Admission::kWaitForRoom);
  EXPECT_EQ(admit(v, at(50)).what, Admission::kCallbacksPending);
  v.in_callback = true;
  EXPECT_EQ(admit(v, at(0)).what, Admission::kEnter);
}

TEST(Admission, ThePaceIsWaitedForButNotBeyondTheDeadline) {
  AdmissionView v = view();
  v.pace = at(20);
  EXPECT_EQ(admit(v, at(0)).what, Admission::kWaitForPace);
  EXPECT_EQ(admit(v, at(0)).wait_until, at(20));
  EXPECT_EQ(admit(v, at(20)).what, Admission::kEnter);
  v.pace = at(80);
  EXPECT_EQ(admit(v, at(0)).wait_until, at(50));
  EXPECT_EQ(admit(v, at(50)).what, Admission::kPaced);
}

struct LineCase {
  const char* what;
  std::uint64_t waiting, bytes, in_flight;  ///< Already there.
  std::uint64_t items, new_bytes;           ///< Of the newcomer.
  LineLimit limit;                          ///< kNone: it enters.
  std::uint64_t drop_items, drop_bytes;     ///< With FullPolicy::kDropOldest.
};

/// Limits: 10 items, 1000 bytes, 16 items in flight.
AdmissionView line(const LineCase& c, FullPolicy policy) {
  AdmissionView v;
  v.max_waiting = 10;
  v.max_bytes = 1000;
  v.max_in_flight = 16;
  v.waiting = c.waiting;
  v.waiting_bytes = c.bytes;
  v.in_flight = c.in_flight;
  v.items = c.items;
  v.bytes = c.new_bytes;
  v.policy = policy;
  v.deadline = at(50);
  return v;
}

constexpr LineCase kLines[] = {
    {"an empty line", 0, 0, 0, 1, 100, LineLimit::kNone, 0, 0},
    {"all of an empty line", 0, 0, 0, 10, 1000, LineLimit::kNone, 0, 0},
    {"the last item", 9, 0, 9, 1, 0, LineLimit::kNone, 0, 0},
    {"one item too many", 10, 0, 10, 1, 0, LineLimit::kItems, 1, 0},
    {"four items where three fit", 7, 0, 7, 4, 0, LineLimit::kItems, 1, 0},
    {"the last byte", 1, 900, 1, 1, 100, LineLimit::kNone, 0, 0},
    {"one byte too many", 1, 900, 1, 1, 101, LineLimit::kBytes, 0, 1},
    {"items and bytes", 10, 1000, 10, 2, 300, LineLimit::kItems, 2, 300},
    {"the last in flight", 5, 0, 15, 1, 0, LineLimit::kNone, 0, 0},
    {"one too many in flight", 5, 0, 16, 1, 0, LineLimit::kInFlight, 1, 0},
    {"items and in flight: the larger part goes", 9, 0, 16, 3, 0, LineLimit::kItems, 3, 0},
    {"bytes and in flight", 5, 950, 15, 2, 60, LineLimit::kBytes, 1, 10},
    {"a limit that was lowered", 14, 1500, 14, 1, 100, LineLimit::kItems, 5, 600},
};

TEST(Admission, AFullLineBlocksUntilTheDeadline) {
  for (const LineCase& c : kLines) {
    const AdmissionView v = line(c, FullPolicy::kBlock);
    const bool full = c.limit != LineLimit::kNone;
    EXPECT_EQ(admit(v, at(0)).what, full ? Admission::kWaitForRoom : Admission::kEnter) << c.what;
    EXPECT_EQ(admit(v, at(0)).wait_until, full ? at(50) : at(0)) << c.what;
    EXPECT_EQ(admit(v, at(50)).what, full ? Admission::kQueueFull : Admission::kEnter) << c.what;
    EXPECT_EQ(admit(v, at(50)).limit, c.limit) << c.what;
  }
}

TEST(Admission, AFullLineRejectsAtOnce) {
  for (const LineCase& c : kLines) {
    const AdmissionAnswer answer = admit(line(c, FullPolicy::kReject), at(0));
    EXPECT_EQ(answer.what, c.limit == LineLimit::kNone ? Admission::kEnter : Admission::kQueueFull)
        << c.what;
    EXPECT_EQ(answer.limit, c.limit) << c.what;
  }
}

TEST(Admission, AFullLineDropsWhatTheNewcomerNeeds) {
  for (const LineCase& c : kLines) {
    AdmissionView v = line(c, FullPolicy::kDropOldest);
    const AdmissionAnswer answer = admit(v, at(0));
    EXPECT_EQ(answer.what, c.limit == LineLimit::kNone ? Admission::kEnter : Admission::kDropOldest)
        << c.what;
    EXPECT_EQ(answer.limit, c.limit) << c.what;
    EXPECT_EQ(answer.drop_items, c.drop_items) << c.what;
    EXPECT_EQ(answer.drop_bytes, c.drop_bytes) << c.what;
    EXPECT_FALSE(is_refusal(answer.what));
    // When so much has gone, it enters.
    v.waiting -= answer.drop_items;
    v.in_flight -= answer.drop_items;
    v.waiting_bytes -= answer.drop_bytes;
    EXPECT_EQ(admit(v, at(0)).what, Admission::kEnter) << c.what;
  }
}

TEST(Admission, WhatRunsCannotBeDropped) {
  const AdmissionView v =
      line({"", 1, 0, 16, 2, 0, LineLimit::kInFlight, 0, 0}, FullPolicy::kDropOldest);
  const AdmissionAnswer answer = admit(v, at(0));
  EXPECT_EQ(answer.what, Admission::kQueueFull);
  EXPECT_EQ(answer.limit, LineLimit::kInFlight);
  EXPECT_TRUE(is_refusal(answer.what));
}

TEST(Admission, WhatAnEmptyLineWouldNotHoldIsRefusedAtOnce) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr LineCase kLarge[] = {
      {"items", 0, 0, 0, 11, 0, LineLimit::kItems, 0, 0},
      {"bytes", 0, 0, 0, 1, 1001, LineLimit::kBytes, 0, 0},
      {"all items", 14, 0, 14, kMost, kMost, LineLimit::kItems, 0, 0},
      {"all bytes", 1, kMost, 1, 1, kMost, LineLimit::kBytes, 0, 0},
  };
  for (const FullPolicy policy :
       {FullPolicy::kBlock, FullPolicy::kReject, FullPolicy::kDropOldest}) {
    for (const LineCase& c : kLarge) {
      const AdmissionAnswer answer = admit(line(c, policy), at(0));
      EXPECT_EQ(answer.what, Admission::kTooLarge) << c.what;
      EXPECT_EQ(answer.limit, c.limit) << c.what;
      EXPECT_TRUE(is_refusal(answer.what));
    }
    AdmissionView v = line({"", 0, 0, 0, 17, 0, LineLimit::kInFlight, 0, 0}, policy);
    v.max_waiting = 0;
    EXPECT_EQ(admit(v, at(0)).what, Admission::kTooLarge);
    EXPECT_EQ(admit(v, at(0)).limit, LineLimit::kInFlight);
  }
}

TEST(Admission, LimitsOfZeroAreNone) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const FullPolicy policy :
       {FullPolicy::kBlock, FullPolicy::kReject, FullPolicy::kDropOldest}) {
    AdmissionView v;
    v.policy = policy;
    v.waiting = v.waiting_bytes = v.in_flight = v.items = v.bytes = v.pending = kMost;
    EXPECT_EQ(admit(v, at(0)).what, Admission::kEnter);
  }
}

TEST(Admission, NothingIsDroppedForANewcomerThatWaitsForAnotherReason) {
  AdmissionView v = line(kLines[3], FullPolicy::kDropOldest);
  v.pace = at(20);
  EXPECT_EQ(admit(v, at(0)).what, Admission::kWaitForPace);
  EXPECT_EQ(admit(v, at(20)).what, Admission::kDropOldest);
  v.pace = at(80);
  EXPECT_EQ(admit(v, at(50)).what, Admission::kPaced);
  v.pending = v.max_pending = 8;
  EXPECT_EQ(admit(v, at(0)).what, Admission::kWaitForRoom);
  EXPECT_EQ(admit(v, at(50)).what, Admission::kCallbacksPending);
  v.in_callback = true;
  EXPECT_EQ(admit(v, at(80)).what, Admission::kDropOldest);
}

}  // namespace
}  // namespace corelane::dispatch
