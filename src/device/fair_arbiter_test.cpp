#include <gtest/gtest.h>

#include <vector>

#include "corelane/device/arbiter.h"

namespace corelane::device {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kNow = TimePoint{} + std::chrono::seconds(100);

WaitingJob job(std::uint64_t queue, int priority, double weight, int served_ms,
               Duration waited = {}) {
  WaitingJob made;
  made.queue = queue;
  made.priority = priority;
  made.weight = weight;
  made.served = milliseconds(served_ms);
  made.first_since = kNow - waited;
  return made;
}

/// The index of the job that is next on one idle core.
std::size_t first(const std::vector<WaitingJob>& waiting) {
  const std::vector<CoreState> cores(1);
  const auto grant = fair_arbiter()->pick(waiting, cores, kNow);
  EXPECT_TRUE(grant.has_value());
  return grant ? grant->job : waiting.size();
}

TEST(FairArbiter, TheLeastServedForItsWeightIsFirst) {
  EXPECT_EQ(first({job(1, 0, 1, 20), job(2, 0, 1, 10)}), 1U);
  EXPECT_EQ(first({job(1, 0, 1, 20), job(2, 0, 3, 59)}), 1U);
  EXPECT_EQ(first({job(1, 0, 1, 20), job(2, 0, 3, 61)}), 0U);
  EXPECT_EQ(first({job(1, 0, 1, 20), job(2, 0, 2, 40), job(1, 0, 1, 20)}), 0U);
}

TEST(FairArbiter, PriorityIsBeforeShare) {
  EXPECT_EQ(first({job(1, 0, 1, 0), job(2, 1, 1, 9000)}), 1U);
}

TEST(FairArbiter, AJobOfLowPriorityIsFirstWhenItHasWaitedForEachStep) {
  const auto after = [](Duration waited) {
    return first({job(1, 7, 1, 0), job(2, 4, 0.001, 9000, waited)});
  };
  EXPECT_EQ(after(3 * kAgeingStep - milliseconds(1)), 0U);
  EXPECT_EQ(after(3 * kAgeingStep), 1U);
}

TEST(FairArbiter, EqualsKeepTheirSharesHoweverLongTheyWait) {
  EXPECT_EQ(first({job(1, 0, 1, 20, std::chrono::hours(1)), job(2, 0, 3, 30)}), 1U);
}

TEST(FairArbiter, CoresAreReservedAsByFirstInFirstOut) {
  std::vector<WaitingJob> waiting = {job(1, 0, 1, 0), job(2, 0, 1, 10), job(3, 0, 1, 20)};
  waiting[0].cores = CoreSet::first(2);
  waiting[1].cores = CoreSet::of({0});
  waiting[2].cores = CoreSet::of({2});
  std::vector<CoreState> cores(3);
  cores[1].busy = true;
  const auto grant = fair_arbiter()->pick(waiting, cores, kNow);
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->job, 2U);
  cores[2].busy = true;
  EXPECT_FALSE(fair_arbiter()->pick(waiting, cores, kNow).has_value());
  EXPECT_FALSE(fair_arbiter()->pick({}, cores, kNow).has_value());
}

}  // namespace
}  // namespace corelane::device
