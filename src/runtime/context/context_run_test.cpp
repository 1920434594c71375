#include <gtest/gtest.h>

#include <array>

#include "runtime/testing/fake_program.h"

namespace corelane {
namespace {

using namespace std::chrono_literals;
using testing::FakeConfig;
using testing::FakeSetup;
using testing::floats_of;
using testing::one_in_one_out;
using testing::view_of;

FakeConfig held(const Shape& shape) {
  FakeConfig config = one_in_one_out(shape);
  config.hold = true;
  return config;
}

TEST(ContextRun, OptionsReachTheDevice) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  Context context = setup.program.new_context().value();
  RunOptions options;
  options.cores = device::CoreSet::of({2});
  options.priority = 7;
  options.tag = 99;
  ASSERT_TRUE(context.run(options).ok());
  EXPECT_EQ(setup.device->last.cores, device::CoreSet::of({2}));
  EXPECT_EQ(setup.device->last.priority, 7);
  EXPECT_EQ(setup.device->last.deadline, kNever);
  EXPECT_EQ(context.record().tag, 99U);
  EXPECT_EQ(context.times().queue, 2us);
  EXPECT_EQ(context.times().device, 5us);
}

TEST(ContextRun, FencesGetAFailureBeforeTheJob) {
  FakeSetup setup(one_in_one_out(Shape{2}));
  Context context = setup.program.new_context().value();
  const std::array<std::uint8_t, 2> bytes = {1, 2};
  ASSERT_TRUE(
      context.bind_input(0, {bytes.data(), 2, DType::kU8, Shape{2}, {}, {}}).ok());  // Converted.
  RunOptions options;
  options.wait = {std::make_shared<device::Fence>()};
  options.signal = {std::make_shared<device::Fence>()};
  options.wait[0]->signal(error(Code::kEngineFailed, "the producer failed"));
  EXPECT_EQ(context.run(options).code(), Code::kEngineFailed);
  ASSERT_TRUE(options.signal[0]->signalled());
  EXPECT_EQ(options.signal[0]->status().code(), Code::kEngineFailed);
}

TEST(ContextRun, NullFenceIsNamedByTheContextThatUsesItItself) {
  FakeSetup setup(one_in_one_out(Shape{2}));
  Context context = setup.program.new_context().value();
  const std::array<std::uint8_t, 2> bytes = {1, 2};
  ASSERT_TRUE(
      context.bind_input(0, {bytes.data(), 2, DType::kU8, Shape{2}, {}, {}}).ok());  // Converted.
  RunOptions options;
  options.signal = {std::make_shared<device::Fence>(), nullptr};
  const Status status = context.run(options);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("fence 1 of the signal list"), std::string::npos);
}

TEST(ContextRun, TheProgramsCoresApplyToAnyOnly) {
  const FakeConfig config = one_in_one_out(Shape{1});
  ProgramDescription description = testing::fake_description(config);
  description.cores = 2;
  description.batch = 4;
  FakeSetup setup(config, description);
  Context context = setup.program.new_context().value();
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(setup.device->last.cores, device::CoreSet::any(2));
  EXPECT_EQ(setup.device->last.batch, 4U);
  RunOptions one;
  one.cores = device::CoreSet::of({0});
  ASSERT_TRUE(context.run(one).ok());
  EXPECT_EQ(setup.device->last.cores, device::CoreSet::of({0}));
}

TEST(ContextRun, TheProgramsCoresAreBoundedByTheDevice) {
  const FakeConfig config = one_in_one_out(Shape{1});
  ProgramDescription description = testing::fake_description(config);
  description.cores = 16;
  FakeSetup setup(config, description);
  Context context = setup.program.new_context().value();
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(setup.device->last.cores, device::CoreSet::any(3));
}

TEST(ContextRun, TimeoutBecomesADeadline) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  setup.device->time->advance(1s);
  Context context = setup.program.new_context().value();
  RunOptions options;
  options.timeout = 5ms;
  ASSERT_TRUE(context.run(options).ok());
  EXPECT_EQ(setup.device->last.deadline, TimePoint(1005ms));
  options.timeout = Duration::max();
  ASSERT_TRUE(context.run(options).ok());
  EXPECT_EQ(setup.device->last.deadline, kNever);
  options.timeout = -1ns;
  EXPECT_EQ(context.run(options).code(), Code::kInvalidArgument);
}

TEST(ContextRun, UserMemoryIsShieldedOnlyWhereSomeIsBound) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  Context context = setup.program.new_context().value();
  RunOptions options;
  options.timeout = 5ms;
  ASSERT_TRUE(context.run(options).ok());
  EXPECT_TRUE(setup.device->last.direct_user_memory);
  const std::vector<float> x(1);
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{1})).ok());
  ASSERT_TRUE(context.run(options).ok());
  EXPECT_FALSE(setup.device->last.direct_user_memory);
  options.direct_user_memory = true;
  ASSERT_TRUE(context.run(options).ok());
  EXPECT_TRUE(setup.device->last.direct_user_memory);
}

TEST(ContextSubmit, ConvertedOutputsAreWrittenBeforeTheCompletion) {
  FakeSetup setup(held(Shape{2}));
  Context context = setup.program.new_context().value();
  const std::array<std::int8_t, 2> x{1, 2};
  std::array<std::int32_t, 2> y{};
  ASSERT_TRUE(context.bind_input(0, TensorView{x.data(), 2, DType::kI8, Shape{2}, {}, {}}).ok());
  ASSERT_TRUE(
      context.bind_output(0, MutableTensorView{y.data(), 8, DType::kI32, Shape{2}, {}, {}}).ok());
  Inference inference = context.submit().value();
  EXPECT_FALSE(inference.done());
  std::int32_t seen = 0;
  inference.on_done([&](const Status& status) { seen = status.ok() ? y[1] : -1; });
  setup.device->finish_next();
  EXPECT_TRUE(inference.done());
  EXPECT_EQ(seen, 5);
  EXPECT_TRUE(inference.wait().ok());
  EXPECT_EQ(y[0], 3);
  EXPECT_EQ(inference.times().device, 5us);
  int late = 0;
  inference.on_done([&](const Status&) { ++late; });
  EXPECT_EQ(late, 1);
}

TEST(ContextSubmit, StampsSayWhenAnInferenceGotWhere) {
  FakeSetup setup(held(Shape{2}));
  VirtualClock& time = *setup.device->time;
  Context context = setup.program.new_context().value();
  const std::array<std::int8_t, 2> x{1, 2};
  std::array<std::int32_t, 2> y{};
  ASSERT_TRUE(context.bind_input(0, TensorView{x.data(), 2, DType::kI8, Shape{2}, {}, {}}).ok());
  ASSERT_TRUE(
      context.bind_output(0, MutableTensorView{y.data(), 8, DType::kI32, Shape{2}, {}, {}}).ok());
  time.advance(3us);
  Inference inference = context.submit().value();
  EXPECT_EQ(inference.stamps().copy_out, TimePoint{}) << "not there yet";
  time.advance(9us);
  setup.device->finish_next();
  for (const RunStamps& stamps : {inference.stamps(), context.stamps()}) {
    EXPECT_EQ(stamps.enqueued, TimePoint(3us));
    EXPECT_EQ(stamps.copy_in, TimePoint(3us));
    EXPECT_EQ(stamps.copied_in, TimePoint(3us));
    EXPECT_EQ(stamps.copy_out, TimePoint(12us));
    EXPECT_EQ(stamps.copied_out, TimePoint(12us));
  }
  ASSERT_TRUE(context.unbind_input(0).ok() && context.unbind_output(0).ok());
  ASSERT_TRUE(context.submit());
  EXPECT_EQ(context.stamps().enqueued, TimePoint(12us));
  EXPECT_EQ(context.stamps().copied_in, TimePoint{}) << "nothing is converted";
}

TEST(ContextSubmit, FailedJobWritesNothingToConvertedOutputs) {
  FakeSetup setup(held(Shape{1}));
  Context context = setup.program.new_context().value();
  std::int32_t y = 77;
  ASSERT_TRUE(context.bind_output(0, MutableTensorView{&y, 4, DType::kI32, Shape{1}, {}, {}}).ok());
  Inference inference = context.submit().value();
  setup.device->finish_next(Status(Code::kTimeout, "late"), false);
  EXPECT_EQ(inference.wait().code(), Code::kTimeout);
  EXPECT_EQ(y, 77);
}

TEST(ContextSubmit, AContextIsBusyUntilItsInferenceIsDone) {
  FakeSetup setup(held(Shape{1}));
  Context context = setup.program.new_context().value();
  Inference inference = context.submit().value();
  EXPECT_EQ(context.submit().error().code(), Code::kBusy);
  EXPECT_EQ(context.run().code(), Code::kBusy);
  EXPECT_EQ(context.unbind_input(0).code(), Code::kBusy);
  EXPECT_EQ(context.output(0).error().code(), Code::kBusy);
  EXPECT_TRUE(context.duplicate());
  setup.device->finish_next();
  EXPECT_TRUE(context.output(0));
  EXPECT_TRUE(context.run().ok());
}

TEST(ContextSubmit, AnAbandonedInferenceKeepsItsTensorsAndTheContextGetsNewOnes) {
  for (const Shape& declared : {Shape{1}, Shape{-1}}) {
    FakeSetup setup(held(declared));
    Context context = setup.program.new_context().value();
    const std::vector<float> x{4};
    ASSERT_TRUE(context.set_input(0, view_of(x, Shape{1})).ok());
    Inference inference = context.submit().value();
    const auto held_bindings = setup.device->last.bindings;
    const void* held_input = held_bindings->input(0).value().data;
    setup.device->finish_next(Status(Code::kTimeout, "late"), false);
    EXPECT_EQ(context.output(0).error().code(), Code::kWrongState);
    ASSERT_TRUE(context.run().ok());
    EXPECT_NE(setup.device->last.bindings, held_bindings);
    EXPECT_EQ(floats_of(context.output(0).value()), std::vector<float>{9});
    EXPECT_NE(context.input(0).value().data, held_input);
  }
}

TEST(ContextSubmit, MemoryOfTheCallerInUseByAnAbandonedInferenceKeepsTheContextBusy) {
  FakeSetup setup(held(Shape{1}));
  Context context = setup.program.new_context().value();
  const std::vector<float> x{4};
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{1})).ok());
  RunOptions options;
  options.timeout = 1ms;
  ASSERT_TRUE(context.submit(options));
  setup.device->finish_next(Status(Code::kTimeout, "late"), false);
  options.direct_user_memory = true;
  ASSERT_TRUE(context.submit(options));  // The one before was shielded.
  const auto completion = setup.device->finish_next(Status(Code::kTimeout, "late"), false);
  EXPECT_EQ(context.run().code(), Code::kBusy);
  completion->release();
  EXPECT_TRUE(context.run().ok());
}

TEST(ContextSubmit, CallbacksMaySubmitTheNextInference) {
  FakeSetup setup(held(Shape{1}));
  Context context = setup.program.new_context().value();
  float y = 0;
  ASSERT_TRUE(context.bind_output(0, MutableTensorView{&y, 4, DType::kF32, Shape{1}, {}, {}}).ok());
  Inference first = context.submit().value();
  Result<Inference> second = error(Code::kWrongState, "not yet");
  first.on_done([&](const Status&) { second = context.submit(); });
  setup.device->finish_next();
  ASSERT_TRUE(second) << second.error().to_string();
  setup.device->finish_next();
  EXPECT_TRUE(second->wait().ok());
}

TEST(ContextSubmit, ThrowingCallbackIsDropped) {
  FakeSetup setup(held(Shape{1}));
  Context context = setup.program.new_context().value();
  Inference inference = context.submit().value();
  int after = 0;
  inference.on_done([](const Status&) { throw 42; });
  inference.on_done([&](const Status&) { ++after; });
  setup.device->finish_next();
  EXPECT_EQ(after, 1);
}

TEST(ContextSubmit, HandlesMayGoInAnyOrderWhileWorkIsInFlight) {
  FakeSetup setup(held(Shape{1}));
  std::int32_t y = 0;
  Inference inference;
  {
    Context context = setup.program.new_context().value();
    ASSERT_TRUE(
        context.bind_output(0, MutableTensorView{&y, 4, DType::kI32, Shape{1}, {}, {}}).ok());
    inference = context.submit().value();
  }
  setup.program = {};
  setup.device->finish_next();
  EXPECT_TRUE(inference.wait().ok());
  EXPECT_EQ(y, 1);
}

TEST(ContextSubmit, FencesAreSignalledAfterConvertedOutputsAreWritten) {
  FakeSetup setup(held(Shape{1}));
  Context context = setup.program.new_context().value();
  std::int32_t y = 0;
  ASSERT_TRUE(context.bind_output(0, MutableTensorView{&y, 4, DType::kI32, Shape{1}, {}, {}}).ok());
  RunOptions options;
  options.signal = {std::make_shared<device::Fence>()};
  std::int32_t seen = -1;
  options.signal[0]->on_signal([&](const Status&) { seen = y; });
  Inference inference = context.submit(options).value();
  EXPECT_TRUE(setup.device->last.signal.empty());
  setup.device->finish_next();
  EXPECT_EQ(seen, 1);
}

TEST(ContextSubmit, ConvertedInputCannotWaitForAFence) {
  FakeSetup setup(held(Shape{1}));
  Context context = setup.program.new_context().value();
  const std::int8_t x = 1;
  ASSERT_TRUE(context.bind_input(0, TensorView{&x, 1, DType::kI8, Shape{1}, {}, {}}).ok());
  RunOptions options;
  options.wait = {std::make_shared<device::Fence>()};
  const auto refused = context.submit(options);
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
  EXPECT_NE(refused.error().message().find("'x'"), std::string::npos);
  options.wait[0]->signal();
  EXPECT_TRUE(context.run(options).ok());  // run() waits before it converts.
}

TEST(ContextSubmit, FailedFenceFailsTheRunThatWaitsForIt) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  Context context = setup.program.new_context().value();
  const std::int8_t x = 1;
  ASSERT_TRUE(context.bind_input(0, TensorView{&x, 1, DType::kI8, Shape{1}, {}, {}}).ok());
  RunOptions options;
  options.wait = {std::make_shared<device::Fence>()};
  options.wait[0]->signal(Status(Code::kDeviceReset, "producer died"));
  EXPECT_EQ(context.run(options).code(), Code::kDeviceReset);
  options.wait[0] = nullptr;
  EXPECT_EQ(context.run(options).code(), Code::kInvalidArgument);
}

TEST(ContextSubmit, AnInferenceNeverSubmittedRefusesCalls) {
  Inference none;
  EXPECT_FALSE(none.done());
  EXPECT_FALSE(none.cancel());
  EXPECT_EQ(none.wait().code(), Code::kWrongState);
}

}  // namespace
}  // namespace corelane
