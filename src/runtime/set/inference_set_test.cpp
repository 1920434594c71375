#include "corelane/runtime/inference_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <stdexcept>

#include "device/registry/testing/listed_faults.h"
#include "runtime/testing/hooked_device.h"
#include "runtime/testing/set_bench.h"

namespace corelane {
namespace {

using device::Fault;
using device::ListedFaults;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HookedDevice;
using testing::SetBench;

bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

std::vector<std::uint64_t> ids_of(InferenceSet& set, std::size_t count) {
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < count; ++i) {
    auto done = set.collect(TimePoint{});
    if (!done) break;
    ids.push_back(done->id());
    EXPECT_TRUE(set.release(*done).ok());
  }
  return ids;
}

void expect_figures(const InferenceSet& set, std::size_t available, std::size_t in_flight,
                    std::size_t completed, std::size_t held) {
  const SetFigures figures = set.figures();
  EXPECT_EQ(figures.available, available);
  EXPECT_EQ(figures.in_flight, in_flight);
  EXPECT_EQ(figures.completed, completed);
  EXPECT_EQ(figures.held, held);
}

TEST(InferenceSet, AFailureIsToldOnceAndBeforeItIsCollected) {
  SetBench bench("null:generic:1?a=1s");
  std::vector<Code> told;
  std::size_t completed = 9;
  SetOptions options;
  options.size = 4;
  options.attempt_time = milliseconds(10);
  options.retries = 1;
  InferenceSet set;
  options.on_failure = [&](const Status& why) {
    told.push_back(why.code());
    completed = set.figures().completed;
  };
  set = bench.set(options);
  ASSERT_TRUE(set.submit(set.acquire().value(), 1).ok());
  bench.clock->advance(milliseconds(10));
  EXPECT_TRUE(told.empty()) << "there is a further attempt";
  bench.clock->advance(milliseconds(10));
  EXPECT_THAT(told, ElementsAre(Code::kTimeout));
  EXPECT_EQ(completed, 0U);
  EXPECT_TRUE(set.collect(TimePoint{}));
  for (std::uint64_t id = 2; id < 4; ++id)
    ASSERT_TRUE(set.submit(set.acquire().value(), id).ok()) << "one runs, one waits";
  set.shutdown();
  EXPECT_EQ(told.size(), 1U) << "what the end cancels is not a failure";
  bench.clock->advance(milliseconds(10));
  EXPECT_EQ(told.size(), 2U) << "the one that ran";
}

TEST(InferenceSet, AHandleGoesRound) {
  SetBench bench("null?a=5ms");
  InferenceSet set = bench.set({.size = 2});
  SetHandle handle = set.acquire().value();
  const std::vector<float> x{1, 2, 3, 4};
  ASSERT_TRUE(handle.context().bind_input(0, SetBench::view(x)).ok());
  expect_figures(set, 1, 0, 0, 1);
  ASSERT_TRUE(set.submit(handle, 42).ok());
  expect_figures(set, 1, 1, 0, 0);
  EXPECT_EQ(handle.status().code(), Code::kWrongState) << "in flight";
  EXPECT_EQ(set.collect(TimePoint{}).error().code(), Code::kTimeout);
  bench.clock->advance(milliseconds(5));
  expect_figures(set, 1, 0, 1, 0);
  const SetHandle done = set.collect().value();
  EXPECT_EQ(done.id(), 42U);
  EXPECT_EQ(done.attempts(), 1U);
  EXPECT_TRUE(done.status().ok());
  EXPECT_EQ(SetBench::result(done), x);
  expect_figures(set, 1, 0, 0, 1);
  ASSERT_TRUE(set.release(done).ok());
  expect_figures(set, 2, 0, 0, 0);
}

/// To wake another thread for it takes longer than a job of some microseconds.
TEST(InferenceSet, OnlyWhereNoUserIsCalledTheNextJobIsLeftToTheThreadThatRanTheLast) {
  SetBench bench("null");
  std::vector<bool> brief;
  const Program program = HookedDevice::program(
      std::make_shared<HookedDevice>(bench.device, [&](std::size_t, const auto& job) -> Status {
        brief.push_back(job.brief_callbacks);
        return {};
      }));
  const std::vector<float> x{1, 2, 3, 4};
  const auto submit = [&](const SetOptions& options, const SetCallback& done) {
    InferenceSet set = InferenceSet::create(program, options).value();
    const SetHandle handle = set.acquire().value();
    EXPECT_TRUE(handle.context().bind_input(0, SetBench::view(x)).ok());
    EXPECT_TRUE(set.submit(handle, 1, done).ok());
    bench.clock->run_all();
  };
  submit({.size = 1}, nullptr);
  submit({.size = 1}, [](const SetHandle&) {});
  submit({.size = 1, .replay = true}, nullptr);
  submit({.size = 1, .in_order = true}, nullptr);
  EXPECT_THAT(brief, ElementsAre(true, false, false, false));
}

TEST(InferenceSet, TensorsAreBoundAndSubmittedInOneCall) {
  SetBench bench("null");
  InferenceSet set = bench.set({.size = 1});
  const std::vector<float> x{4, 3, 2, 1};
  std::vector<float> y(4);
  SetTensors tensors{{SetBench::view(x)},
                     {{y.data(), y.size() * sizeof(float), DType::kF32, Shape{1, 4}, {}, {}}}};
  ASSERT_TRUE(set.submit(tensors, 5));
  EXPECT_EQ(set.collect_id(5).value().id(), 5U);
  EXPECT_EQ(y, x);
  EXPECT_EQ(set.submit(tensors, 6, bench.in(milliseconds(0))).error().code(), Code::kTimeout)
      << "the handle is held";
}

TEST(InferenceSet, ARefusedSubmissionHoldsNothing) {
  SetBench bench("null");
  InferenceSet set = bench.set({.size = 1});
  const std::vector<float> x(4);
  TensorView wrong = SetBench::view(x);
  wrong.shape = Shape{2, 2};
  EXPECT_EQ(set.submit(SetTensors{{wrong}, {}}).error().code(), Code::kShapeMismatch);
  EXPECT_THAT(set.submit(SetTensors{}).error().message(), HasSubstr("input 'x' was left out"));
  EXPECT_EQ(set.submit(SetTensors{{wrong, wrong}, {}}).error().code(), Code::kInvalidArgument);
  expect_figures(set, 1, 0, 0, 0);
}

/// The user's input stayed bound to the handle where its output was refused.
TEST(InferenceSet, ARefusedSubmissionLeavesNothingBound) {
  SetBench bench("null:generic:1");
  InferenceSet set = bench.set({.size = 1});
  const std::vector<float> x{1, 2, 3, 4};
  std::vector<float> small(2);
  const MutableTensorView y{small.data(), 8, DType::kF32, Shape{1, 2}, {}, {}};
  EXPECT_FALSE(set.submit(SetTensors{{SetBench::view(x)}, {y}}));
  const SetHandle handle = set.acquire().value();
  EXPECT_NE(handle.context().input(0).value().data, x.data());
  EXPECT_TRUE(set.release(handle).ok());
}

TEST(InferenceSet, InputsMayBeGivenInPartWhereTheSetSaysSo) {
  SetBench bench("null");
  InferenceSet set = bench.set({.size = 1, .partial_inputs = {"x"}});
  const std::vector<float> whole{1, 2, 3, 4};
  const std::vector<float> part{9, 8};
  const TensorView two{part.data(), 2 * sizeof(float), DType::kF32, Shape{1, 2}, {}, {}};
  std::vector<std::vector<float>> results;
  for (const TensorView& view : {SetBench::view(whole), two, TensorView{}}) {
    ASSERT_TRUE(set.submit(SetTensors{{view}, {}}));
    const SetHandle done = set.collect().value();
    results.push_back(SetBench::result(done));
    ASSERT_TRUE(set.release(done).ok());
  }
  EXPECT_EQ(results[0], whole);
  EXPECT_EQ(results[1], (std::vector<float>{9, 8, 3, 4}));
  EXPECT_EQ(results[2], results[1]) << "left out";
  TensorView bytes = two;
  bytes.dtype = DType::kU8;
  EXPECT_EQ(set.submit(SetTensors{{bytes}, {}}).error().code(), Code::kTypeMismatch);
}

TEST(InferenceSet, WhatAHandleKeepsStaysUntilItsInferenceHasEnded) {
  SetBench bench("null?a=5ms");
  InferenceSet set = bench.set({.size = 1});
  SetHandle handle = set.acquire().value();
  const auto first = std::make_shared<int>(1);
  const auto second = std::make_shared<int>(2);
  const auto input = std::make_shared<std::vector<float>>(4);
  handle.keep(first);
  handle.keep(second);
  EXPECT_EQ(first.use_count(), 1) << "another one is kept";
  handle.keep(input);
  ASSERT_TRUE(handle.context().bind_input(0, SetBench::view(*input)).ok());
  ASSERT_TRUE(set.submit(handle, 1).ok());
  handle = {};
  set = {};
  EXPECT_EQ(input.use_count(), 2) << "the set has gone, its inference runs";
  bench.clock->advance(milliseconds(5));
  EXPECT_EQ(input.use_count(), 1);
}

TEST(InferenceSet, CompletionComesInFourForms) {
  SetBench bench("null?a=1ms");
  InferenceSet set = bench.set({.size = 4});
  std::vector<std::uint64_t> called;
  const int fd = set.fd().value();
  EXPECT_EQ(set.fd().value(), fd);
  ASSERT_TRUE(set.submit(set.acquire().value(), 1).ok());
  ASSERT_TRUE(set.submit(set.acquire().value(), 2,
                         [&](const SetHandle& done) {
                           called.push_back(done.id());
                           EXPECT_TRUE(set.release(done).ok());
                         })
                  .ok());
  auto future = set.submit_future(set.acquire().value(), 3).value();
  ASSERT_TRUE(set.submit(set.acquire().value(), 4).ok());
  EXPECT_FALSE(readable(fd));
  bench.clock->advance(milliseconds(2));
  EXPECT_EQ(called, std::vector<std::uint64_t>{2});
  const SetHandle third = future.get();
  EXPECT_EQ(third.id(), 3U);
  EXPECT_TRUE(set.release(third).ok());
  EXPECT_TRUE(readable(fd));
  EXPECT_EQ(set.collect_id(4).value().id(), 4U);
  EXPECT_TRUE(readable(fd));
  EXPECT_EQ(set.collect().value().id(), 1U);
  EXPECT_FALSE(readable(fd)) << "nothing is left";
}

TEST(InferenceSet, AnIdThatWasNeverSubmittedIsNoHang) {
  SetBench bench("null");
  InferenceSet set = bench.set({.size = 1});
  EXPECT_EQ(set.collect_id(9).error().code(), Code::kNotFound);
  EXPECT_FALSE(set.cancel(9));
}

TEST(InferenceSet, OfTwoWithOneIdTheOneInFlightIsCancelled) {
  SetBench bench("null:rk3566?a=10ms");
  InferenceSet set = bench.set({.size = 3});
  ASSERT_TRUE(set.submit(set.acquire().value(), 7).ok());
  bench.clock->advance(milliseconds(10));
  EXPECT_EQ(set.figures().completed, 1U);
  ASSERT_TRUE(set.submit(set.acquire().value(), 1).ok());
  ASSERT_TRUE(set.submit(set.acquire().value(), 7).ok());
  EXPECT_TRUE(set.cancel(7)) << "the second, which waits for the core";
  EXPECT_TRUE(set.collect_id(7).value().status().ok());
  EXPECT_EQ(set.collect_id(7).value().status().code(), Code::kCancelled);
}

TEST(InferenceSet, OrderIsThatOfSubmissionOnRequest) {
  for (const bool in_order : {false, true}) {
    SetBench bench("null:rk3588?a=10ms");
    InferenceSet set = bench.set({.size = 4, .in_order = in_order});
    std::vector<std::uint64_t> called;
    const auto note = [&](const SetHandle& done) {
      called.push_back(done.id());
      (void)set.release(done);
    };
    for (std::uint64_t id = 0; id < 4; ++id)
      ASSERT_TRUE(set.submit(set.acquire().value(), id, note).ok());
    EXPECT_TRUE(set.cancel(3)) << "the fourth waits for a core";
    EXPECT_EQ(called.size(), in_order ? 0U : 1U);
    bench.clock->advance(milliseconds(10));
    EXPECT_EQ(called, in_order ? (std::vector<std::uint64_t>{0, 1, 2, 3})
                               : (std::vector<std::uint64_t>{3, 0, 1, 2}));
  }
}

TEST(InferenceSet, CollectorsAndCallbacksKeepOneOrder) {
  SetBench bench("null:rk3588?a=10ms");
  InferenceSet set = bench.set({.size = 3, .in_order = true});
  std::vector<std::uint64_t> called;
  ASSERT_TRUE(set.submit(set.acquire().value(), 0).ok());
  ASSERT_TRUE(set.submit(set.acquire().value(), 1,
                         [&](const SetHandle& done) { called.push_back(done.id()); })
                  .ok());
  bench.clock->advance(milliseconds(10));
  EXPECT_TRUE(called.empty()) << "the first was not collected";
  EXPECT_EQ(set.collect().value().id(), 0U);
  EXPECT_EQ(called, std::vector<std::uint64_t>{1});
}

TEST(InferenceSet, AttemptsEndAtTheirTimesExactly) {
  for (const int time : {0, 1, 10})
    for (const std::uint32_t retries : {0U, 1U, 5U}) {
      SCOPED_TRACE(::testing::Message() << time << " ms, " << retries << " retries");
      SetBench bench("null:rk3588?a=1s");
      InferenceSet set =
          bench.set({.size = 1, .attempt_time = milliseconds(time), .retries = retries});
      const TimePoint begin = bench.clock->now();
      ASSERT_TRUE(set.submit(set.acquire().value(), 7).ok());
      while (set.figures().in_flight != 0) bench.clock->advance_to(bench.clock->next_timer());
      EXPECT_EQ(bench.clock->now() - begin, milliseconds(time) * (retries + 1));
      const SetHandle done = set.collect().value();
      EXPECT_EQ(done.status().code(), Code::kTimeout);
      EXPECT_EQ(done.attempts(), retries + 1);
      if (retries > 0)
        EXPECT_THAT(done.status().message(),
                    HasSubstr("attempt " + std::to_string(retries + 1) + ":"));
      EXPECT_TRUE(set.release(done).ok());
    }
}

TEST(InferenceSet, AnAttemptAfterAResetSucceeds) {
  auto faults = std::make_shared<ListedFaults>(std::vector{Fault::kCrash, Fault::kHang});
  SetBench bench("null:rk3588?a=2ms", true, faults);
  InferenceSet set = bench.set({.size = 1, .attempt_time = milliseconds(10), .retries = 2});
  const std::vector<float> x{1, 1, 2, 3};
  ASSERT_TRUE(set.submit(SetTensors{{SetBench::view(x)}, {}}, 1));
  bench.clock->advance(milliseconds(30));
  const SetHandle done = set.collect().value();
  EXPECT_TRUE(done.status().ok()) << done.status().to_string();
  EXPECT_EQ(done.attempts(), 3U) << "a crash, a hang, a result";
  EXPECT_EQ(SetBench::result(done), x);
}

TEST(InferenceSet, NoAttemptWritesWhereAnAbandonedOneMayStillWrite) {
  SetBench bench("null:rk3588?a=1s");
  InferenceSet set = bench.set({.size = 1, .attempt_time = milliseconds(10), .retries = 5});
  const SetHandle handle = set.acquire().value();
  auto buffer = bench.device->create_buffer(4096, {}).value();
  ASSERT_TRUE(handle.context().bind_output(0, buffer).ok());
  ASSERT_TRUE(set.submit(handle, 1).ok());
  bench.clock->advance(milliseconds(10));
  const SetHandle done = set.collect().value();
  EXPECT_EQ(done.status().code(), Code::kBusy);
  EXPECT_THAT(done.status().message(), HasSubstr("attempt 1: timeout"));
  EXPECT_THAT(done.status().message(), HasSubstr("attempt 2: busy"));
  bench.clock->advance(seconds(2));
  EXPECT_TRUE(set.submit(done, 2).ok()) << "the engine has returned";
}

TEST(InferenceSet, AFailureComesWithItsOwnHandleAndTheOthersGoOn) {
  SetBench bench("null?fail=3");
  InferenceSet set = bench.set({.size = 3, .in_order = true});
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(set.submit(set.acquire().value(), id).ok());
  for (std::uint64_t id = 0; id < 3; ++id) {
    const SetHandle done = set.collect().value();
    EXPECT_EQ(done.id(), id);
    EXPECT_EQ(done.status().code(), id == 2 ? Code::kEngineFailed : Code::kOk);
    EXPECT_TRUE(set.release(done).ok());
  }
  expect_figures(set, 3, 0, 0, 0);
}

TEST(InferenceSet, MisuseIsNamedAndChangesNothing) {
  SetBench bench("null?a=1ms");
  InferenceSet set = bench.set({.size = 2});
  InferenceSet other = bench.set({.size = 1});
  SetHandle handle = set.acquire().value();
  EXPECT_EQ(other.submit(handle).code(), Code::kInvalidArgument) << "of another set";
  EXPECT_EQ(other.release(handle).code(), Code::kInvalidArgument);
  EXPECT_EQ(set.submit(SetHandle()).code(), Code::kInvalidArgument);
  ASSERT_TRUE(set.submit(handle, 1).ok());
  EXPECT_EQ(set.submit(handle, 2).code(), Code::kBusy) << "in flight";
  EXPECT_EQ(set.release(handle).code(), Code::kWrongState) << "in flight";
  bench.clock->advance(milliseconds(1));
  EXPECT_EQ(set.submit(handle, 2).code(), Code::kWrongState) << "not collected";
  EXPECT_EQ(set.release(handle).code(), Code::kWrongState) << "not collected";
  expect_figures(set, 1, 0, 1, 0);
  EXPECT_EQ(InferenceSet().acquire().error().code(), Code::kWrongState);
  EXPECT_EQ(SetHandle().status().code(), Code::kWrongState);
  EXPECT_EQ(SetHandle().context().run().code(), Code::kWrongState);
}

TEST(InferenceSet, OptionsThatCannotBeAreRefused) {
  SetBench bench("null:rk3588");
  for (const SetOptions& options : {
           SetOptions{.size = 0},
           SetOptions{.activations = 0},
           SetOptions{.size = 65536, .activations = 2},
           SetOptions{.cores = device::CoreSet::of({3})},
           SetOptions{.priority = 128},
           SetOptions{.attempt_time = Duration(-1)},
           SetOptions{.retries = 101},
           SetOptions{.partial_inputs = {"z"}},
       })
    EXPECT_EQ(InferenceSet::create(bench.program, options).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(InferenceSet::create(Program()).error().code(), Code::kWrongState);
}

TEST(InferenceSet, AThreadThatWaitsForItselfGetsAnError) {
  SetBench bench("null");
  InferenceSet set = bench.set({.size = 2});
  auto refused = std::async(std::launch::async, [&] {
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(set.submit(set.acquire().value()).ok());
    return set.acquire();
  });
  while (refused.wait_for(seconds(0)) != std::future_status::ready)
    bench.clock->advance(milliseconds(100));
  const auto result = refused.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kWrongState);
  EXPECT_THAT(result.error().message(), HasSubstr("collect and release first"));
}

TEST(InferenceSet, AThreadThatWaitsForAnotherOneGetsItsHandle) {
  SetBench bench("null");
  InferenceSet set = bench.set({.size = 1});
  const SetHandle held = set.acquire().value();
  auto got = std::async(std::launch::async, [&] { return set.acquire(); });
  for (int i = 0; i < 100; ++i) bench.clock->advance(seconds(1));
  EXPECT_TRUE(set.release(held).ok());
  EXPECT_TRUE(got.get());
}

TEST(InferenceSet, CallbacksMaySubmitShutDownDropTheSetAndThrow) {
  SetBench bench("null?a=1ms");
  auto set = std::make_unique<InferenceSet>(bench.set({.size = 2}));
  int runs = 0;
  SetCallback again = [&](const SetHandle& done) {
    if (++runs < 3) {
      EXPECT_TRUE(set->submit(done, 1, again).ok());
      throw std::runtime_error("as users do");
    }
    EXPECT_TRUE(set->release(done).ok());
    set->shutdown();
    set.reset();
  };
  ASSERT_TRUE(set->submit(set->acquire().value(), 1, again).ok());
  bench.clock->advance(milliseconds(10));
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(set, nullptr);
}

TEST(InferenceSet, ASetThatWasShutDownGivesWhatHasCompletedAndRefusesTheRest) {
  SetBench bench("null:rk3566?a=1ms");
  InferenceSet set = bench.set({.size = 4});
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(set.submit(set.acquire().value(), id).ok());
  bench.clock->advance(milliseconds(1));
  set.shutdown();
  EXPECT_EQ(set.acquire().error().code(), Code::kCancelled);
  EXPECT_THAT(ids_of(set, 4), ::testing::ElementsAre(0, 2)) << "one runs, one was cancelled";
  EXPECT_EQ(set.collect_id(1).error().code(), Code::kCancelled) << "it does not wait";
  EXPECT_EQ(set.collect_id(2).error().code(), Code::kCancelled) << "collected by another caller";
  bench.clock->advance(milliseconds(1));
  EXPECT_TRUE(set.drain());
  EXPECT_THAT(ids_of(set, 4), ::testing::ElementsAre(1));
}

}  // namespace
}  // namespace corelane
