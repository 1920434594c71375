// Contexts of a device that was lost and is back: the next call prepares the program again.
#include <gtest/gtest.h>

#include "device/registry/testing/listed_faults.h"
#include "runtime/testing/fake_program.h"
#include "runtime/testing/set_bench.h"

namespace corelane {
namespace {

using device::Fault;
using device::ListedFaults;
using std::chrono::milliseconds;
using testing::FakeConfig;
using testing::FakeSetup;
using testing::floats_of;
using testing::one_in_one_out;
using testing::SetBench;
using testing::struck_once;
using testing::view_of;

Status ends(SetBench& bench, Inference inference) {
  while (!inference.done()) bench.clock->advance(milliseconds(1));
  return inference.wait();
}

TEST(ContextLoss, InferencesFailUntilTheDeviceIsBackAndRunThen) {
  SetBench bench("null?a=1ms", true, struck_once());
  Context context = bench.program.new_context().value();
  const std::vector<float> x{1, 2, 3, 4};
  ASSERT_TRUE(context.set_input(0, SetBench::view(x)).ok());
  const Status lost = ends(bench, context.submit().value());
  EXPECT_EQ(lost.code(), Code::kDeviceLost) << lost.to_string();
  EXPECT_NE(lost.to_string().find("injected fault"), std::string::npos) << lost.to_string();
  const Status refused = context.submit().error();
  EXPECT_EQ(refused.code(), Code::kDeviceLost);
  EXPECT_NE(refused.to_string().find("try again when it is back"), std::string::npos);
  bench.clock->advance(milliseconds(30));
  const Status again = ends(bench, context.submit().value());
  ASSERT_TRUE(again.ok()) << again.to_string();
  EXPECT_EQ(floats_of(context.output(0).value()), x) << "its own input was kept";
}

TEST(ContextLoss, BoundMemoryStaysBound) {
  SetBench bench("null?a=1ms", true, struck_once());
  Context context = bench.program.new_context().value();
  const std::vector<float> x{4, 3, 2, 1};
  auto buffer = bench.device->create_buffer(16, {}).value();
  ASSERT_TRUE(context.bind_input(0, SetBench::view(x)).ok());
  ASSERT_TRUE(context.bind_output(0, buffer).ok());
  EXPECT_EQ(ends(bench, context.submit().value()).code(), Code::kDeviceLost);
  bench.clock->advance(milliseconds(30));
  ASSERT_TRUE(ends(bench, context.submit().value()).ok());
  EXPECT_EQ(context.output(0).value().data, buffer->data());
  EXPECT_EQ(floats_of(context.output(0).value()), x);
}

TEST(ContextLoss, AContextThatWasIdleRunsAgainToo) {
  SetBench bench("null?a=1ms", true, struck_once());
  Context idle = bench.program.new_context().value();
  const std::vector<float> x{1, 1, 2, 2};
  ASSERT_TRUE(idle.set_input(0, SetBench::view(x)).ok());
  Context struck = bench.program.new_context().value();
  EXPECT_EQ(ends(bench, struck.submit().value()).code(), Code::kDeviceLost);
  bench.clock->advance(milliseconds(30));
  ASSERT_TRUE(ends(bench, idle.submit().value()).ok());
  EXPECT_EQ(floats_of(idle.output(0).value()), x);
  Context made_after = bench.program.new_context().value();
  EXPECT_TRUE(ends(bench, made_after.submit().value()).ok());
}

TEST(ContextLoss, MemoryThatAnAbandonedRunReadsIsNotWritten) {
  SetBench bench("null:generic:2?a=1ms", true,
                 std::make_shared<ListedFaults>(std::vector{Fault::kNone, Fault::kLost}));
  Context running = bench.program.new_context().value();
  Context struck = bench.program.new_context().value();
  const std::vector<float> before{1, 1, 1, 1};
  const std::vector<float> after{2, 2, 2, 2};
  ASSERT_TRUE(running.set_input(0, SetBench::view(before)).ok());
  Inference abandoned = running.submit().value();
  Inference second = struck.submit().value();
  ASSERT_EQ(abandoned.wait().code(), Code::kDeviceLost);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(running.set_input(0, SetBench::view(after)).code(), Code::kDeviceLost) << i;
  bench.clock->advance(milliseconds(30));
  ASSERT_TRUE(running.set_input(0, SetBench::view(after)).ok());
  ASSERT_TRUE(ends(bench, running.submit().value()).ok());
  EXPECT_EQ(floats_of(running.output(0).value()), after);
  EXPECT_EQ(second.wait().code(), Code::kDeviceLost);
}

TEST(ContextLoss, TheProgramIsPreparedOnceForAllItsContexts) {
  FakeSetup setup(one_in_one_out(Shape{2}));
  Context one = setup.program.new_context().value();
  Context two = setup.program.new_context().value();
  ASSERT_TRUE(one.run().ok());
  EXPECT_EQ(setup.device->prepared.size(), 1U);
  ++*setup.device->losses;
  ASSERT_TRUE(one.run().ok());
  ASSERT_TRUE(two.run().ok());
  EXPECT_EQ(setup.device->prepared.size(), 2U);
  ASSERT_TRUE(setup.program.new_context().value().run().ok());
  EXPECT_EQ(setup.device->prepared.size(), 2U);
}

TEST(ContextLoss, WhatCannotBePreparedAgainSaysWhyAndIsTriedAgain) {
  FakeSetup setup(one_in_one_out(Shape{2}));
  Context context = setup.program.new_context().value();
  ++*setup.device->losses;
  setup.device->on_prepare = [](const device::PrepareOptions&) {
    return error(Code::kOutOfMemory, "fake: no memory");
  };
  EXPECT_EQ(context.run().code(), Code::kOutOfMemory);
  EXPECT_EQ(context.submit().error().code(), Code::kOutOfMemory);
  setup.device->on_prepare = nullptr;
  EXPECT_TRUE(context.run().ok());
}

TEST(ContextLoss, OpenDimensionsStayOpen) {
  FakeSetup setup(one_in_one_out(Shape{Shape::kOpen}));
  Context context = setup.program.new_context().value();
  std::vector<float> x{1, 2, 3};
  ASSERT_TRUE(context.bind_input(0, view_of(std::as_const(x), Shape{3})).ok());
  ASSERT_TRUE(context.run().ok());
  ++*setup.device->losses;
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{3, 5, 7}));
  ASSERT_EQ(setup.device->prepared.size(), 2U);
  EXPECT_EQ(setup.device->prepared[1].input_shapes, std::vector<Shape>{Shape{Shape::kOpen}});
  std::vector<float> longer{1, 2, 3, 4, 5};
  ASSERT_TRUE(context.bind_input(0, view_of(std::as_const(longer), Shape{5})).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(setup.device->prepared.size(), 2U);
}

}  // namespace
}  // namespace corelane
