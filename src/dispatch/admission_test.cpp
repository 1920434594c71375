#include "dispatch/admission.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace corelane::dispatch
