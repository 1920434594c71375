#include "scheduler/plan/arrivals.h"

#include <gtest/gtest.h>

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;

TimePoint at(int ms) { return TimePoint{} + milliseconds(ms); }

TEST(Arrivals, OneArrivalSaysNothing) {
  Arrivals arrivals;
  EXPECT_EQ(arrivals.gap(at(0)), Duration::max());
  arrivals.came(at(5));
  EXPECT_EQ(arrivals.gap(at(9)), Duration::max());
  arrivals.came(at(8));
  EXPECT_EQ(arrivals.gap(at(8)), milliseconds(3));
}

TEST(Arrivals, AnEvenRateIsKeptAndSilenceLengthensIt) {
  Arrivals arrivals;
  for (int i = 0; i < 50; ++i) arrivals.came(at(4 * i));
  EXPECT_EQ(arrivals.gap(at(196)), milliseconds(4));
  EXPECT_EQ(arrivals.gap(at(200)), milliseconds(4));
  EXPECT_EQ(arrivals.gap(at(296)), milliseconds(100));
}

TEST(Arrivals, AChangeIsFollowedWithinTenArrivals) {
  Arrivals arrivals;
  int now = 0;
  for (int i = 0; i < 20; ++i) arrivals.came(at(now += 100));
  for (int i = 0; i < 10; ++i) arrivals.came(at(now += 10));
  EXPECT_LT(arrivals.gap(at(now)), milliseconds(16));
  for (int i = 0; i < 10; ++i) arrivals.came(at(now += 100));
  EXPECT_GT(arrivals.gap(at(now)), milliseconds(94));
}

TEST(Arrivals, ATimeThatGoesBackCountsAsNoTime) {
  Arrivals arrivals;
  arrivals.came(at(10));
  arrivals.came(at(4));
  EXPECT_EQ(arrivals.gap(at(4)), Duration{0});
}

WaitView view(std::uint32_t waiting, int gap_ms) {
  const auto s = [](std::uint32_t n) { return milliseconds(4) + n * milliseconds(1); };
  return {waiting, milliseconds(gap_ms), s(waiting), s(waiting + 1), s(1)};
}

TEST(PaysToWait, SumsTheTimesOfBothWays) {
  // S(n) = 4 + n ms. One waits, the next comes in g: 2 S(2) + g = 12 + g against 2 S(1) + S(1) - g
  // = 15 - g, so that waiting pays for g < 1.5.
  EXPECT_TRUE(pays_to_wait(view(1, 1)));
  EXPECT_FALSE(pays_to_wait(view(1, 2)));
  // Three wait: 4 S(4) + 3 g = 32 + 3 g against 3 S(3) + S(3) - g + S(1) = 33 - g.
  EXPECT_TRUE(pays_to_wait(view(3, 0)));
  EXPECT_FALSE(pays_to_wait(view(3, 1)));
  // Four: 5 S(5) + 4 g = 45 + 4 g against 5 S(4) - g + S(1) = 45 - g: a tie does not wait.
  EXPECT_FALSE(pays_to_wait(view(4, 0)));
}

TEST(PaysToWait, NeverForANewcomerThatComesAfterTheCallHasEnded) {
  for (std::uint32_t n = 1; n < 20; ++n)
    for (int gap = 4 + static_cast<int>(n); gap < 100; ++gap)
      EXPECT_FALSE(pays_to_wait(view(n, gap))) << n << " " << gap;
}

TEST(PaysToWait, NeverWithoutItemsOrArrivalsOrTimes) {
  EXPECT_FALSE(pays_to_wait(view(0, 0)));
  WaitView v = view(1, 0);
  v.gap = Duration::max();
  EXPECT_FALSE(pays_to_wait(v));
  EXPECT_FALSE(pays_to_wait({1, milliseconds(0), Duration{0}, Duration{0}, Duration{0}}));
}

}  // namespace
}  // namespace corelane::scheduler
