#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "runtime/testing/fake_program.h"

namespace corelane {
namespace {

using testing::f32_desc;
using testing::fake_description;
using testing::FakeConfig;
using testing::FakeSetup;
using testing::floats_of;
using testing::one_in_one_out;
using testing::view_of;

ProgramDescription closed_list(const FakeConfig& config) {
  ProgramDescription d = fake_description(config);
  d.shape_sets = {{Shape{1, 2}}, {Shape{1, 4}}};
  return d;
}

TEST(ContextShapes, OneDynamicExecutableServesEveryShape) {
  FakeSetup setup(one_in_one_out(Shape{-1, 2}));
  ASSERT_EQ(setup.device->prepared.size(), 1U);
  EXPECT_EQ(setup.device->prepared[0].input_shapes[0], (Shape{-1, 2}));
  Context context = setup.program.new_context().value();
  EXPECT_EQ(context.inputs()[0].shape, (Shape{-1, 2}));
  EXPECT_EQ(context.run().code(), Code::kWrongState);
  EXPECT_EQ(context.input(0).error().code(), Code::kWrongState);
  const std::vector<float> x{1, 2, 3, 4};
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{2, 2})).ok());
  EXPECT_EQ(context.inputs()[0].shape, (Shape{2, 2}));
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(context.output(0).value().shape, (Shape{2, 2}));
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{1, 2})).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{3, 5}));
  EXPECT_EQ(setup.device->prepared.size(), 1U);
}

TEST(ContextShapes, OwnMemoryOfOpenShapesIsCountedAndGivenBack) {
  FakeSetup setup(one_in_one_out(Shape{-1}));
  {
    Context context = setup.program.new_context().value();
    ASSERT_TRUE(context.set_input_shapes({Shape{100}}).ok());
    const MutableTensorView in = context.input(0).value();
    EXPECT_EQ(in.size, 400U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(in.data) % 64, 0U);
    EXPECT_EQ(setup.program.memory().buffers, 400U);
    EXPECT_EQ(context.memory().buffers, 400U);
    ASSERT_TRUE(context.set_input_shapes({Shape{10}}).ok());
    EXPECT_EQ(setup.program.memory().buffers, 40U);
  }
  setup.device->last = {};
  EXPECT_EQ(setup.program.memory().buffers, 0U);
}

TEST(ContextShapes, GoingBackToASetOfTheListMakesNoBindingsAnew) {
  const FakeConfig config = one_in_one_out(Shape{1, -1});
  FakeSetup setup(config, closed_list(config));
  Context context = setup.program.new_context().value();
  std::array<std::shared_ptr<device::Bindings>, 2> first;
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t k : {0U, 1U}) {
      const std::int64_t n = k == 0 ? 2 : 4;
      const std::vector<float> x(static_cast<std::size_t>(n), static_cast<float>(round));
      ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{1, n})).ok());
      ASSERT_TRUE(context.run().ok());
      EXPECT_EQ(floats_of(context.output(0).value()),
                std::vector<float>(static_cast<std::size_t>(n), 2.F * x[0] + 1));
      if (round == 0) first[k] = setup.device->last.bindings;
      EXPECT_EQ(setup.device->last.bindings, first[k]);
    }
  }
}

TEST(ContextShapes, ClosedListPreparesEachSetAtItsFirstUse) {
  const FakeConfig config = one_in_one_out(Shape{1, -1});
  FakeSetup setup(config, closed_list(config));
  ASSERT_EQ(setup.device->prepared.size(), 1U);
  EXPECT_EQ(setup.device->prepared[0].input_shapes[0], (Shape{1, 2}));
  Context context = setup.program.new_context().value();
  EXPECT_EQ(context.inputs()[0].shape, (Shape{1, 2}));
  ASSERT_TRUE(context.set_input_shapes({Shape{1, 4}}).ok());
  EXPECT_EQ(setup.device->prepared.size(), 2U);
  EXPECT_EQ(context.outputs()[0].shape, (Shape{1, 4}));
  const Status status = context.set_input_shapes({Shape{1, 3}});
  EXPECT_EQ(status.code(), Code::kShapeMismatch);
  EXPECT_NE(status.message().find("[1, 2]"), std::string::npos) << status.message();
  const std::vector<float> x(2);
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{1, 2})).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(context.output(0).value().shape, (Shape{1, 2}));
  EXPECT_EQ(setup.device->prepared.size(), 2U);
}

TEST(ContextShapes, BatchIsFixedWhereTheDeviceRefusesOpenDimensions) {
  FakeConfig config = one_in_one_out(Shape{-1, 2});
  config.refuse_open = true;
  FakeSetup setup(config);
  Context context = setup.program.new_context().value();
  EXPECT_EQ(context.inputs()[0].shape, (Shape{1, 2}));
  ASSERT_TRUE(context.run().ok());
  ASSERT_TRUE(context.set_input_shapes({Shape{3, 2}}).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(context.output(0).value().shape, (Shape{3, 2}));
}

TEST(ContextShapes, RefusedOpenDimensionsNameTheOptionsThatFixThem) {
  FakeConfig config = one_in_one_out(Shape{-1, -1});
  config.refuse_open = true;
  LoadOptions options;
  options.on = std::make_shared<testing::FakeDevice>(config);
  const auto program = Program::load(testing::fake_file(fake_description(config)), options);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kUnsupportedModel);
  EXPECT_NE(program.error().message().find("dims"), std::string::npos);
  EXPECT_EQ(program.error().detail(Detail::kDimension), "x[0]");
  EXPECT_FALSE(program.error().cause().ok());
}

TEST(ContextShapes, DeviceWithoutDynamicShapesPreparesWhenAllAreChosen) {
  FakeConfig config = one_in_one_out(Shape{-1});
  config.inputs.push_back(testing::f32_desc("z", Shape{-1}));
  config.dynamic_shapes = false;
  FakeSetup setup(config);
  EXPECT_TRUE(setup.device->prepared.empty());
  Context context = setup.program.new_context().value();
  EXPECT_EQ(context.run().code(), Code::kWrongState);
  const std::vector<float> x{1, 2};
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{2})).ok());
  EXPECT_TRUE(setup.device->prepared.empty());
  EXPECT_EQ(context.run().code(), Code::kWrongState);
  ASSERT_TRUE(context.bind_input(1, view_of(x, Shape{1})).ok());
  EXPECT_EQ(setup.device->prepared.size(), 1U);
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{3, 5}));
}

TEST(ContextShapes, ChangingOneInputKeepsTheOthersMemory) {
  FakeConfig config = one_in_one_out(Shape{2});
  config.inputs.push_back(testing::f32_desc("z", Shape{-1}));
  config.dynamic_shapes = false;
  FakeSetup setup(config);
  Context context = setup.program.new_context().value();
  ASSERT_TRUE(context.set_input_shapes({Shape{2}, Shape{1}}).ok());
  const std::vector<float> x{1, 2};
  ASSERT_TRUE(context.set_input(0, view_of(x, Shape{2})).ok());
  ASSERT_TRUE(context.set_input_shapes({Shape{2}, Shape{5}}).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{3, 5}));
}

/// A device without open dimensions, and a network whose two inputs have one size.
struct PairSetup : FakeSetup {
  PairSetup() : FakeSetup(config()) {
    device->on_prepare = [](const device::PrepareOptions& options) -> Status {
      if (options.input_shapes[0] == options.input_shapes[1]) return {};
      return error(Code::kShapeMismatch, "fake: sizes differ");
    };
  }
  static FakeConfig config() {
    FakeConfig config = one_in_one_out(Shape{-1});
    config.inputs.push_back(f32_desc("z", Shape{-1}));
    config.dynamic_shapes = false;
    return config;
  }
};

TEST(ContextShapes, SizesThatGoTogetherMayBeBoundOneAfterTheOther) {
  PairSetup setup;
  Context context = setup.program.new_context().value();
  const std::vector<float> x{1, 2, 3};
  for (const std::int64_t n : {2, 3, 1}) {
    const std::size_t first = n == 3 ? 1 : 0;  // In either order.
    ASSERT_TRUE(context.bind_input(first, view_of(x, Shape{n})).ok());
    ASSERT_TRUE(context.bind_input(1 - first, view_of(x, Shape{n})).ok());
    EXPECT_EQ(context.outputs()[0].shape, (Shape{n}));
    ASSERT_TRUE(context.run().ok());
    EXPECT_EQ(context.output(0).value().shape, (Shape{n}));
  }
  EXPECT_EQ(setup.device->prepared.size(), 3U);
}

TEST(ContextShapes, SizesThatDoNotGoTogetherAreRefusedByTheRun) {
  PairSetup setup;
  Context context = setup.program.new_context().value();
  const std::vector<float> x{1, 2, 3};
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{2})).ok());
  ASSERT_TRUE(context.bind_input(1, view_of(x, Shape{2})).ok());
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{3})).ok());
  EXPECT_EQ(context.inputs()[0].shape, (Shape{3}));
  EXPECT_EQ(context.run().code(), Code::kShapeMismatch);
  EXPECT_EQ(context.submit().error().code(), Code::kShapeMismatch);
  EXPECT_EQ(context.set_input_shapes({Shape{1}, Shape{2}}).code(), Code::kShapeMismatch);
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{2})).ok());
  EXPECT_TRUE(context.run().ok());
}

TEST(ContextShapes, OwnInputsKeepWhatTheyHoldWhileSizesDoNotGoTogether) {
  PairSetup setup;
  Context context = setup.program.new_context().value();
  const std::vector<float> x{1, 2, 3};
  ASSERT_TRUE(context.set_input_shapes({Shape{2}, Shape{2}}).ok());
  ASSERT_TRUE(context.set_input(0, view_of(x, Shape{2})).ok());
  ASSERT_TRUE(context.set_input(1, view_of(x, Shape{3})).ok());
  EXPECT_EQ(floats_of(context.input(0).value()), (std::vector<float>{1, 2}));
  ASSERT_TRUE(context.set_input(1, view_of(x, Shape{2})).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{3, 5}));
}

TEST(ContextShapes, ASizeThatNothingElseCanMendIsRefusedAtOnce) {
  FakeConfig config = one_in_one_out(Shape{-1});
  config.dynamic_shapes = false;
  FakeSetup setup(config);
  setup.device->on_prepare = [](const device::PrepareOptions&) -> Status {
    return error(Code::kShapeMismatch, "fake: no such size");
  };
  Context context = setup.program.new_context().value();
  const std::vector<float> x{1, 2};
  EXPECT_EQ(context.bind_input(0, view_of(x, Shape{2})).code(), Code::kShapeMismatch);
}

TEST(ContextShapes, OutputOfUnknownSizeIsCopiedWhereItFits) {
  FakeSetup setup(one_in_one_out(Shape{-1}));
  Context context = setup.program.new_context().value();
  std::vector<float> y(3);
  ASSERT_TRUE(context.bind_output(0, view_of(y, Shape{-1})).ok());
  const std::vector<float> x{1, 2, 3, 4};
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{3})).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(y, (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(context.output(0).value().shape, (Shape{3}));
  ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{4})).ok());
  EXPECT_EQ(context.run().code(), Code::kShapeMismatch);
  EXPECT_EQ(y, (std::vector<float>{3, 5, 7}));
}

TEST(ContextShapes, DuplicateHasTheShapesAndMemoryOfItsOwn) {
  FakeSetup setup(one_in_one_out(Shape{-1}));
  Context first = setup.program.new_context().value();
  ASSERT_TRUE(first.set_input_shapes({Shape{1}}).ok());
  Context second = first.duplicate().value();
  EXPECT_EQ(second.inputs()[0].shape, (Shape{1}));
  const std::vector<float> one{1};
  const std::vector<float> two{2};
  ASSERT_TRUE(first.set_input(0, view_of(one, Shape{1})).ok());
  ASSERT_TRUE(second.set_input(0, view_of(two, Shape{1})).ok());
  ASSERT_TRUE(first.run().ok());
  ASSERT_TRUE(second.run().ok());
  EXPECT_EQ(floats_of(first.output(0).value()), std::vector<float>{3});
  EXPECT_EQ(floats_of(second.output(0).value()), std::vector<float>{5});
}

TEST(ContextShapes, ExposedValuesComeAfterTheDeclaredOutputs) {
  const FakeConfig config = one_in_one_out(Shape{1});
  LoadOptions options;
  options.exposed_values = {"inner"};
  FakeSetup setup(config, fake_description(config), options);
  Context context = setup.program.new_context().value();
  ASSERT_EQ(context.outputs().size(), 2U);
  EXPECT_EQ(context.outputs()[1].name, "inner");
  EXPECT_EQ(context.output_index("inner").value(), 1U);
  ASSERT_TRUE(context.run().ok());
  EXPECT_TRUE(context.output(1));
}

/// A context of the closed list, and memory for each of its shapes.
struct TwoShapes {
  TwoShapes() : setup(config, closed_list(config)), context(setup.program.new_context().value()) {
    for (const std::size_t k : {0U, 1U}) {
      const std::size_t n = k == 0 ? 2 : 4;
      shapes[k] = {Shape{1, static_cast<std::int64_t>(n)}};
      x[k].assign(n, 1.0F + static_cast<float>(k));
      y[k].assign(n, -1.0F);
    }
  }
  Status bind(std::size_t k) { return bind(k, x[k], y[k]); }
  Status bind(std::size_t k, std::vector<float>& in, std::vector<float>& out) {
    const std::vector<TensorView> inputs{view_of(in, shapes[k][0])};
    const std::vector<MutableTensorView> outputs{view_of(out, shapes[k][0])};
    return context.bind_all(shapes[k], inputs, outputs);
  }
  /// Runs in the shapes `k`, and says how many tensors the device was told of.
  int told_in_run(std::size_t k) {
    EXPECT_TRUE(bind(k).ok());
    EXPECT_TRUE(context.run().ok());
    EXPECT_EQ(y[k], std::vector<float>(y[k].size(), 2 * x[k][0] + 1));
    EXPECT_EQ(context.inputs()[0].shape, shapes[k][0]);
    EXPECT_EQ(context.outputs()[0].shape, shapes[k][0]);
    auto& bindings = static_cast<testing::FakeBindings&>(*setup.device->last.bindings);
    return static_cast<int>(std::exchange(bindings.sets, 0));
  }

  const FakeConfig config = one_in_one_out(Shape{1, -1});
  FakeSetup setup;
  Context context;
  std::array<std::vector<Shape>, 2> shapes;
  std::array<std::vector<float>, 2> x, y;
};

TEST(ContextShapes, AllTensorsAreBoundInOneCall) {
  TwoShapes two;
  two.told_in_run(0);
  two.told_in_run(1);
  two.told_in_run(1);
  std::vector<float> x(2, 7.0F), y(2);
  ASSERT_TRUE(two.bind(0, x, y).ok());
  ASSERT_TRUE(two.context.run().ok());
  EXPECT_EQ(y, (std::vector<float>{15, 15}));
  const std::vector<TensorView> none;
  EXPECT_EQ(two.context.bind_all(two.shapes[0], none, {}).code(), Code::kInvalidArgument);
  const Status status = two.context.bind_all({Shape{1, 3}}, std::vector<TensorView>(1), {});
  EXPECT_EQ(status.code(), Code::kShapeMismatch);
}

TEST(ContextShapes, ReturnToAllTensorsOfShapesTellsTheDeviceNothing) {
  TwoShapes two;
  for (const std::size_t k : {0U, 1U, 0U, 1U}) two.told_in_run(k);
  for (const std::size_t k : {0U, 1U, 0U, 1U}) {
    two.x[k].assign(two.x[k].size(), 5);
    EXPECT_EQ(two.told_in_run(k), 0);
  }
  // Other memory is another matter.
  std::vector<float> x(2, 9.0F);
  two.x[0].swap(x);
  EXPECT_EQ(two.told_in_run(0), 1);
}

TEST(ContextShapes, MemoryOfShapesThatWereLeftIsNotBoundBySingleCalls) {
  TwoShapes two;
  for (const std::size_t k : {0U, 1U, 0U, 1U}) two.told_in_run(k);
  two.y[0].assign(2, -1.0F);
  ASSERT_TRUE(two.context.set_input_shapes(two.shapes[0]).ok());
  ASSERT_TRUE(two.context.run().ok());
  EXPECT_EQ(two.y[0], std::vector<float>(2, -1.0F)) << "bindings go with the shapes";
  EXPECT_EQ(floats_of(two.context.output(0).value()), std::vector<float>(2, 1.0F));
  two.told_in_run(0);
  two.told_in_run(1);
}

TEST(ContextShapes, OutputsThatAReturnToShapesDoesNotBindAreFree) {
  TwoShapes two;
  for (const std::size_t k : {0U, 1U, 0U, 1U, 0U}) two.told_in_run(k);
  two.y[1].assign(4, -7.0F);
  const std::vector<TensorView> inputs{view_of(two.x[1], two.shapes[1][0])};
  ASSERT_TRUE(two.context.bind_all(two.shapes[1], inputs, {}).ok());
  ASSERT_TRUE(two.context.run().ok());
  EXPECT_EQ(two.y[1], std::vector<float>(4, -7.0F)) << "this memory may be another's by now";
  EXPECT_EQ(floats_of(two.context.output(0).value()), std::vector<float>(4, 5.0F));
  for (const std::size_t k : {0U, 1U, 0U}) two.told_in_run(k);
}

TEST(ContextShapes, ReturnToShapesThatFailsBindsNothingOfThen) {
  TwoShapes two;
  for (const std::size_t k : {0U, 1U, 0U, 1U, 0U}) two.told_in_run(k);
  two.y[1].assign(4, -7.0F);
  std::vector<TensorView> inputs{view_of(two.x[1], two.shapes[1][0])};
  inputs[0].size = 1;
  const std::vector<MutableTensorView> outputs{view_of(two.y[1], two.shapes[1][0])};
  EXPECT_FALSE(two.context.bind_all(two.shapes[1], inputs, outputs).ok());
  ASSERT_TRUE(two.context.run().ok());
  EXPECT_EQ(two.y[1], std::vector<float>(4, -7.0F));
  for (const std::size_t k : {1U, 0U, 1U}) two.told_in_run(k);
}

TEST(ContextShapes, ContentSurvivesTheStepFromOpenToStatic) {
  // The device refuses an open batch, so the first executable is y = f([1, 3], [4, ?]).
  FakeConfig config;
  config.inputs = {f32_desc("x", Shape{Shape::kOpen, 3}), f32_desc("w", Shape{4, Shape::kOpen})};
  config.outputs = {f32_desc("y", Shape{Shape::kOpen, 3})};
  config.refuse_open_batch = true;
  FakeSetup setup(config);
  Context context = setup.program.new_context().value();
  const std::vector<float> w(28, 5.0F);
  ASSERT_TRUE(context.set_input(1, view_of(w, Shape{4, 7})).ok());
  const std::vector<float> x(6, 1.0F);
  ASSERT_TRUE(context.set_input(0, view_of(x, Shape{2, 3})).ok());
  ASSERT_EQ(setup.device->prepared.back().input_shapes[1], (Shape{4, 7}));
  ASSERT_TRUE(context.run().ok());
  auto& seen = static_cast<testing::FakeBindings&>(*setup.device->last.bindings);
  const auto last_of_w = [&] { return static_cast<const float*>(seen.input(1)->data)[27]; };
  EXPECT_EQ(last_of_w(), 5.0F);
  // The device reads what is written from now on.
  const std::vector<float> again(28, 6.0F);
  ASSERT_TRUE(context.set_input(1, view_of(again, Shape{4, 7})).ok());
  EXPECT_EQ(last_of_w(), 6.0F);
}

}  // namespace
}  // namespace corelane
