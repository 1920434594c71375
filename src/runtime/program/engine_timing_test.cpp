#include "runtime/program/engine_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "runtime/testing/fake_program.h"

namespace corelane::runtime {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(EngineTiming, EndsByPairsOrByTime) {
  EXPECT_FALSE(is_enough(20, milliseconds(20)));
  EXPECT_FALSE(is_enough(500, milliseconds(19)));
  EXPECT_TRUE(is_enough(21, milliseconds(20)));
  EXPECT_TRUE(is_enough(20'000, milliseconds(0)));
  EXPECT_FALSE(is_enough(4, milliseconds(60)));
  EXPECT_TRUE(is_enough(5, milliseconds(60)));
  EXPECT_FALSE(is_enough(2, milliseconds(400)));
  EXPECT_TRUE(is_enough(3, milliseconds(400)));
  EXPECT_FALSE(is_enough(2, milliseconds(1999)));
  EXPECT_TRUE(is_enough(1, milliseconds(2000)));
  EXPECT_FALSE(is_enough(0, milliseconds(5000)));
}

TEST(EngineTiming, TheMedianLeavesOutliersAside) {
  const std::vector<EnginePair> pairs = {{microseconds(10), microseconds(5)},
                                         {microseconds(10), microseconds(900)},
                                         {microseconds(10), microseconds(6)}};
  EXPECT_DOUBLE_EQ(median_ratio(pairs), 0.6);
  EXPECT_DOUBLE_EQ(median_ratio({}), 1);
  const std::vector<EnginePair> timeless = {{microseconds(0), microseconds(5)}};
  EXPECT_DOUBLE_EQ(median_ratio(timeless), 1);
}

TEST(EngineTiming, ShortRunsHaveToWinByMore) {
  EXPECT_EQ(worth_a_change(std::vector<EnginePair>{{microseconds(50), microseconds(40)}}), 0.6);
  EXPECT_EQ(worth_a_change(std::vector<EnginePair>{{microseconds(500), microseconds(40)}}), 0.97);
  EXPECT_EQ(worth_a_change({}), 0.97);
  // Most of them decide.
  std::vector<EnginePair> pairs = {{microseconds(190), microseconds(150)},
                                   {microseconds(250), microseconds(150)}};
  EXPECT_EQ(worth_a_change(pairs), 0.97);
  pairs.push_back(pairs[0]);
  EXPECT_EQ(worth_a_change(pairs), 0.6);
}

/// Two executables on a device, of engines a and b, and a comparison of them.
struct PairsBench {
  PairsBench(Duration first, Duration other) {
    testing::FakeConfig config = testing::one_in_one_out({1, 4});
    config.engines = {"a", "b"};
    device = std::make_shared<testing::FakeDevice>(std::move(config));
    device->run_times = {{"", first}, {"b", other}};
  }
  Comparison comparison(std::size_t at_once) const {
    device::PrepareOptions options;
    options.engine = "b";
    TimedRun run;
    run.inputs = {{Shape{1, 4}, ByteVector(4 * sizeof(float))}};
    run.cores = device::CoreSet::any(1);
    run.at_once = at_once;
    return {*device,
            "p",
            device->prepare({}, {}).value(),
            device->prepare({}, options).value(),
            std::move(run),
            [] { return false; }};
  }
  Result<TimedPairs> time(std::size_t at_once) const {
    Comparison of = comparison(at_once);
    return time_in_turns(of);
  }

  std::shared_ptr<testing::FakeDevice> device;
};

TEST(EngineTiming, AFailureAtTheSameTimeAsOthersEndsTheTrial) {
  for (const std::size_t at_once : {1U, 2U}) {
    PairsBench bench(microseconds(10), microseconds(5));
    bench.device->next_status = error(Code::kEngineFailed, "no");
    const auto timed = bench.time(at_once);
    ASSERT_FALSE(timed);
    EXPECT_EQ(timed.error().code(), Code::kEngineFailed);
  }
}

TEST(EngineTiming, RunsAtOnceAreAllSubmittedBeforeOneIsWaitedFor) {
  const auto most = [](std::size_t at_once) {
    PairsBench bench(milliseconds(5), milliseconds(5));
    EXPECT_TRUE(bench.time(at_once));
    EXPECT_EQ(*bench.device->not_awaited, 0);
    return bench.device->most_not_awaited;
  };
  EXPECT_EQ(most(1), 0) << "it is run, not submitted";
  for (const int at_once : {2, 4}) EXPECT_EQ(most(at_once), at_once);
}

TEST(EngineTiming, TheFirstRunsOfABlockDoNotCount) {
  PairsBench bench(milliseconds(5), milliseconds(5));
  int runs = 0;
  bench.device->on_submit = [&] {
    const Duration time = milliseconds(runs++ < 3 * 2 ? 9 : 5);
    bench.device->run_times_at_once = {{"", time}, {"b", time}};
  };
  Comparison of = bench.comparison(2);
  std::vector<bool> used_other;
  const auto timed = time_in_blocks(of, TimedOn::kEachCore, [&](bool other) {
    runs = 0;
    used_other.push_back(other);
    return Status();
  });
  ASSERT_TRUE(timed) << timed.error().to_string();
  EXPECT_EQ(timed->size(), 3U);
  for (const EnginePair& pair : *timed) {
    EXPECT_EQ(pair.first, milliseconds(5));
    EXPECT_EQ(pair.other, milliseconds(5));
  }
  EXPECT_THAT(used_other, ::testing::ElementsAre(true, false, true)) << "each change once";
}

TEST(EngineTiming, BlocksThatAgreeAreFewer) {
  const auto pairs_of = [](Duration first, Duration other) {
    PairsBench bench(first, other);
    Comparison of = bench.comparison(1);
    const auto timed = time_in_blocks(of, TimedOn::kOneCore, nullptr);
    return timed ? timed->size() : 0;
  };
  EXPECT_EQ(pairs_of(microseconds(1000), microseconds(980)), 5U);
  EXPECT_EQ(pairs_of(microseconds(1000), microseconds(950)), 5U);
  EXPECT_EQ(pairs_of(microseconds(1000), microseconds(1010)), 3U);
  EXPECT_EQ(pairs_of(microseconds(1000), microseconds(900)), 3U);
  EXPECT_EQ(pairs_of(microseconds(1000), microseconds(700)), 2U);
  EXPECT_EQ(pairs_of(microseconds(1000), microseconds(1400)), 2U);
  EXPECT_EQ(pairs_of(microseconds(100), microseconds(60)), 2U);
  EXPECT_EQ(pairs_of(microseconds(100), microseconds(90)), 3U) << "short ones have to win by more";
  EXPECT_EQ(pairs_of(microseconds(0), microseconds(0)), 3U);
}

TEST(EngineTiming, BlocksEndWhenTheirTimeIsOver) {
  PairsBench bench(milliseconds(5), milliseconds(5));
  Comparison of = bench.comparison(1);
  int used = 0;
  const auto time = [&](int uses) {
    used = 0;
    return time_in_blocks(of, TimedOn::kOneCore, [&, uses](bool) {
      if (++used == uses) bench.device->time->advance(std::chrono::seconds(4));
      return Status();
    });
  };
  const auto early = time(1);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code(), Code::kBusy);
  const auto late = time(3);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->size(), 2U) << "those that are complete";
}

TEST(EngineTiming, AProgramThatEndsEndsABlock) {
  PairsBench bench(microseconds(10), microseconds(10));
  Comparison of = bench.comparison(1);
  int asked = 0;
  of.stopped = [&] { return ++asked == 3; };
  const auto timed = time_in_blocks(of, TimedOn::kOneCore, nullptr);
  ASSERT_FALSE(timed);
  EXPECT_EQ(timed.error().code(), Code::kCancelled);
  EXPECT_EQ(asked, 3);
}

TEST(EngineTiming, WhereASubmissionThrowsTheOthersHaveEndedBeforeTheirInputsGo) {
  PairsBench bench(microseconds(10), microseconds(5));
  int submitted = 0;
  bench.device->on_submit = [&] {
    if (++submitted == 3) throw std::bad_alloc();
  };
  const auto timed = bench.time(4);
  ASSERT_FALSE(timed);
  EXPECT_EQ(timed.error().code(), Code::kOutOfMemory);
  EXPECT_EQ(bench.device->most_not_awaited, 2);
  EXPECT_EQ(*bench.device->not_awaited, 0);
}

TEST(EngineTiming, WhereFewJobsMayWaitOneIsTimedAlone) {
  PairsBench bench(microseconds(10), microseconds(5));
  bench.device->refuses_second = true;
  const auto timed = bench.time(2);
  ASSERT_TRUE(timed) << timed.error().to_string();
  EXPECT_EQ(timed->on, TimedOn::kOneCore);
  EXPECT_EQ(*bench.device->not_awaited, 0);
}

}  // namespace
}  // namespace corelane::runtime
