// Programs are loaded, activated, run and given back, thousands of times: nothing is left behind.
#include <gtest/gtest.h>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/activation.h"
#include "corelane/runtime/program.h"
#include "process_figures.h"
#include "runtime/testing/onnx_builder.h"
#include "smoke_support.h"

namespace corelane {
namespace {

using device::CoreSet;
using std::chrono::microseconds;
using testing::on;

std::shared_ptr<device::Device> open_own(const std::string& text) {
  device::OpenOptions own;
  own.own_instance = true;
  return device::open_device(text, own).value();
}

void run_twice(const Activation& activation) {
  Context context = activation.new_context().value();
  ASSERT_TRUE(context.run().ok());
  ASSERT_TRUE(context.submit().value().wait().ok());
}

/// Loads, activates in each way, fails to activate, and lets all go.
void cycle(const std::shared_ptr<device::Device>& device, ByteSpan model) {
  const Program program = Program::load(model, on(device)).value();
  {
    const Activation one = Activation::create(program, {.cores = CoreSet::any(2)}).value();
    const Activation two = Activation::create(program).value();
    run_twice(one);
    run_twice(two);
    const auto refused = Activation::create(program, {.cores = CoreSet::any(2)});
    ASSERT_FALSE(refused);
    ASSERT_EQ(refused.error().code(), Code::kOutOfCores);
    ASSERT_FALSE(Activation::create(program, {.cores = CoreSet::of({77})}));
  }
  ActivateOptions shared;
  shared.turns = TurnGroup::create(device, {.slice = microseconds(10)}).value();
  const Activation one = Activation::create(program, shared).value();
  const Activation two = Activation::create(program, shared).value();
  run_twice(one);
  run_twice(two);
  shared.turn.weight = 0;
  ASSERT_FALSE(Activation::create(program, shared));
  shared.turns.shutdown();
  ASSERT_FALSE(Activation::create(program, {.cores = {}, .residency = {}, .turns = shared.turns}));
}

void expect_level(const std::string& text, int cycles, std::size_t more_threads) {
  const auto device = open_own(text);
  const std::string onnx = testing::relu_model({std::int64_t{64}});
  const ByteVector file = compile_bytes(as_byte_span(onnx)).value();
  for (int i = 0; i < 20; ++i) cycle(device, file);
  const testing::ProcessFigures before = testing::process_figures();
  const std::size_t memory = device->memory().total();
  for (int i = 0; i < cycles && !::testing::Test::HasFatalFailure(); ++i) cycle(device, file);
  const testing::ProcessFigures after = testing::process_figures();
  EXPECT_EQ(device->memory().total(), memory);
  EXPECT_EQ(device->counters().completed, static_cast<std::uint64_t>(8 * (20 + cycles)));
  EXPECT_TRUE(device->holdings().empty());
  EXPECT_LE(after.fds, before.fds);
  EXPECT_LE(after.threads, before.threads + more_threads);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(after.resident_kb, before.resident_kb + 8 * 1024);
#endif
}

TEST(ActivationCycles, TenThousandOnTheNullDeviceLeaveNothing) {
  expect_level("null:generic:3", 10000, 0);
}

/// The engine keeps the threads of models that lived at the same moment.
TEST(ActivationCycles, HundredsOnTheVirtualDeviceLeaveNothing) {
  expect_level("virtual:rk3588", 300, 4);
}

TEST(ActivationCycles, EightActivationsHoldTheConstantsOnce) {
  constexpr std::int64_t kSide = 512;
  const auto device = open_own("virtual:generic:16");
  const std::string onnx =
      testing::OnnxBuilder()
          .input("x", {std::int64_t{1}, kSide})
          .output("y", {std::int64_t{1}, kSide})
          .constant<float>("w", {kSide, kSide}, testing::kOnnxFloat,
                           std::vector<float>(static_cast<std::size_t>(kSide * kSide), 0.5F))
          .node("MatMul", {"x", "w"}, {"y"})
          .build("matmul");
  LoadOptions load = on(device);
  load.replicate_limit = 0;
  const Program program = Program::load(as_byte_span(onnx), load).value();
  const std::size_t weights = program.memory().weights;
  EXPECT_GE(weights, static_cast<std::size_t>(kSide * kSide) * sizeof(float));
  const auto weights_of = [&](std::size_t count, std::size_t cores) {
    std::vector<Context> contexts;
    for (std::size_t i = 0; i < count; ++i) {
      const auto made = Activation::create(program, {.cores = CoreSet::any(cores)}).value();
      contexts.push_back(made.new_context().value());
      EXPECT_TRUE(contexts.back().run().ok());
    }
    return program.memory().weights;
  };
  EXPECT_EQ(weights_of(8, 1), weights);
  // The form of jobs that take both cores is compiled once, for all of them.
  const std::size_t wide = weights_of(1, 2);
  EXPECT_EQ(weights_of(8, 2), wide);
  EXPECT_TRUE(device->holdings().empty());
}

}  // namespace
}  // namespace corelane
