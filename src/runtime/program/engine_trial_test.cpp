#include "runtime/program/engine_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

#include "base/process/testing/static_engine.h"
#include "corelane/device/soonest_engine.h"
#include "runtime/testing/fake_program.h"

namespace corelane::runtime {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::floats_of;
using testing::view_of;

TEST(EngineTrial, EnginesMayKnowDimensionsOfAnOutputThatIsOpenInBoth) {
  const auto alike = [](const Shape& one, const Shape& other) {
    testing::FakeExecutable a, b;
    a.out = b.out = testing::one_in_one_out({1, 4}).outputs;
    a.out[0].shape = one;
    b.out[0].shape = other;
    return described_alike(a, b) && described_alike(b, a);
  };
  EXPECT_TRUE(alike({Shape::kOpen, Shape::kOpen}, {Shape::kOpen, 1}));
  EXPECT_TRUE(alike({2, 1}, {2, 1}));
  EXPECT_FALSE(alike({2, Shape::kOpen}, {2, 1})) << "bound in place with one of them only";
  EXPECT_FALSE(alike({Shape::kOpen, 1}, {Shape::kOpen, 1, 1}));
  EXPECT_FALSE(alike({2, 1}, {1, 2}));
}

TEST(EngineVerdict, IsReadAsItIsWritten) {
  const EngineVerdict verdict{"onnxruntime", 0.8125, 21};
  const auto read = EngineVerdict::parse(verdict.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->engine, "onnxruntime");
  EXPECT_DOUBLE_EQ(read->ratio, 0.8125);
  EXPECT_EQ(read->pairs, 21U);
}

TEST(EngineVerdict, TellsOnHowManyCoresTheEnginesWereTimed) {
  for (const TimedOn cores : {TimedOn::kOneCore, TimedOn::kSeveralCores, TimedOn::kEachCore}) {
    const auto read = EngineVerdict::parse(EngineVerdict{"openvino", 0.5, 3, cores}.text());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->timed_on, cores);
  }
  EXPECT_EQ((EngineVerdict{"openvino", 0.5, 3, TimedOn::kSeveralCores}.text()),
            "openvino 0.5000 3 several");
  EXPECT_EQ((EngineVerdict{"openvino", 0.5, 3, TimedOn::kEachCore}.text()),
            "openvino 0.5000 3 each");
}

TEST(EngineVerdict, OtherTextsAreNone) {
  for (const char* text : {"", " ", "onnxruntime", "onnxruntime 0.8", "a b c", "a 0.5 -1",
                           "a 0.5 3 4", " 0.5 3", "a 0.5x 3", "a 0.5 3 one two", "a 0.5 3 "})
    EXPECT_FALSE(EngineVerdict::parse(text)) << text;
}

/// x [1, 4] -> y on a device with two engines.
struct Bench {
  explicit Bench(Duration first, Duration other, const LoadOptions& options = {},
                 const testing::FakeConfig& given = config(),
                 std::vector<std::vector<Shape>> sets = {})
      : setup(given, description(given, std::move(sets)), options) {
    setup.device->run_times = {{"", first}, {"a", first}, {"b", other}};
  }
  static ProgramDescription description(const testing::FakeConfig& given,
                                        std::vector<std::vector<Shape>> sets) {
    ProgramDescription d = testing::fake_description(given);
    d.shape_sets = std::move(sets);
    return d;
  }
  static testing::FakeConfig begins_on_b() {
    testing::FakeConfig c = config();
    c.soonest = "b";
    return c;
  }
  static testing::FakeConfig config() {
    // The tests' environment switches it off, so that results of one engine can be compared.
    ::setenv("CORELANE_TIME_ENGINES", "1", 1);
    testing::FakeConfig c = testing::one_in_one_out({1, 4});
    c.engines = {"a", "b"};
    return c;
  }
  void run(std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) {
      const Status ran = context.run();
      ASSERT_TRUE(ran.ok()) << ran.to_string();
    }
  }
  std::string engine() const { return setup.program.engine().engine; }
  void wait() const { setup.program.wait_engines(); }

  testing::FakeSetup setup;
  Context context = setup.program.new_context().value();
};

TEST(EngineTrial, TheFasterEngineTakesOverWithInputsKept) {
  Bench bench(microseconds(10), microseconds(5));
  const auto x = bench.context.input(0);
  ASSERT_TRUE(x);
  auto* const data = static_cast<float*>(x->data);
  std::fill_n(data, 4, 1.0F);
  EXPECT_EQ(bench.engine(), "fake 1");
  bench.run(kRunsBeforeTrial);
  bench.wait();
  EXPECT_EQ(bench.engine(), "b");
  EXPECT_EQ(bench.setup.program.engine().why, "measured: 0.50 of the other's time");
  bench.run(1);
  EXPECT_EQ(bench.setup.device->last.executable->engine().engine, "b");
  EXPECT_EQ(floats_of(*bench.context.output(0)), std::vector<float>(4, 3));
  // The place of the context's own input stays, and is read by the other engine.
  std::fill_n(data, 4, 2.0F);
  bench.run(1);
  EXPECT_EQ(floats_of(*bench.context.output(0)), std::vector<float>(4, 5));
}

TEST(EngineTrial, AnEngineThatIsLittleFasterIsNotTaken) {
  Bench bench(microseconds(100), microseconds(98));
  bench.run(kRunsBeforeTrial);
  bench.wait();
  bench.run(1);
  EXPECT_EQ(bench.engine(), "fake 1");
  EXPECT_EQ(bench.setup.device->last.executable->engine().engine, "");
}

TEST(EngineTrial, ATrialTakesAnyOfAsManyCoresAndAllAsThePlatformChooses) {
  using device::CoreSet;
  EXPECT_EQ(trial_cores(CoreSet::any(1), 3), CoreSet::any(1));
  EXPECT_EQ(trial_cores(CoreSet::of({1}), 3), CoreSet::any(1));
  EXPECT_EQ(trial_cores(CoreSet::of({0, 2}), 3), CoreSet::any(2));
  EXPECT_EQ(trial_cores(CoreSet::of({0, 1, 2}), 3), CoreSet::platform());
  EXPECT_EQ(trial_cores(CoreSet::platform(), 3), CoreSet::platform());
  EXPECT_EQ(trial_cores(CoreSet::any(3), 3), CoreSet::platform());
  EXPECT_EQ(trial_cores(CoreSet::any_of(CoreSet::of({0, 1}), 1), 3), CoreSet::any(1));
  EXPECT_EQ(trial_cores(CoreSet::any_of(CoreSet::of({0, 1}), 2), 3), CoreSet::any(2));
  EXPECT_EQ(trial_cores(CoreSet::of({0}), 1), CoreSet::any(1));
}

TEST(EngineTrial, EnginesAreTimedOnAsManyCoresAsTheRunTakes) {
  const testing::FakeConfig joins = Bench::config();
  testing::FakeConfig busy = joins;
  busy.wide_jobs_wait = true;
  testing::FakeConfig apart = joins;
  apart.multi_core_jobs = false;
  RunOptions wide;
  wide.cores = device::CoreSet::platform();
  const auto engine_of = [](const testing::FakeConfig& config, const RunOptions& options) {
    Bench bench(microseconds(400), microseconds(300), {}, config);
    bench.setup.device->wide_run_times = {{"", microseconds(150)}, {"b", microseconds(200)}};
    for (std::uint32_t i = 0; i < kRunsBeforeTrial; ++i)
      EXPECT_TRUE(bench.context.run(options).ok());
    bench.wait();
    return bench.engine();
  };
  EXPECT_EQ(engine_of(joins, RunOptions()), "b");
  EXPECT_EQ(engine_of(joins, wide), "fake 1");
  EXPECT_EQ(engine_of(busy, wide), "b") << "on one core, since several are never idle together";
  EXPECT_EQ(engine_of(apart, wide), "b") << "on one core, since the device joins none";
}

/// Engine a is the faster one on several cores, b on one.
struct WidthBench : Bench {
  explicit WidthBench(const testing::FakeConfig& config = Bench::config(),
                      std::vector<std::vector<Shape>> sets = {})
      : Bench(microseconds(400), microseconds(300), {}, config, std::move(sets)) {
    setup.device->wide_run_times = {
        {"", microseconds(150)}, {"a", microseconds(150)}, {"b", microseconds(200)}};
  }
  void run_on(const device::CoreSet& cores, std::uint32_t times) {
    RunOptions options;
    options.cores = cores;
    for (std::uint32_t i = 0; i < times; ++i) ASSERT_TRUE(context.run(options).ok());
    wait();
  }
};

TEST(EngineTrial, RunsThatTakeAnotherNumberOfCoresTimeTheEnginesAgain) {
  WidthBench bench;
  const device::CoreSet several = device::CoreSet::platform();
  const device::CoreSet one = device::CoreSet::any(1);
  bench.run_on(several, kRunsBeforeTrial);
  EXPECT_EQ(bench.engine(), "fake 1");
  bench.run_on(one, kRunsBeforeAnother - 1);
  EXPECT_EQ(bench.engine(), "fake 1");
  bench.run_on(one, 1);
  EXPECT_EQ(bench.engine(), "b");
  EXPECT_EQ(bench.setup.program.engine().why, "measured: 0.75 of the other's time");
  bench.run_on(several, 8 * kRunsBeforeAnother - 1);
  EXPECT_EQ(bench.engine(), "b") << "each further trial needs eight times as many";
  bench.run_on(several, 1);
  EXPECT_EQ(bench.engine(), "a");
  bench.run_on(several, 1);
  EXPECT_EQ(bench.setup.device->last.executable->engine().engine, "a");
}

TEST(EngineTrial, RunsThatKeepChangingTheirCoresTimeTheEnginesOnce) {
  WidthBench bench;
  bench.run_on(device::CoreSet::platform(), kRunsBeforeTrial);
  for (int i = 0; i < 3; ++i) {
    bench.run_on(device::CoreSet::any(1), kRunsBeforeAnother - 1);
    bench.run_on(device::CoreSet::platform(), 1);
  }
  EXPECT_EQ(bench.setup.device->prepared.size(), 2U);
  EXPECT_EQ(bench.engine(), "fake 1");
}

TEST(EngineTrial, AnEngineThatRefusesTheProgramLaterIsNotAskedAgain) {
  WidthBench bench;
  bench.run_on(device::CoreSet::platform(), kRunsBeforeTrial);
  const std::string why = bench.setup.program.engine().why;
  EXPECT_THAT(why, ::testing::StartsWith("measured"));
  std::atomic<int> asked{0};
  bench.setup.device->on_prepare = [&](const device::PrepareOptions&) {
    ++asked;
    return Status(error(Code::kUnsupportedModel, "no"));
  };
  bench.run_on(device::CoreSet::any(1), kRunsBeforeAnother);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(bench.setup.program.engine().why, why) << "what was measured stays true";
  bench.run_on(device::CoreSet::any(1), 64 * kRunsBeforeAnother);
  EXPECT_EQ(asked, 1);
}

/// An idle context holds the engine that lost, whose end the thread of the trial waits for.
TEST(EngineTrial, AFurtherTrialDoesNotWaitForTheEndOfTheEngineThatLost) {
  testing::FakeConfig config = Bench::begins_on_b();
  config.figures.weights = std::size_t{8} << 20;
  WidthBench bench(config);
  Context idle = bench.setup.program.new_context().value();
  ASSERT_TRUE(idle.run().ok());
  bench.run_on(device::CoreSet::platform(), kRunsBeforeTrial);
  EXPECT_EQ(bench.engine(), "a");
  bench.run_on(device::CoreSet::any(1), kRunsBeforeAnother);
  EXPECT_EQ(bench.engine(), "b");
}

/// Engine b is a little faster on one core, a where other cores work at the same time.
struct BesideBench : Bench {
  explicit BesideBench(Duration other = microseconds(360))
      : Bench(microseconds(400), other, {}, config()) {
    setup.device->run_times_at_once = {
        {"", microseconds(450)}, {"a", microseconds(450)}, {"b", microseconds(500)}};
  }
  void run_beside(std::uint64_t busy_cores, std::uint32_t times, const RunOptions& options = {}) {
    setup.device->busy_cores = busy_cores;
    for (std::uint32_t i = 0; i < times; ++i) ASSERT_TRUE(context.run(options).ok());
    wait();
  }
};

TEST(EngineTrial, RunsBesideOthersAreTimedAtTheSameTime) {
  BesideBench alone;
  alone.run_beside(0, kRunsBeforeTrial);
  EXPECT_EQ(alone.engine(), "b");
  BesideBench beside;
  beside.run_beside(1, kRunsBeforeTrial);
  EXPECT_EQ(beside.engine(), "fake 1");
  EXPECT_EQ(beside.setup.program.engine().why, "measured: 0.90 of the other's time");
}

TEST(EngineTrial, ARunThatWaitsForItsCoreIsNotBesideTheOneThatHasIt) {
  RunOptions options;
  options.cores = device::CoreSet::of({0});
  BesideBench waits, beside;
  waits.run_beside(0b001, kRunsBeforeTrial, options);
  EXPECT_EQ(waits.engine(), "b");
  beside.run_beside(0b100, kRunsBeforeTrial, options);
  EXPECT_EQ(beside.engine(), "fake 1");
}

TEST(EngineTrial, RunsAtOnceKeepToTheCoresAtWork) {
  using device::CoreSet;
  const auto cores_of_trial = [](const CoreSet& cores, std::uint64_t busy) {
    BesideBench bench;
    CoreSet asked;
    bench.setup.device->on_submit = [&] { asked = bench.setup.device->last.cores; };
    RunOptions options;
    options.cores = cores;
    bench.run_beside(busy, kRunsBeforeTrial, options);
    return asked;
  };
  EXPECT_EQ(cores_of_trial(CoreSet::of({0}), 0b100), CoreSet::any_of(CoreSet::of({0, 2})));
  EXPECT_EQ(cores_of_trial(CoreSet::any(1), 0b010), CoreSet::any_of(CoreSet::of({0, 1})));
  EXPECT_EQ(cores_of_trial(CoreSet::any_of(CoreSet::of({1, 2})), 0b010),
            CoreSet::any_of(CoreSet::of({1, 2})));
  EXPECT_EQ(cores_of_trial(CoreSet::any(1), 0b111), CoreSet::any_of(CoreSet::of({0, 1, 2})))
      << "it will get one of them";
}

TEST(EngineTrial, RunsThatComeToBeBesideOthersTimeTheEnginesAgain) {
  BesideBench bench;
  bench.run_beside(0, kRunsBeforeTrial);
  EXPECT_EQ(bench.engine(), "b");
  bench.run_beside(0b101, kRunsBeforeAnother - 1);
  EXPECT_EQ(bench.engine(), "b");
  bench.run_beside(0b101, 1);
  EXPECT_EQ(bench.engine(), "a");
  bench.run_beside(0, 8 * kRunsBeforeAnother);
  EXPECT_EQ(bench.engine(), "b") << "each further trial needs eight times as many";
}

TEST(EngineTrial, OtherJobsDoNotTurnATrialThatWasClear) {
  BesideBench bench(microseconds(300));
  bench.run_beside(0, kRunsBeforeTrial);
  bench.run_beside(0b101, 2 * kRunsBeforeAnother);
  EXPECT_EQ(bench.engine(), "b");
  EXPECT_EQ(bench.setup.device->prepared.size(), 2U) << "no further trial";
}

/// Two cores at work, where the engine in use is the faster one. Seen are the engines in use while
/// the trial runs.
struct FavourBench : BesideBench {
  explicit FavourBench(Duration other_while_in_use, Duration other = microseconds(396),
                       bool fails_while_in_use = false) {
    setup.device->on_submit = [this, other_while_in_use, other, fails_while_in_use] {
      const std::string used = engine();
      seen.insert(used);
      const Duration first = microseconds(400);
      setup.device->run_times_at_once = {
          {"", first}, {"a", first}, {"b", used == "b" ? other_while_in_use : other}};
      if (used == "b" && fails_while_in_use)
        setup.device->next_status = error(Code::kEngineFailed, "no");
    };
    run_beside(1, kRunsBeforeTrial);
    setup.device->on_submit = nullptr;
    ran = context.run();
  }
  std::string in_use() const { return setup.device->last.executable->engine().engine; }
  std::string why() const { return setup.program.engine().why; }

  std::set<std::string> seen;
  Status ran;
};

TEST(EngineTrial, WhatIsNotClearIsTimedWithEachEngineInUse) {
  const FavourBench faster(microseconds(360));
  EXPECT_EQ(faster.engine(), "b");
  EXPECT_EQ(faster.in_use(), "b");
  EXPECT_EQ(faster.why(), "measured: 0.90 of the other's time");
  EXPECT_THAT(faster.seen, ::testing::ElementsAre("b", "fake 1"));
}

TEST(EngineTrial, TheProgramReturnsToTheFirstEngineWhereTheOtherLosesWhileItIsInUse) {
  // Faster at first, so that it would have been taken.
  const FavourBench slower(microseconds(420), microseconds(384));
  EXPECT_THAT(slower.seen, ::testing::ElementsAre("b", "fake 1"));
  EXPECT_EQ(slower.engine(), "fake 1");
  EXPECT_EQ(slower.in_use(), "");
  EXPECT_TRUE(slower.ran.ok());
  EXPECT_EQ(slower.why(), "measured: 0.95 of the other's time");
}

TEST(EngineTrial, TheProgramReturnsToTheFirstEngineWhereTheOtherFailsWhileItIsInUse) {
  const FavourBench fails(microseconds(360), microseconds(384), true);
  EXPECT_THAT(fails.seen, ::testing::ElementsAre("b", "fake 1"));
  EXPECT_EQ(fails.engine(), "fake 1");
  EXPECT_EQ(fails.in_use(), "");
  EXPECT_EQ(fails.why(), "") << "no verdict";
}

/// Wide jobs wait once the program runs on `engine` for the second time, or b for the first time.
struct NoCoresBench : Bench {
  explicit NoCoresBench(const std::string& engine) : Bench(microseconds(400), microseconds(400)) {
    setup.device->wide_run_times = {{"", microseconds(400)}, {"b", microseconds(360)}};
    std::string before = "fake 1";
    bool changed = false;
    setup.device->on_submit = [&, engine] {
      const std::string used = this->engine();
      changed = changed || used != before;
      if (changed && used == engine) setup.device->config.wide_jobs_wait = true;
    };
    RunOptions wide;
    wide.cores = device::CoreSet::platform();
    for (std::uint32_t i = 0; i < kRunsBeforeTrial; ++i) EXPECT_TRUE(context.run(wide).ok());
    wait();
    setup.device->on_submit = nullptr;
    EXPECT_TRUE(setup.device->config.wide_jobs_wait) << "blocks had begun";
  }
};

TEST(EngineTrial, WhereBlocksGetNoCoresThoseBeforeDecide) {
  const NoCoresBench some("fake 1");
  EXPECT_EQ(some.engine(), "b");
  EXPECT_EQ(some.setup.program.engine().why, "measured: 0.90 of the other's time");
}

TEST(EngineTrial, WhereTheOtherEngineGetsNoCoresTheFirstOneStays) {
  const NoCoresBench none("b");
  EXPECT_EQ(none.engine(), "fake 1");
  EXPECT_EQ(none.setup.program.engine().why, "");
}

TEST(EngineTrial, WithLittleMemoryLeftTheOtherEngineIsNotTried) {
  const auto seen_with = [](std::size_t used) {
    BesideBench bench;
    bench.setup.device->set_memory_limit(1000, used);
    std::set<std::string> seen;
    bench.setup.device->on_submit = [&] { seen.insert(bench.engine()); };
    bench.run_beside(1, kRunsBeforeTrial);
    bench.setup.device->on_submit = nullptr;
    EXPECT_EQ(bench.setup.program.engine().why, "measured: 0.90 of the other's time");
    return seen;
  };
  EXPECT_THAT(seen_with(700), ::testing::ElementsAre("b", "fake 1"));
  EXPECT_THAT(seen_with(800), ::testing::ElementsAre("fake 1")) << "the turns decide";
}

TEST(EngineTrial, TheReturnToTheFirstEngineNeedsNoMemory) {
  BesideBench bench;
  bool ran = false;
  bench.setup.device->on_submit = [&] {
    if (!ran && bench.engine() == "b") ran = bench.context.run().ok();
  };
  int refused = 0;
  *bench.setup.device->on_bindings = [&](const std::string& engine) {
    const bool in_return = engine.empty() && bench.engine() == "b";
    refused += in_return ? 1 : 0;
    return in_return ? Status(error(Code::kOutOfMemory, "no")) : Status();
  };
  bench.run_beside(1, kRunsBeforeTrial);
  bench.setup.device->on_submit = nullptr;
  *bench.setup.device->on_bindings = nullptr;
  EXPECT_TRUE(ran) << "on b, while it was timed";
  EXPECT_GT(refused, 0);
  EXPECT_EQ(bench.engine(), "fake 1");
  EXPECT_EQ(bench.setup.program.engine().why, "measured: 0.90 of the other's time");
}

TEST(EngineTrial, AContextThatCannotFollowKeepsItsEngineAndTriesAgain) {
  Bench bench(microseconds(400), microseconds(100));
  const auto in_use = [&] { return bench.setup.device->last.executable->engine().engine; };
  *bench.setup.device->on_bindings = [user =
                                          std::this_thread::get_id()](const std::string& engine) {
    const bool is_context = std::this_thread::get_id() == user;
    return engine == "b" && is_context ? Status(error(Code::kOutOfMemory, "no")) : Status();
  };
  bench.run(kRunsBeforeTrial);
  bench.wait();
  EXPECT_EQ(bench.engine(), "b");
  bench.run(1);
  EXPECT_EQ(in_use(), "");
  *bench.setup.device->on_bindings = nullptr;
  bench.run(63);
  EXPECT_EQ(in_use(), "");
  bench.run(1);
  EXPECT_EQ(in_use(), "b");
}

TEST(EngineTrial, WhyIsSaidOfNoEngineThatIsBeingTimed) {
  BesideBench bench;
  bench.run_beside(0, kRunsBeforeTrial);
  EXPECT_EQ(bench.engine(), "b");
  std::set<std::string> said;
  bench.setup.device->on_submit = [&] {
    if (bench.engine() != "b") said.insert(bench.setup.program.engine().why);
  };
  bench.run_beside(0b101, kRunsBeforeAnother);
  EXPECT_THAT(said, ::testing::ElementsAre(""));
}

TEST(EngineTrial, TheOtherEngineIsNotUsedForATrialThatIsClear) {
  for (const Duration other : {microseconds(190), microseconds(800)})
    EXPECT_THAT(FavourBench(microseconds(1), other).seen, ::testing::ElementsAre("fake 1"));
}

TEST(EngineTrial, LongRunsAreTimedInTurnsAlone) {
  // On a real engine the program would go to and fro, for seconds.
  const auto bindings_of_b = [](Duration first, Duration other) {
    Bench bench(first, other);
    int made = 0;
    *bench.setup.device->on_bindings = [&](const std::string& engine) {
      made += engine == "b" ? 1 : 0;
      return Status();
    };
    bench.run(kRunsBeforeTrial);
    bench.wait();
    EXPECT_EQ(bench.engine(), "b");
    return made;
  };
  EXPECT_EQ(bindings_of_b(milliseconds(30), milliseconds(27)), 2)
      << "of the turns, and its context";
  EXPECT_GT(bindings_of_b(milliseconds(20), milliseconds(18)), 2) << "of blocks, too";
}

TEST(EngineTrial, ATrialHasThePriorityOfTheRun) {
  Bench bench(microseconds(400), microseconds(360));
  RunOptions options;
  options.priority = 7;
  for (std::uint32_t i = 0; i < kRunsBeforeTrial; ++i) ASSERT_TRUE(bench.context.run(options).ok());
  bench.wait();
  EXPECT_EQ(bench.engine(), "b");
  EXPECT_EQ(bench.setup.device->last.priority, 7);
  EXPECT_EQ(bench.setup.device->last.executable->engine().engine, "b") << "a job of the trial";
}

TEST(EngineTrial, InAForkedChildTheDeviceIsNotAskedForBusyCores) {
  BesideBench bench;
  bench.run_beside(0, kRunsBeforeTrial);
  GTEST_FLAG_SET(death_test_style, "fast");
  bench.setup.device->on_counters = [] { std::_Exit(1); };
  EXPECT_EXIT(
      {
        for (std::uint32_t i = 0; i < 2 * kRunsPerLook; ++i) (void)bench.context.run();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(EngineTrial, ShapesOfAnotherSetThanTheFirstAreNotTimed) {
  testing::FakeConfig config = Bench::config();
  config.inputs[0].shape = config.outputs[0].shape = Shape{Shape::kOpen, 4};
  WidthBench bench(config, {{Shape{1, 4}}, {Shape{2, 4}}});
  bench.run_on(device::CoreSet::platform(), kRunsBeforeTrial);
  const std::size_t prepared = bench.setup.device->prepared.size();
  const std::vector<float> x(8, 1.0F);
  ASSERT_TRUE(bench.context.bind_input(0, view_of(x, Shape{2, 4})).ok());
  bench.run_on(device::CoreSet::any(1), kRunsBeforeAnother);
  EXPECT_EQ(bench.setup.device->prepared.size(), prepared + 1) << "the second set, and no engine";
}

TEST(EngineTrial, AnEngineThatRefusesTheProgramIsNotTaken) {
  Bench bench(microseconds(10), microseconds(5));
  bench.setup.device->on_prepare = [](const device::PrepareOptions& options) {
    return options.engine == "b" ? Status(error(Code::kUnsupportedModel, "no")) : Status();
  };
  bench.run(kRunsBeforeTrial + 1);
  bench.wait();
  EXPECT_EQ(bench.engine(), "fake 1");
}

TEST(EngineTrial, AProgramBeginsOnTheSoonestEngineAndMovesToTheFaster) {
  Bench bench(microseconds(5), microseconds(10), {}, Bench::begins_on_b());
  EXPECT_EQ(bench.engine(), "b");
  EXPECT_EQ(bench.setup.device->prepared.size(), 1U) << "the other one is not prepared yet";
  bench.run(kRunsBeforeTrial);
  bench.wait();
  EXPECT_EQ(bench.engine(), "a");
  EXPECT_EQ(bench.setup.program.engine().why, "measured: 0.50 of the other's time");
  bench.run(1);
  EXPECT_EQ(bench.setup.device->last.executable->engine().engine, "a");
}

TEST(EngineTrial, AProgramStaysOnTheSoonestEngineWhereItIsTheFaster) {
  Bench bench(microseconds(10), microseconds(5), {}, Bench::begins_on_b());
  bench.run(kRunsBeforeTrial);
  bench.wait();
  bench.run(1);
  EXPECT_EQ(bench.engine(), "b");
  EXPECT_EQ(bench.setup.program.engine().why, "measured: 0.50 of the other's time");
}

TEST(EngineTrial, ProgramsThatAreNotTimedBeginOnTheFirstEngine) {
  LoadOptions options;
  options.time_engines = false;
  EXPECT_EQ(Bench(microseconds(5), microseconds(5), options, Bench::begins_on_b()).engine(),
            "fake 1");
  options = {};
  options.profile_layers = true;
  EXPECT_EQ(Bench(microseconds(5), microseconds(5), options, Bench::begins_on_b()).engine(),
            "fake 1");
}

TEST(EngineTrial, ARefusalIsRememberedAndLackOfMemoryIsNot) {
  for (const Code code : {Code::kUnsupportedModel, Code::kOutOfMemory}) {
    Bench bench(microseconds(5), microseconds(10), {}, Bench::begins_on_b());
    bench.setup.device->on_prepare = [&](const device::PrepareOptions& options) {
      return options.engine == "a" ? Status(error(code, "no")) : Status();
    };
    bench.run(kRunsBeforeTrial);
    bench.wait();
    EXPECT_EQ(bench.engine(), "b");
    EXPECT_EQ(bench.setup.program.engine().why,
              code == Code::kUnsupportedModel ? "the other engine does not take the program" : "");
  }
}

TEST(EngineTrial, EnginesWithoutTimesAreNotChanged) {
  Bench bench(microseconds(0), microseconds(0));
  bench.run(kRunsBeforeTrial);
  bench.wait();
  EXPECT_EQ(bench.engine(), "fake 1");
}

TEST(EngineTrial, ProgramsThatNameAnEngineAreNotTimed) {
  LoadOptions options;
  options.engine = "a";
  Bench bench(microseconds(10), microseconds(5), options);
  bench.run(kRunsBeforeTrial + 1);
  bench.wait();
  EXPECT_EQ(bench.engine(), "a");
  options = {};
  options.time_engines = false;
  Bench off(microseconds(10), microseconds(5), options);
  off.run(kRunsBeforeTrial + 1);
  off.wait();
  EXPECT_EQ(off.engine(), "fake 1");
}

TEST(EngineTrial, AnEngineThatTheDeviceDoesNotHaveIsAnError) {
  const auto device = std::make_shared<testing::FakeDevice>(Bench::config());
  LoadOptions options;
  options.on = device;
  options.engine = "c";
  const auto program =
      Program::load(testing::fake_file(testing::fake_description(Bench::config())), options);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kInvalidArgument);
  EXPECT_NE(program.error().message().find("a, b"), std::string::npos);
}

/// A program file that keeps a trial.
struct KeptTrial {
  explicit KeptTrial(const std::string& text, const std::string& tag = {},
                     const testing::FakeConfig& config = Bench::begins_on_b())
      : device(std::make_shared<testing::FakeDevice>(config)) {
    device->run_times = {
        {"", microseconds(400)}, {"a", microseconds(400)}, {"b", microseconds(300)}};
    device->wide_run_times = {
        {"", microseconds(150)}, {"a", microseconds(150)}, {"b", microseconds(200)}};
    const std::string graph = testing::relu_model({1});
    ProgramWriter writer(testing::fake_description(config));
    writer.add_segment(SegmentKind::kGraph, "", as_byte_span(graph));
    writer.add_segment(SegmentKind::kTrial, tag.empty() ? trial_tag(device->info()) : tag,
                       as_byte_span(text));
    file = writer.finish().value();
  }
  Program load() {
    LoadOptions options;
    options.on = device;
    auto program = Program::load(file, options);
    EXPECT_TRUE(program) << program.error().to_string();
    return *program;
  }
  static void run(const Program& program, const device::CoreSet& cores, std::uint32_t times) {
    Context context = program.new_context().value();
    RunOptions options;
    options.cores = cores;
    for (std::uint32_t i = 0; i < times; ++i) ASSERT_TRUE(context.run(options).ok());
    program.wait_engines();
  }

  std::shared_ptr<testing::FakeDevice> device;
  ByteVector file;
};

TEST(EngineTrial, AProgramFileBeginsOnTheEngineThatWasFasterWhenItWasCompiled) {
  KeptTrial kept("a 0.5000 9 one");
  const Program program = kept.load();
  EXPECT_EQ(program.engine().engine, "a");
  EXPECT_EQ(program.engine().why, "measured: 0.50 of the other's time");
  KeptTrial::run(program, device::CoreSet::any(1), kRunsBeforeTrial + 2 * kRunsBeforeAnother);
  EXPECT_EQ(kept.device->prepared.size(), 1U) << "the other engine is not prepared at all";
}

TEST(EngineTrial, WhatAProgramFileKeepsIsFoundAgainOnceRunsTakeOtherCores) {
  KeptTrial kept("b 0.7500 9 one");
  const Program program = kept.load();
  EXPECT_EQ(program.engine().engine, "b");
  KeptTrial::run(program, device::CoreSet::platform(), kRunsBeforeAnother);
  EXPECT_EQ(program.engine().engine, "a");
}

TEST(EngineTrial, ATrialOfAnotherDeviceOrOfNoMeaningIsNotHeeded) {
  for (KeptTrial kept :
       {KeptTrial("a 0.5 9 one", "OpenVINO 1, corelane 0.0.1, sse2"), KeptTrial("c 0.5 9 one"),
        KeptTrial("a"), KeptTrial("\xff\n"), KeptTrial(std::string(4096, 'a'))}) {
    const Program program = kept.load();
    EXPECT_EQ(program.engine().engine, "b") << "it is prepared sooner";
    EXPECT_EQ(program.engine().why, "");
  }
}

TEST(EngineTrial, WhereTheFasterEngineFailsTheFileIsLoadedWithoutItsTrial) {
  KeptTrial kept("a 0.5000 9 one");
  kept.device->on_prepare = [](const device::PrepareOptions& options) {
    return options.engine == "a" || options.engine == device::faster_engine("a")
               ? Status(error(Code::kEngineFailed, "no"))
               : Status();
  };
  EXPECT_EQ(kept.load().engine().engine, "b");
}

/// Until the engine has changed for good, to and fro before that, and 50 times after it.
TEST(EngineTrial, ContextsRunWhileTheEngineChanges) {
  constexpr int kMostRuns = 1'000'000;  // Some thousand pass before the change.
  Bench bench(microseconds(10), microseconds(5));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Context context = bench.setup.program.new_context().value();
      std::vector<float> x(4, static_cast<float>(t));
      std::vector<float> y(4);
      if (!context.bind_input(0, view_of(x, Shape{1, 4})).ok()) ++wrong;
      MutableTensorView out{y.data(), y.size() * sizeof(float), DType::kF32, Shape{1, 4}, {}, {}};
      if (!context.bind_output(0, out).ok()) ++wrong;
      for (int runs = 0, after = 0; after < 50; ++runs) {
        if (runs == kMostRuns) {
          ++wrong;
          break;
        }
        if (!bench.setup.program.engine().why.empty()) ++after;
        y.assign(4, -1);
        if (!context.run().ok() || y != std::vector<float>(4, 2 * static_cast<float>(t) + 1))
          ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  bench.wait();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(bench.engine(), "b");
}

TEST(EngineTrialDeathTest, ExitWaitsForAnEngineThatIsBeingLoaded) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "the thread has ended and is not joined at exit, which is a leak to the sanitizer";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        testing::begin_process_that_ends();
        Bench bench(microseconds(10), microseconds(5));
        bench.setup.device->on_prepare = [](const device::PrepareOptions&) {
          testing::StaticEngine::instance().use();
          return Status();
        };
        bench.run(kRunsBeforeTrial);
        testing::StaticEngine::instance().await_use();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace corelane::runtime
