#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "runtime/testing/fake_program.h"

namespace corelane {
namespace {

using testing::FakeBindings;
using testing::FakeConfig;
using testing::FakeSetup;
using testing::floats_of;
using testing::one_in_one_out;
using testing::view_of;

FakeBindings& bindings_of_last(FakeSetup& setup) {
  return static_cast<FakeBindings&>(*setup.device->last.bindings);
}

TEST(ContextBind, ProgramFormMemoryIsUsedInPlace) {
  FakeSetup setup(one_in_one_out(Shape{1, 3}));
  Context context = setup.program.new_context().value();
  std::vector<float> x{1, 2, 3};
  std::vector<float> y(3);
  ASSERT_TRUE(context.bind_input(0, view_of(std::as_const(x), Shape{1, 3})).ok());
  ASSERT_TRUE(context.bind_output(0, view_of(y, Shape{1, 3})).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(y, (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(bindings_of_last(setup).in[0].data, x.data());
  EXPECT_EQ(bindings_of_last(setup).out[0].data, y.data());
  EXPECT_EQ(context.output(0).value().data, y.data());
  EXPECT_EQ(context.times().copy_in.count(), 0);
}

TEST(ContextBind, BindingTheSameMemoryAgainDoesNotReachTheDevice) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  Context context = setup.program.new_context().value();
  const std::vector<float> x{1};
  std::vector<float> y(1);
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{1})).ok());
  ASSERT_TRUE(context.bind_output(0, view_of(y, Shape{1})).ok());
  ASSERT_TRUE(context.run().ok());
  const int sets = bindings_of_last(setup).sets;
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{1})).ok());
  ASSERT_TRUE(context.bind_output(0, view_of(y, Shape{1})).ok());
  EXPECT_EQ(bindings_of_last(setup).sets, sets);
  ConvertOptions normalise;
  normalise.mean = {0.5F};
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{1}), normalise).ok());
  EXPECT_EQ(context.run().code(),
            Code::kInvalidArgument);  // Means need channels, so they were passed on.
}

/// Memory of the same form is exchanged without a look at the form; its alignment counts still.
TEST(ContextBind, OtherMemoryOfTheSameFormTakesItsPlace) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  Context context = setup.program.new_context().value();
  alignas(float) std::array<unsigned char, 12> raw{};
  const float third = 3;
  std::memcpy(raw.data() + 1, &third, sizeof third);
  const std::vector<float> first{1};
  const std::vector<float> second{2};
  std::vector<float> y(1);
  std::vector<float> z(1);
  const auto run_with = [&](const void* x, std::vector<float>& to) {
    EXPECT_TRUE(context.bind_input(0, {x, 4, DType::kF32, Shape{1}, {}, {}}).ok());
    EXPECT_TRUE(context.bind_output(0, view_of(to, Shape{1})).ok());
    EXPECT_TRUE(context.run().ok());
    return to[0];
  };
  EXPECT_EQ(run_with(first.data(), y), 3);
  EXPECT_EQ(run_with(second.data(), z), 5);
  EXPECT_EQ(bindings_of_last(setup).in[0].data, second.data());
  EXPECT_EQ(bindings_of_last(setup).out[0].data, z.data());
  EXPECT_EQ(run_with(raw.data() + 1, y), 7) << "misaligned: copied";
  EXPECT_NE(bindings_of_last(setup).in[0].data, raw.data() + 1);
  EXPECT_EQ(run_with(second.data(), z), 5);
  EXPECT_EQ(context.bind_input(0, {nullptr, 4, DType::kF32, Shape{1}, {}, {}}).code(),
            Code::kInvalidArgument);
}

TEST(ContextBind, RunsOnOwnMemoryThatIsFilledInPlace) {
  FakeSetup setup(one_in_one_out(Shape{2}));
  Context context = setup.program.new_context().value();
  const MutableTensorView in = context.input(0).value();
  static_cast<float*>(in.data)[0] = 4;
  static_cast<float*>(in.data)[1] = 5;
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{9, 11}));
}

TEST(ContextBind, QuantisedViewsAreConvertedAtEachRun) {
  FakeSetup setup(one_in_one_out(Shape{1, 4}));
  Context context = setup.program.new_context().value();
  std::array<std::int8_t, 4> x{-2, 0, 2, 4};
  std::array<std::uint8_t, 4> y{};
  ASSERT_TRUE(
      context
          .bind_input(
              0,
              TensorView{x.data(), x.size(), DType::kI8, Shape{1, 4}, {}, Quant::affine(0.5F, 0)})
          .ok());
  ASSERT_TRUE(context
                  .bind_output(
                      0,
                      MutableTensorView{
                          y.data(), y.size(), DType::kU8, Shape{1, 4}, {}, Quant::affine(1.0F, 10)})
                  .ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(y, (std::array<std::uint8_t, 4>{9, 11, 13, 15}));
  x[0] = 6;
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(y[0], 17);
}

TEST(ContextBind, MeanAndStdApplyToBoundAndSetInputs) {
  FakeSetup setup(one_in_one_out(Shape{1, 1, 1, 2}));
  Context context = setup.program.new_context().value();
  const std::array<std::uint8_t, 2> pixels{10, 30};
  const TensorView view{pixels.data(), 2, DType::kU8, Shape{1, 1, 1, 2}, {}, {}};
  ConvertOptions normalise;
  normalise.mean = {10};
  normalise.std = {20};
  ASSERT_TRUE(context.bind_input(0, view, normalise).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{1, 3}));
  ASSERT_TRUE(context.set_input(0, view).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{21, 61}));
}

TEST(ContextBind, MisalignedFloatsAreCopiedNotHandedOver) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  Context context = setup.program.new_context().value();
  alignas(float) std::array<unsigned char, 8> raw{};
  const float one = 1;
  std::memcpy(raw.data() + 1, &one, sizeof one);
  ASSERT_TRUE(
      context.bind_input(0, TensorView{raw.data() + 1, 4, DType::kF32, Shape{1}, {}, {}}).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), std::vector<float>{3});
  EXPECT_NE(bindings_of_last(setup).in[0].data, raw.data() + 1);
}

TEST(ContextBind, WrongIndexShapeTypeAndSizeNameTheThing) {
  FakeSetup setup(one_in_one_out(Shape{1, 3}));
  Context context = setup.program.new_context().value();
  const std::vector<float> x(3);
  EXPECT_EQ(context.bind_input(1, view_of(x, Shape{1, 3})).code(), Code::kOutOfRange);
  EXPECT_EQ(context.bind_output(9, MutableTensorView{}).code(), Code::kOutOfRange);
  std::vector<float> y(3);
  const Status misfit = context.bind_output(0, {y.data(), 12, DType::kF32, Shape{3}, {}, {}});
  EXPECT_EQ(misfit.code(), Code::kShapeMismatch);
  EXPECT_EQ(misfit.detail(Detail::kOutput), "y");
  EXPECT_EQ(misfit.detail(Detail::kGiven), "[3]");
  EXPECT_EQ(misfit.detail(Detail::kAllowed), "[1, 3]");
  EXPECT_EQ(context.bind_input(0, view_of(x, Shape{3, 1})).code(), Code::kShapeMismatch);
  TensorView wrong_type = view_of(x, Shape{1, 3});
  wrong_type.dtype = DType::kString;
  EXPECT_EQ(context.bind_input(0, wrong_type).code(), Code::kTypeMismatch);
  TensorView small = view_of(x, Shape{1, 3});
  small.size = 11;
  const Status status = context.bind_input(0, small);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("input 'x'"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("12 bytes, 11"), std::string::npos) << status.message();
  TensorView null = view_of(x, Shape{1, 3});
  null.data = nullptr;
  EXPECT_EQ(context.bind_input(0, null).code(), Code::kInvalidArgument);
  EXPECT_NE(context.input_index("z").error().message().find("'x'"), std::string::npos);
  EXPECT_EQ(context.output_index("y").value(), 0U);
}

TEST(ContextBind, TypesThatNoConversionReadsAreBoundAsTheyAre) {
  FakeConfig config = one_in_one_out(Shape{1, 5});
  config.inputs[0].dtype = config.outputs[0].dtype = DType::kU2;
  FakeSetup setup(config);
  Context context = setup.program.new_context().value();
  const std::vector<float> x(5);
  const Status refused = context.bind_input(0, view_of(x, Shape{1, 5}));
  EXPECT_EQ(refused.code(), Code::kTypeMismatch);
  EXPECT_NE(refused.message().find("between f32 and the program's u2"), std::string::npos)
      << refused.message();
  EXPECT_EQ(refused.detail(Detail::kInput), "x");
  EXPECT_EQ(refused.detail(Detail::kGiven), "f32");
  EXPECT_EQ(refused.detail(Detail::kAllowed), "u2");
  EXPECT_EQ(context.set_input(0, view_of(x, Shape{1, 5})).code(), Code::kTypeMismatch);
  std::vector<float> y(5);
  const Status output = context.bind_output(0, {y.data(), 20, DType::kF32, Shape{1, 5}, {}, {}});
  EXPECT_EQ(output.code(), Code::kTypeMismatch);
  EXPECT_EQ(output.detail(Detail::kOutput), "y");
  const std::uint8_t packed[2] = {0xE4, 0x01};
  EXPECT_TRUE(context.bind_input(0, {packed, 2, DType::kU2, Shape{1, 5}, {}, {}}).ok());
  EXPECT_TRUE(context.set_input(0, {packed, 2, DType::kU2, Shape{1, 5}, {}, {}}).ok());
  const auto own = context.input(0).value();
  EXPECT_EQ(own.dtype, DType::kU2);
  EXPECT_EQ(std::memcmp(own.data, packed, 2), 0);
}

TEST(ContextBind, RefusedBindingLeavesTheEarlierOne) {
  FakeSetup setup(one_in_one_out(Shape{1, 1}));
  Context context = setup.program.new_context().value();
  const std::vector<float> x{8};
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{1, 1})).ok());
  const std::vector<float> wrong(2);
  ASSERT_FALSE(context.bind_input(0, view_of(wrong, Shape{1, 2})).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), std::vector<float>{17});
}

TEST(ContextBind, BuffersAreUsedInPlaceAndKeptAlive) {
  FakeSetup setup(one_in_one_out(Shape{2}));
  Context context = setup.program.new_context().value();
  auto buffer = setup.device->create_buffer(4096, {}).value();
  std::weak_ptr<device::Buffer> watch = buffer;
  auto* floats = static_cast<float*>(buffer->data());
  floats[16] = 1;
  floats[17] = 2;
  ASSERT_TRUE(context.bind_input(0, buffer, 64).ok());
  ASSERT_TRUE(context.bind_output(0, buffer, 1024).ok());
  EXPECT_EQ(context.bind_input(0, buffer, 5000).code(), Code::kOutOfRange);
  EXPECT_EQ(context.bind_input(0, buffer, 4092).code(), Code::kInvalidArgument);
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats[256], 3);
  EXPECT_EQ(floats[257], 5);
  buffer.reset();
  EXPECT_FALSE(watch.expired());
  setup.device->last = {};
  ASSERT_TRUE(context.unbind_input(0).ok());
  ASSERT_TRUE(context.unbind_output(0).ok());
  EXPECT_TRUE(watch.expired());
}

TEST(ContextBind, UnbindGoesBackToOwnMemory) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  Context context = setup.program.new_context().value();
  std::vector<float> x{5};
  ASSERT_TRUE(context.bind_input(0, view_of(std::as_const(x), Shape{1})).ok());
  ASSERT_TRUE(context.unbind_input(0).ok());
  x[0] = 100;
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), std::vector<float>{1});
}

TEST(ContextBind, OutputBeforeARunIsAnErrorAndNewBindingsDropTheResult) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  Context context = setup.program.new_context().value();
  EXPECT_EQ(context.output(0).error().code(), Code::kWrongState);
  ASSERT_TRUE(context.run().ok());
  EXPECT_TRUE(context.output(0));
  std::vector<float> y(1);
  ASSERT_TRUE(context.bind_output(0, view_of(y, Shape{1})).ok());
  EXPECT_EQ(context.output(0).error().code(), Code::kWrongState);
}

TEST(ContextBind, FailedRunHasNoResult) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  Context context = setup.program.new_context().value();
  ASSERT_TRUE(context.run().ok());
  setup.device->next_status = Status(Code::kEngineFailed, "scripted");
  EXPECT_EQ(context.run().code(), Code::kEngineFailed);
  EXPECT_EQ(context.output(0).error().code(), Code::kWrongState);
  EXPECT_EQ(context.record().code, Code::kEngineFailed);
}

TEST(ContextBind, AContextThatWasNeverMadeRefusesCalls) {
  Context none;
  EXPECT_EQ(none.run().code(), Code::kWrongState);
  EXPECT_EQ(none.submit().error().code(), Code::kWrongState);
  EXPECT_EQ(none.duplicate().error().code(), Code::kWrongState);
  EXPECT_TRUE(none.inputs().empty());
}

TEST(ContextBind, MovedFromContextRefusesCallsAndTheOtherGoesOn) {
  FakeSetup setup(one_in_one_out(Shape{1}));
  Context context = setup.program.new_context().value();
  Context other = std::move(context);
  // NOLINTBEGIN(bugprone-use-after-move): a handle without a context refuses calls.
  EXPECT_EQ(context.run().code(), Code::kWrongState);
  EXPECT_EQ(context.submit().error().code(), Code::kWrongState);
  EXPECT_EQ(context.duplicate().error().code(), Code::kWrongState);
  EXPECT_EQ(context.layer_times().error().code(), Code::kWrongState);
  EXPECT_EQ(context.memory().total(), 0U);
  EXPECT_TRUE(context.inputs().empty());
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_TRUE(other.run().ok());
}

}  // namespace
}  // namespace corelane
