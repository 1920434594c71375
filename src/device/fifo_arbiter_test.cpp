#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "corelane/device/arbiter.h"

namespace corelane::device {
namespace {

WaitingJob waiting(CoreSet cores, std::int32_t priority = 0) {
  WaitingJob job;
  job.cores = cores;
  job.priority = priority;
  return job;
}

std::vector<CoreState> cores_of(std::size_t count, std::uint64_t busy, std::uint64_t unusable = 0) {
  std::vector<CoreState> cores(count);
  for (std::size_t i = 0; i < count; ++i)
    cores[i] = {((unusable >> i) & 1U) == 0, ((busy >> i) & 1U) != 0, {}};
  return cores;
}

std::optional<Grant> pick(const std::vector<WaitingJob>& jobs,
                          const std::vector<CoreState>& cores) {
  return fifo_arbiter()->pick(jobs, cores, TimePoint{});
}

TEST(FifoArbiter, FirstComeFirstServedWithinAPriority) {
  const auto grant =
      pick({waiting({}), waiting({}), waiting({}, 3), waiting({}, 3)}, cores_of(3, 0));
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->job, 2U);
  EXPECT_EQ(pick({waiting({}), waiting({})}, cores_of(3, 0))->job, 0U);
}

TEST(FifoArbiter, NothingWithoutAnIdleUsableCore) {
  EXPECT_FALSE(pick({waiting({})}, cores_of(2, 3)).has_value());
  EXPECT_FALSE(pick({waiting({})}, cores_of(2, 1, 2)).has_value());
  EXPECT_FALSE(pick({}, cores_of(2, 0)).has_value());
}

TEST(FifoArbiter, FixedMaskWaitsForItsOwnCoresAndReservesThem) {
  const std::vector<WaitingJob> jobs = {waiting(CoreSet::of({0, 1})), waiting(CoreSet::of({1})),
                                        waiting(CoreSet::of({2}))};
  // Core 0 is busy: core 1 is kept for the pair, so only the third job may pass.
  const auto grant = pick(jobs, cores_of(3, 1));
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->job, 2U);
  EXPECT_EQ(grant->core_bits, 4U);
  EXPECT_FALSE(pick({jobs[0], jobs[1]}, cores_of(3, 1)).has_value());
}

TEST(FifoArbiter, AnyOfSomeTakesIdleOnesOfTheseAndReservesNoOthers) {
  const WaitingJob one = waiting(CoreSet::any_of(CoreSet::of({1, 2})));
  EXPECT_EQ(pick({one}, cores_of(4, 0b0010))->core_bits, 0b0100U);
  EXPECT_FALSE(pick({one}, cores_of(4, 0b0110)).has_value());
  // Core 2 is kept for both; a job that needs another core passes.
  const std::vector<WaitingJob> jobs = {waiting(CoreSet::any_of(CoreSet::of({1, 2}), 2)),
                                        waiting(CoreSet::of({2})), waiting(CoreSet::any())};
  const auto grant = pick(jobs, cores_of(4, 0b0010));
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->job, 2U);
  EXPECT_EQ(grant->core_bits & 0b0110U, 0U);
  EXPECT_EQ(pick(jobs, cores_of(4, 0))->core_bits, 0b0110U);
  auto owned = cores_of(4, 0);
  owned[2].owned = true;
  EXPECT_EQ(pick({one}, owned)->core_bits, 0b0100U);
}

TEST(FifoArbiter, WideAnyJobIsNotStarvedByNarrowOnes) {
  const std::vector<WaitingJob> jobs = {waiting(CoreSet::any(3)), waiting({}), waiting({})};
  EXPECT_FALSE(pick(jobs, cores_of(3, 2)).has_value());
  const auto grant = pick(jobs, cores_of(3, 0));
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->core_bits, 7U);
}

TEST(FifoArbiter, AnyLeavesTheCoresThatOthersNameFree) {
  const auto grant = pick({waiting({}), waiting(CoreSet::of({0}))}, cores_of(2, 0));
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->job, 0U);
  EXPECT_EQ(grant->core_bits, 2U);
}

TEST(FifoArbiter, PlatformTakesAllUsableCoresTogether) {
  const std::vector<WaitingJob> jobs = {waiting(CoreSet::platform()), waiting({})};
  EXPECT_EQ(pick(jobs, cores_of(3, 0))->core_bits, 7U);
  EXPECT_EQ(pick(jobs, cores_of(3, 0, 2))->core_bits, 5U);
  EXPECT_FALSE(pick(jobs, cores_of(3, 1)).has_value()) << "the free ones are kept for it";
}

/// Random queues and cores: each grant is legal, repeatable, and no job that comes first in order
/// and could start is passed over.
TEST(FifoArbiter, GrantsAreLegalPureAndNeverPassOverTheFirst) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    const std::size_t count = 1 + random() % 6;
    const std::uint64_t all = CoreSet::first(count).bits();
    const auto cores = cores_of(count, random() & all, random() % 4 == 0 ? random() & all : 0);
    std::vector<WaitingJob> jobs;
    for (std::size_t n = random() % 5; n > 0; --n) {
      const CoreSet set = random() % 2 == 0 ? CoreSet::any(1 + random() % count)
                                            : CoreSet::mask(1 + random() % all);
      jobs.push_back(waiting(set, static_cast<std::int32_t>(random() % 3)));
    }
    std::uint64_t free = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (cores[i].usable && !cores[i].busy) free |= std::uint64_t{1} << i;
    const auto grant = pick(jobs, cores);
    const auto again = pick(jobs, cores);
    ASSERT_EQ(grant.has_value(), again.has_value());
    std::size_t first = jobs.size();
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (first == jobs.size() || jobs[i].priority > jobs[first].priority) first = i;
    const bool first_fits =
        first < jobs.size() &&
        (jobs[first].cores.is_mask()
             ? (jobs[first].cores.bits() & ~free) == 0
             : static_cast<std::size_t>(std::popcount(free)) >= jobs[first].cores.count());
    if (first_fits) {
      ASSERT_TRUE(grant.has_value());
      ASSERT_EQ(grant->job, first);
    }
    if (!grant) continue;
    ASSERT_EQ(grant->core_bits, again->core_bits);
    ASSERT_EQ(grant->core_bits & ~free, 0U);
    const CoreSet& asked = jobs[grant->job].cores;
    const auto given = static_cast<std::size_t>(std::popcount(grant->core_bits));
    ASSERT_TRUE(asked.is_mask() ? grant->core_bits == asked.bits() : given == asked.count());
  }
}

}  // namespace
}  // namespace corelane::device
