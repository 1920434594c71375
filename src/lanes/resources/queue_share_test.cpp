#include "lanes/resources/queue_share.h"

#include <gtest/gtest.h>

namespace corelane::lanes {
namespace {

using std::chrono::milliseconds;

TimePoint ten_seconds_and(int ms) {
  return TimePoint{} + std::chrono::seconds(10) + milliseconds(ms);
}

TEST(QueueShare, WhoWasIdleSavesNothingUp) {
  QueueShare share(2, 0, milliseconds(100), 3);
  share.charge(milliseconds(10), ten_seconds_and(0));
  share.correct(milliseconds(-4));
  EXPECT_EQ(share.served(), milliseconds(6));
  EXPECT_EQ(share.level(), 3e6);
  share.join(50e6);
  EXPECT_EQ(share.served(), milliseconds(100));
  share.join(20e6);
  EXPECT_EQ(share.served(), milliseconds(100));
  EXPECT_FALSE(share.capped());
  EXPECT_EQ(share.allowed_at(), TimePoint{});
}

TEST(QueueShare, CapPaysForWhatWasUsed) {
  // A quarter of two cores: half a core.
  QueueShare share(1, 0.25, milliseconds(100), 2);
  EXPECT_LE(share.allowed_at(), ten_seconds_and(0));
  share.charge(milliseconds(50), ten_seconds_and(0));
  EXPECT_EQ(share.allowed_at(), ten_seconds_and(0));
  share.charge(milliseconds(10), ten_seconds_and(0));
  EXPECT_EQ(share.allowed_at(), ten_seconds_and(20));
  share.correct(milliseconds(-5));
  EXPECT_EQ(share.allowed_at(), ten_seconds_and(10));
  // Unused time of the window is not lost, that before it is.
  share.charge(milliseconds(50), ten_seconds_and(1000));
  EXPECT_EQ(share.allowed_at(), ten_seconds_and(1000));
}

}  // namespace
}  // namespace corelane::lanes
