#include "lanes/lane_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "base/process/cpus.h"
#include "base/process/testing/pinned.h"
#include "lanes/lane_job.h"

namespace corelane::lanes {
namespace {

using device::CoreSet;
using device::Residency;
using ::testing::HasSubstr;

/// Executables are names here: the cores never look into them.
const LanedExecutable* executable(std::uintptr_t number) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<const LanedExecutable*>(number * 64);
}
const LanedExecutable* const kA = executable(1);
const LanedExecutable* const kB = executable(2);
constexpr auto kShared = Residency::kShared;
constexpr auto kExclusive = Residency::kExclusive;

TEST(LaneCores, AnyExclusiveTakesCoresThatNobodyHas) {
  LaneCores cores(4);
  EXPECT_EQ(*cores.choose(CoreSet::any(2), kA, kExclusive, 0), 0b0011U);
  cores.hold(0b0011, kA, kExclusive);
  // Not those that it has already, nor those that others share.
  EXPECT_EQ(*cores.choose(CoreSet::any(2), kA, kExclusive, 0), 0b1100U);
  cores.hold(0b0100, kB, kShared);
  EXPECT_EQ(*cores.choose(CoreSet::platform(), kA, kExclusive, 0), 0b1000U);
  const auto refused = cores.choose(CoreSet::any(2), kA, kExclusive, 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kOutOfCores);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("1 of 4 cores are free ('3'); held exclusively: '0,1', shared by other "
                        "executables: '2'"));
  // Its own shared residence does not prevent it.
  EXPECT_TRUE(cores.choose(CoreSet::of({2}), kB, kExclusive, 0).has_value());
  EXPECT_FALSE(cores.choose(CoreSet::of({0}), kA, kExclusive, 0).has_value());
}

TEST(LaneCores, AnySharedTakesTheCoresWithTheFewest) {
  LaneCores cores(3);
  cores.hold(*cores.choose(CoreSet::any(), kA, kShared, 0), kA, kShared);
  cores.hold(*cores.choose(CoreSet::any(), kB, kShared, 0), kB, kShared);
  EXPECT_EQ(*cores.choose(CoreSet::any(), kA, kShared, 0), 0b100U);
  EXPECT_EQ(*cores.choose(CoreSet::platform(), kA, kShared, 0), 0b111U);
  cores.hold(0b100, kB, kExclusive);
  EXPECT_EQ(*cores.choose(CoreSet::platform(), kA, kShared, 0), 0b011U);
  EXPECT_EQ(cores.choose(CoreSet::of({2}), kA, kShared, 0).error().code(), Code::kOutOfCores);
  EXPECT_EQ(*cores.choose(CoreSet::of({2}), kB, kShared, 0), 0b100U);
}

TEST(LaneCores, CoresThatOthersHoldOutsideAreLeftOut) {
  LaneCores cores(3);
  EXPECT_EQ(*cores.choose(CoreSet::any(), kA, kExclusive, 0b001), 0b010U);
  EXPECT_EQ(*cores.choose(CoreSet::platform(), kA, kExclusive, 0b011), 0b100U);
  EXPECT_FALSE(cores.choose(CoreSet::platform(), kA, kExclusive, 0b111).has_value());
}

TEST(LaneCores, AnyOfSomeIsHeldOfThese) {
  LaneCores cores(4);
  EXPECT_EQ(*cores.choose(CoreSet::any_of(CoreSet::of({1, 3}), 2), kA, kExclusive, 0), 0b1010U);
  cores.hold(0b0010, kB, kExclusive);
  const CoreSet some = CoreSet::any_of(CoreSet::of({1, 3}));
  EXPECT_EQ(*cores.choose(some, kA, kExclusive, 0), 0b1000U);
  EXPECT_TRUE(cores.check(some, kA).ok());
  cores.hold(0b1000, kB, kExclusive);
  const auto refused = cores.choose(some, kA, kExclusive, 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("0 of 4 cores are free (none)"));
  EXPECT_EQ(cores.check(some, kA).code(), Code::kOutOfCores);
  EXPECT_TRUE(cores.check(some, kB).ok());
}

TEST(LaneCores, ExecutablesJoinAResidence) {
  LaneCores cores(2);
  const std::uint64_t one = cores.hold(0b01, kA, kExclusive);
  EXPECT_FALSE(cores.resides(one, kB));
  ASSERT_TRUE(cores.join(one, kB).ok() && cores.join(one, kB).ok());
  EXPECT_TRUE(cores.resides(one, kA) && cores.resides(one, kB));
  EXPECT_EQ(cores.residents().front().executables.size(), 2U);
  EXPECT_EQ(cores.own_bits(kB), 0b01U);
  EXPECT_EQ(cores.allowed_bits(executable(3)), 0b10U);
  EXPECT_FALSE(cores.choose(CoreSet::of({0}), kB, kExclusive, 0).has_value()) << "held once";
  cores.forget(kB);
  EXPECT_EQ(cores.allowed_bits(kB), 0b10U);
  cores.release(one);
  EXPECT_EQ(cores.join(one, kB).code(), Code::kDeviceLost);
  EXPECT_EQ(cores.allowed_bits(kB), 0b11U);
}

TEST(LaneCores, ASharedResidenceOfSeveralKeepsExclusiveOnesOff) {
  LaneCores cores(2);
  const std::uint64_t shared = cores.hold(0b01, kA, kShared);
  EXPECT_TRUE(cores.choose(CoreSet::of({0}), kA, kExclusive, 0).has_value());
  ASSERT_TRUE(cores.join(shared, kB).ok());
  EXPECT_FALSE(cores.choose(CoreSet::of({0}), kA, kExclusive, 0).has_value());
  cores.forget(kB);
  cores.hold(0b01, kA, kExclusive);
  EXPECT_EQ(cores.join(shared, kB).code(), Code::kOutOfCores);
}

TEST(LaneCores, JobsRunOnOwnCoresAndOnThoseWithoutAnOwner) {
  LaneCores cores(3);
  const std::uint64_t one = cores.hold(0b001, kA, kExclusive);
  cores.hold(0b010, kA, kShared);
  EXPECT_EQ(cores.allowed_bits(kA), 0b111U);
  EXPECT_EQ(cores.allowed_bits(kB), 0b110U);
  EXPECT_TRUE(cores.check(CoreSet::any(2), kB).ok());
  EXPECT_EQ(cores.check(CoreSet::any(3), kB).code(), Code::kOutOfCores);
  const auto states = cores.states_within(cores.allowed_bits(kA));
  EXPECT_TRUE(states[0].owned && states[0].usable && !states[1].owned && states[1].usable);
  const auto others = cores.states_within(cores.allowed_bits(kB));
  EXPECT_TRUE(!others[0].owned && !others[0].usable && !others[1].owned && others[1].usable);
  cores.release(one);
  EXPECT_EQ(cores.owned_bits(), 0U);
  EXPECT_EQ(cores.allowed_bits(kB), 0b111U);
  EXPECT_TRUE(cores.check(CoreSet::any(3), kB).ok());
}

/// Two lanes shared a CPU for 4 to 10 ms after one was woken, while another was idle (issue 17).
TEST(LaneCores, AThreadLeavesTheCpusOfOthersWhereOneOfThemIsItsOwn) {
  if (!RunningCpu::of_this_thread().number()) GTEST_SKIP() << "CPUs are not told";
  std::thread([] {
    corelane::testing::pin_to({affine_cpus().front()});
    const RunningCpu here = RunningCpu::of_this_thread();
    LaneCores cores(3);
    LaneOccupant one, other;
    one.core_bits = 0b001;
    other.core_bits = 0b110;
    cores.occupy(one, {});
    one.cpu = here;
    EXPECT_TRUE(cores.cpus_to_leave(one).none()) << "it is the only one";
    cores.occupy(other, {});
    EXPECT_TRUE(cores.cpus_to_leave(one).none()) << "the other one runs on no CPU";
    other.cpu = here;
    EXPECT_EQ(cores.cpus_to_leave(one).count(), 1U);
    EXPECT_EQ(cores.cpus_to_leave(other).count(), 1U);
    cores.free(other, {});
    EXPECT_TRUE(cores.cpus_to_leave(one).none()) << "it has left its cores";
  }).join();
}

TEST(LaneCores, AThreadOnACpuOfItsOwnStays) {
  const std::vector<std::size_t> cpus = affine_cpus();
  if (!RunningCpu::of_this_thread().number() || cpus.size() < 2)
    GTEST_SKIP() << "CPUs are not told, or one";
  LaneCores cores(2);
  LaneOccupant one, other;
  one.core_bits = 0b01;
  other.core_bits = 0b10;
  cores.occupy(one, {});
  cores.occupy(other, {});
  std::latch runs(1), seen(1);
  std::thread second([&] {
    corelane::testing::pin_to({cpus[1]});
    other.cpu = RunningCpu::of_this_thread();
    runs.count_down();
    seen.wait();
  });
  runs.wait();
  std::thread([&] {
    corelane::testing::pin_to({cpus[0]});
    one.cpu = RunningCpu::of_this_thread();
    EXPECT_TRUE(cores.cpus_to_leave(one).none());
    corelane::testing::pin_to({cpus[1]});
    EXPECT_TRUE(cores.cpus_to_leave(one).test(cpus[1]));
  }).join();
  seen.count_down();
  second.join();
}

}  // namespace
}  // namespace corelane::lanes
