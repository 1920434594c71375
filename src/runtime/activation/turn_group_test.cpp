#include "corelane/runtime/turn_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <thread>

#include "corelane/device/fence.h"
#include "runtime/testing/set_bench.h"

namespace corelane {
namespace {

using device::CoreSet;
using device::Residency;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::SetBench;

/// A device whose cores are shared by activations of one program.
struct TurnBench : SetBench {
  explicit TurnBench(const std::string& text, const TurnGroupOptions& options = {},
                     bool virtual_time = true)
      : SetBench(text, virtual_time), turns(TurnGroup::create(device, options).value()) {}
  ActivateOptions joins(const TurnOptions& turn = {}, const CoreSet& cores = {}) const {
    return {.cores = cores, .residency = {}, .turns = turns, .turn = turn};
  }
  Activation activate(const TurnOptions& turn = {}, const CoreSet& cores = {}) const {
    auto made = Activation::create(program, joins(turn, cores));
    EXPECT_TRUE(made) << made.error().to_string();
    return made ? *made : Activation();
  }
  void run_for(Duration time) const {
    const TimePoint end = clock->now() + time;
    while (clock->next_timer() <= end) clock->advance_to(clock->next_timer());
  }
  TurnGroup turns;
};

/// A set that submits each handle again as soon as it completes, until it is stopped.
class Stream {
 public:
  Stream(const TurnBench& bench, const TurnOptions& turn, std::size_t handles)
      : clock_(bench.clock), set_(bench.set({.size = handles, .activate = bench.joins(turn)})) {
    again_ = [this](const SetHandle& done) {
      EXPECT_TRUE(stopped_ || done.status().ok()) << done.status().to_string();
      const device::JobRecord record = done.context().record();
      if (record.core_bits != 0) served_ += record.ended - record.started;
      if (!stopped_) EXPECT_TRUE(set_.submit(done, 0, again_).ok());
    };
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    stopped_ = true;
    set_.shutdown();
    while (set_.figures().in_flight != 0) clock_->advance_to(clock_->next_timer());
  }
  void start() {
    while (auto handle = set_.acquire(TimePoint{}))
      EXPECT_TRUE(set_.submit(*handle, 0, again_).ok());
  }
  void stop() { stopped_ = true; }
  Duration served() const { return served_; }

 private:
  const std::shared_ptr<VirtualClock> clock_;
  InferenceSet set_;
  SetCallback again_;
  bool stopped_ = false;
  Duration served_{};
};

TEST(TurnGroup, ProgramsHaveTheCoreInTurn) {
  TurnBench bench("null:generic:1?a=1ms");
  const Activation one = bench.activate();
  const Activation two = bench.activate();
  EXPECT_EQ(one.cores(), two.cores());
  Context a = one.new_context().value();
  Context b = two.new_context().value();
  Context c = one.new_context().value();
  auto first = a.submit().value();
  auto second = b.submit().value();
  auto third = c.submit().value();
  bench.clock->advance(milliseconds(2));
  EXPECT_TRUE(first.done() && third.done() && !second.done()) << "a turn lasts while it has jobs";
  bench.clock->advance(milliseconds(1));
  ASSERT_TRUE(second.done());
  EXPECT_TRUE(second.wait().ok());
  EXPECT_EQ(one.figures().turn.turns, 1U);
  EXPECT_EQ(two.figures().turn.turns, 1U);
  EXPECT_EQ(two.figures().turn.switches, 1U);
  EXPECT_EQ(two.figures().turn.cost_last, Duration{0}) << "no time passes but that of jobs";
  EXPECT_EQ(one.figures().turn.served, milliseconds(2));
}

TEST(TurnGroup, ThoseOnOtherCoresDoNotWait) {
  TurnBench bench("null:generic:4?a=1ms");
  const Activation one = bench.activate({}, CoreSet::any(2));
  const Activation two = bench.activate({}, CoreSet::any(2));
  const Activation all = bench.activate({}, CoreSet::platform());
  EXPECT_TRUE((one.cores() & two.cores()).empty()) << "those that the fewest share";
  EXPECT_EQ(all.cores(), CoreSet::first(4));
  Context a = one.new_context().value();
  Context b = two.new_context().value();
  Context c = all.new_context().value();
  auto first = a.submit().value();
  auto second = b.submit().value();
  auto third = c.submit().value();
  bench.clock->advance(milliseconds(1));
  EXPECT_TRUE(first.done() && second.done() && !third.done());
  bench.clock->advance(milliseconds(1));
  EXPECT_TRUE(third.done());
}

TEST(TurnGroup, WeightsShareTheTimeOfTheDevice) {
  TurnBench bench("null:generic:1?a=1ms");
  Stream one(bench, {.weight = 1}, 4);
  Stream three(bench, {.weight = 3}, 4);
  one.start();
  three.start();
  bench.run_for(seconds(10));
  const double all = seconds(10) / milliseconds(1);
  EXPECT_NEAR(one.served() / milliseconds(1), all / 4, all / 4 * 0.05);
  EXPECT_NEAR(three.served() / milliseconds(1), all * 3 / 4, all * 3 / 4 * 0.05);
}

TEST(TurnGroup, ALowPriorityIsServedWithinTheBound) {
  const TurnGroupOptions options{.slice = milliseconds(20), .longest_wait = milliseconds(100)};
  TurnBench bench("null:generic:1?a=5ms", options);
  Stream high(bench, {.priority = 100}, 4);
  const Activation low = bench.activate({.priority = -100});
  Context context = low.new_context().value();
  high.start();
  for (int i = 0; i < 50; ++i) {
    auto inference = context.submit().value();
    while (!inference.done()) bench.clock->advance_to(bench.clock->next_timer());
    const device::JobRecord record = inference.record();
    EXPECT_LE(record.started - record.queued, milliseconds(100 + 20 + 2 * 5));
  }
  EXPECT_GE(low.figures().turn.turns, 50U);
  high.stop();
}

TEST(TurnGroup, AThresholdWaitsForItsTimeout) {
  TurnBench bench("null:generic:1");
  const Activation activation = bench.activate({.threshold = 3, .timeout = milliseconds(20)});
  std::vector<Context> contexts;
  std::vector<Inference> inferences;
  for (int i = 0; i < 2; ++i) {
    contexts.push_back(activation.new_context().value());
    inferences.push_back(contexts.back().submit().value());
  }
  bench.clock->advance(milliseconds(19));
  EXPECT_FALSE(inferences[0].done() || inferences[1].done());
  bench.clock->advance(milliseconds(1));
  EXPECT_TRUE(inferences[0].done() && inferences[1].done());
}

TEST(TurnGroup, ATimeoutComesOnARealClockToo) {
  TurnBench bench("null:generic:1?threads=1", {}, false);
  const Activation activation = bench.activate({.threshold = 9, .timeout = milliseconds(1)});
  Context context = activation.new_context().value();
  EXPECT_TRUE(context.run().ok());
  EXPECT_TRUE(context.run({.timeout = seconds(100)}).ok());
}

TEST(TurnGroup, JobsThatEndInTheLineTakeNoTurn) {
  TurnBench bench("null:generic:1?a=10ms");
  const Activation busy = bench.activate();
  const Activation waits = bench.activate();
  Context a = busy.new_context().value();
  Context b = waits.new_context().value();
  Context c = waits.new_context().value();
  auto first = a.submit().value();
  auto late = b.submit({.timeout = milliseconds(2)}).value();
  auto cancelled = c.submit().value();
  EXPECT_TRUE(cancelled.cancel());
  EXPECT_EQ(cancelled.wait().code(), Code::kCancelled);
  bench.clock->advance(milliseconds(2));
  ASSERT_TRUE(late.done());
  EXPECT_EQ(late.wait().code(), Code::kTimeout);
  bench.clock->advance(milliseconds(8));
  EXPECT_TRUE(first.wait().ok());
  EXPECT_EQ(waits.figures().turn.turns, 0U);
}

TEST(TurnGroup, ShutdownEndsWhatWaitsWithAText) {
  TurnBench bench("null:generic:1?a=10ms");
  const Activation one = bench.activate();
  const Activation two = bench.activate();
  Context a = one.new_context().value();
  Context b = two.new_context().value();
  auto runs = a.submit().value();
  auto waits = b.submit().value();
  Status told;
  waits.on_done([&](const Status& status) { told = status; });
  bench.turns.shutdown();
  ASSERT_TRUE(waits.done());
  EXPECT_EQ(told.code(), Code::kCancelled);
  EXPECT_THAT(told.to_string(), HasSubstr("was shut down while the job waited for its turn"));
  EXPECT_EQ(b.submit().error().code(), Code::kCancelled);
  EXPECT_EQ(b.run().code(), Code::kCancelled);
  EXPECT_EQ(Activation::create(bench.program, bench.joins()).error().code(), Code::kCancelled);
  bench.clock->advance(milliseconds(10));
  EXPECT_TRUE(runs.wait().ok()) << "what was let go runs on";
}

TEST(TurnGroup, WorkThatWaitsOutlivesItsHandles) {
  TurnBench bench("null:generic:1?a=10ms");
  const auto fence = std::make_shared<device::Fence>(bench.clock);
  {
    const Activation one = bench.activate();
    const Activation two = bench.activate();
    Context a = one.new_context().value();
    Context b = two.new_context().value();
    ASSERT_TRUE(a.submit());
    ASSERT_TRUE(b.submit({.signal = {fence}}));
  }
  bench.turns = {};
  EXPECT_EQ(bench.device->holdings().size(), 2U);
  bench.clock->advance(milliseconds(20));
  EXPECT_TRUE(fence->signalled() && fence->status().ok());
  EXPECT_TRUE(bench.device->holdings().empty());
}

TEST(TurnGroup, ACallbackMayDropEverythingAndThrow) {
  TurnBench bench("null:generic:1?a=1ms");
  auto one = std::make_shared<Activation>(bench.activate());
  auto two = std::make_shared<Activation>(bench.activate());
  auto a = std::make_shared<Context>(one->new_context().value());
  auto b = std::make_shared<Context>(two->new_context().value());
  auto first = a->submit().value();
  auto second = b->submit().value();
  int called = 0;
  const auto drop = [&](const Status&) {
    ++called;
    one.reset();
    two.reset();
    a.reset();
    b.reset();
    bench.turns = {};
    throw std::runtime_error("thrown by a callback");
  };
  first.on_done(drop);
  second.on_done(drop);
  first = {};
  second = {};
  bench.clock->advance(milliseconds(2));
  EXPECT_EQ(called, 2);
  EXPECT_TRUE(bench.device->holdings().empty());
}

TEST(TurnGroup, ThreadsRunAndWaitForTheirTurns) {
  TurnBench bench("null:generic:2?threads=1", {.slice = std::chrono::microseconds(50)}, false);
  std::vector<Activation> activations;
  for (int i = 0; i < 3; ++i) activations.push_back(bench.activate({}, CoreSet::platform()));
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, i] {
      Context context = activations[static_cast<std::size_t>(i % 3)].new_context().value();
      for (int n = 0; n < 100; ++n) {
        const bool waits = n % 2 == 0;
        const Status status = waits ? context.run() : context.submit().value().wait();
        if (status.ok()) ++done;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 600);
  std::uint64_t turns = 0;
  for (const Activation& each : activations) turns += each.figures().turn.turns;
  EXPECT_GE(turns, 3U);
}

TEST(TurnGroup, WhatCannotBeIsRefused) {
  TurnBench bench("null:generic:4");
  const auto code = [&](const TurnOptions& turn) {
    return Activation::create(bench.program, bench.joins(turn)).error().code();
  };
  for (const TurnOptions& wrong :
       {TurnOptions{.threshold = 0}, TurnOptions{.threshold = 2},
        TurnOptions{.timeout = milliseconds(-1)}, TurnOptions{.priority = 128},
        TurnOptions{.weight = 0}, TurnOptions{.weight = std::nan("")}})
    EXPECT_EQ(code(wrong), Code::kInvalidArgument);
  ActivateOptions exclusive = bench.joins();
  exclusive.residency = Residency::kExclusive;
  EXPECT_EQ(Activation::create(bench.program, exclusive).error().code(), Code::kInvalidArgument);
  const TurnBench other("null:generic:4");
  ActivateOptions elsewhere;
  elsewhere.turns = other.turns;
  EXPECT_EQ(Activation::create(bench.program, elsewhere).error().code(), Code::kInvalidArgument);
  const auto group = [&](const TurnGroupOptions& options) {
    const auto made = TurnGroup::create(bench.device, options);
    return made ? Code::kOk : made.error().code();
  };
  EXPECT_EQ(group({.cores = CoreSet::any(2)}), Code::kInvalidArgument);
  EXPECT_EQ(group({.cores = CoreSet::of({4})}), Code::kInvalidArgument);
  EXPECT_EQ(group({.slice = Duration{0}}), Code::kInvalidArgument);
  EXPECT_EQ(group({.longest_wait = Duration{0}}), Code::kInvalidArgument);
  EXPECT_EQ(TurnGroup::create(nullptr).error().code(), Code::kInvalidArgument);
  ActivateOptions outside;
  outside.turns = TurnGroup::create(bench.device, {.cores = CoreSet::of({0, 1})}).value();
  for (const CoreSet& cores : {CoreSet::of({1, 2}), CoreSet::any(3), CoreSet::of({9}),
                               CoreSet::any_of(CoreSet::of({2, 3}))}) {
    outside.cores = cores;
    EXPECT_EQ(Activation::create(bench.program, outside).error().code(), Code::kInvalidArgument)
        << cores.to_string();
  }
  EXPECT_TRUE(bench.device->holdings().empty());
  EXPECT_FALSE(TurnGroup());
  EXPECT_TRUE(TurnGroup().cores().empty());
}

TEST(TurnGroup, CoresThatAreHeldExclusivelyAreNotShared) {
  TurnBench bench("null:generic:1");
  const Activation held = Activation::create(bench.program).value();
  // Of the same program it may: its jobs may run there.
  EXPECT_TRUE(Activation::create(bench.program, bench.joins()));
  LoadOptions load;
  load.on = bench.device;
  load.cache = false;
  const std::string model = testing::relu_model({std::int64_t{1}, std::int64_t{8}});
  const Program other = Program::load(as_byte_span(model), load).value();
  EXPECT_EQ(Activation::create(other, bench.joins()).error().code(), Code::kOutOfCores);
}

TEST(TurnGroup, AMemberTakesCoresThatNobodyElseHolds) {
  TurnBench bench("null:generic:2");
  LoadOptions load;
  load.on = bench.device;
  load.cache = false;
  const std::string model = testing::relu_model({std::int64_t{1}, std::int64_t{8}});
  const Program other = Program::load(as_byte_span(model), load).value();
  const Activation held = Activation::create(other).value();
  const auto first = Activation::create(bench.program, bench.joins());
  ASSERT_TRUE(first) << first.error().to_string();
  const auto second = Activation::create(bench.program, bench.joins());
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ(first->cores(), second->cores()) << "the other core is held";
  EXPECT_EQ(first->cores().bits() & held.cores().bits(), 0U);
}

TEST(TurnGroup, AForkedChildIsRefused) {
  TurnBench bench("null:generic:1?threads=1", {}, false);
  const Activation activation = bench.activate();
  Context context = activation.new_context().value();
  ASSERT_TRUE(context.run().ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const bool refused = context.run().code() == Code::kWrongState &&
                         context.submit().error().code() == Code::kWrongState &&
                         activation.figures().turn.turns == 0;
    bench.turns.shutdown();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(context.run().ok());
}

}  // namespace
}  // namespace corelane
