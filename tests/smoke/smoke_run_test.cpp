#include <array>
#include <cmath>
#include <cstring>

#include "corelane/device/host_operator.h"
#include "corelane/program/program_file.h"
#include "smoke_support.h"

namespace corelane {
namespace {

using namespace testing;

TEST(SmokeRun, ATinyModelRunsOnMemoryOfTheCaller) {
  const Program program = load(affine_model(16, 3), on(own_device()));
  Context context = program.new_context().value();
  std::vector<float> x(16);
  std::vector<float> y(16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  ASSERT_TRUE(context.bind_input(0, in_view(x, Shape{16})).ok());
  ASSERT_TRUE(context.bind_output(0, out_view(y, Shape{16})).ok());
  for (int round = 0; round < 3; ++round) {
    x[0] = static_cast<float>(round);
    const Status status = context.run();
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], 3 * x[i] + 1);
  }
  EXPECT_GT(context.times().device.count(), 0);
  EXPECT_GT(program.memory().total(), 0U);
}

TEST(SmokeRun, DuplicatesAndProgramsMayGoInAnyOrder) {
  auto device = own_device();
  Program program = load(affine_model(4, 2), on(device));
  Context first = program.new_context().value();
  Context second = first.duplicate().value();
  Context third = second.duplicate().value();
  const std::vector<float> x{1, 2, 3, 4};
  ASSERT_TRUE(third.set_input(0, in_view(x, Shape{4})).ok());
  first = {};
  program = {};
  device.reset();
  ASSERT_TRUE(second.run().ok());
  EXPECT_EQ(floats_of(second.output(0).value()), (std::vector<float>{1, 1, 1, 1}));
  second = {};
  ASSERT_TRUE(third.run().ok());
  EXPECT_EQ(floats_of(third.output(0).value()), (std::vector<float>{3, 5, 7, 9}));
  Inference last = third.submit().value();
  third = {};
  EXPECT_TRUE(last.wait().ok());
}

TEST(SmokeRun, OneInferenceRunsOnTwoAndThreeCores) {
  const Program program = load(affine_model(64, 2), on(own_device()));
  Context context = program.new_context().value();
  for (const std::size_t cores : {2U, 3U}) {
    RunOptions options;
    options.cores = device::CoreSet::first(cores);
    ASSERT_TRUE(context.run(options).ok());
    EXPECT_EQ(context.record().core_bits, (1U << cores) - 1);
    EXPECT_EQ(floats_of(context.output(0).value())[5], 1);
  }
  RunOptions fourth;
  fourth.cores = device::CoreSet::of({3});
  EXPECT_EQ(context.run(fourth).code(), Code::kInvalidArgument);
}

TEST(SmokeRun, OpenDimensionsTakeTheShapeOfEachBinding) {
  const Program program = load(relu_model({"n", 4}), on(own_device()));
  Context context = program.new_context().value();
  for (const std::int64_t n : {1, 3, 2, 3}) {
    std::vector<float> x(static_cast<std::size_t>(n) * 4, -1);
    x.back() = static_cast<float>(n);
    ASSERT_TRUE(context.bind_input(0, in_view(x, Shape{n, 4})).ok());
    const Status status = context.run();
    ASSERT_TRUE(status.ok()) << status.to_string();
    const TensorView y = context.output(0).value();
    EXPECT_EQ(y.shape, (Shape{n, 4}));
    EXPECT_EQ(floats_of(y).back(), static_cast<float>(n));
    EXPECT_EQ(floats_of(y).front(), 0);
    ASSERT_TRUE(context.unbind_input(0).ok());
  }
}

TEST(SmokeRun, ClosedShapeSetsRunEachWithItsOwnExecutable) {
  LoadOptions options = on(own_device());
  options.import.shape_sets = {{Shape{1, 4}}, {Shape{2, 4}}};
  const Program program = load(relu_model({"n", 4}), options);
  Context context = program.new_context().value();
  EXPECT_EQ(context.inputs()[0].shape, (Shape{1, 4}));
  ASSERT_TRUE(context.set_input_shapes({Shape{2, 4}}).ok());
  const std::vector<float> x{1, -1, 2, -2, 3, -3, 4, -4};
  ASSERT_TRUE(context.set_input(0, in_view(x, Shape{2, 4})).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{1, 0, 2, 0, 3, 0, 4, 0}));
  EXPECT_EQ(context.set_input_shapes({Shape{3, 4}}).code(), Code::kShapeMismatch);
}

TEST(SmokeRun, QuantisedViewsAreBitExactWithTheFloatPath) {
  // Quantised at the boundary: x -> Q -> DQ -> Relu -> Q -> DQ.
  const std::string model = OnnxBuilder()
                                .input("x", {256})
                                .output("y", {256})
                                .constant<float>("xs", {}, kOnnxFloat, {0.037F})
                                .constant<std::int8_t>("xz", {}, kOnnxInt8, {-5})
                                .constant<float>("ys", {}, kOnnxFloat, {0.021F})
                                .constant<std::int8_t>("yz", {}, kOnnxInt8, {-100})
                                .node("QuantizeLinear", {"x", "xs", "xz"}, {"xq"})
                                .node("DequantizeLinear", {"xq", "xs", "xz"}, {"xd"})
                                .node("Relu", {"xd"}, {"r"})
                                .node("QuantizeLinear", {"r", "ys", "yz"}, {"yq"})
                                .node("DequantizeLinear", {"yq", "ys", "yz"}, {"y"})
                                .build("qdq");
  const Program program = load(model, on(own_device()));
  const IoEntry& in = program.description().inputs[0];
  const IoEntry& out = program.description().outputs[0];
  ASSERT_EQ(in.quant_dtype, DType::kI8);
  ASSERT_EQ(out.quant_dtype, DType::kI8);
  std::vector<std::int8_t> xq(256);
  for (int i = 0; i < 256; ++i) xq[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(i - 128);
  std::vector<std::int8_t> yq(256);
  Context narrow = program.new_context().value();
  ASSERT_TRUE(
      narrow.bind_input(0, TensorView{xq.data(), 256, DType::kI8, Shape{256}, {}, in.quant}).ok());
  ASSERT_TRUE(
      narrow
          .bind_output(0, MutableTensorView{yq.data(), 256, DType::kI8, Shape{256}, {}, out.quant})
          .ok());
  ASSERT_TRUE(narrow.run().ok());

  Context wide = program.new_context().value();
  std::vector<float> x(256);
  for (std::size_t i = 0; i < 256; ++i) x[i] = static_cast<float>(xq[i] + 5) * 0.037F;
  ASSERT_TRUE(wide.bind_input(0, in_view(x, Shape{256})).ok());
  ASSERT_TRUE(wide.run().ok());
  const std::vector<float> y = floats_of(wide.output(0).value());
  for (std::size_t i = 0; i < 256; ++i) {
    const float back = static_cast<float>(yq[i] + 100) * 0.021F;
    EXPECT_EQ(y[i], back) << i;
  }
}

TEST(SmokeRun, InnerValuesAreExposedAfterTheOutputs) {
  LoadOptions options = on(own_device());
  options.exposed_values = {"scaled"};
  const Program program = load(affine_model(2, 5), options);
  Context context = program.new_context().value();
  const std::vector<float> x{1, 2};
  ASSERT_TRUE(context.set_input(0, in_view(x, Shape{2})).ok());
  ASSERT_TRUE(context.run().ok());
  const std::size_t index = context.output_index("scaled").value();
  EXPECT_EQ(floats_of(context.output(index).value()), (std::vector<float>{5, 10}));
  options.exposed_values = {"no_such_value"};
  const auto refused = Program::load(as_byte_span(affine_model(2, 5)), options);
  EXPECT_EQ(refused.error().code(), Code::kNotFound);
}

TEST(SmokeRun, HostOperatorsRunAndAMissingOneFailsTheRunOnly) {
  const std::string model = OnnxBuilder()
                                .input("x", {4})
                                .output("y", {4})
                                .node("Relu", {"x"}, {"r"})
                                .node("Negate", {"r"}, {"y"}, "test.ops")
                                .build("custom");
  LoadOptions options = on(own_device());
  options.import.custom_operators = {"test.ops.Negate"};
  const Program program = load(model, options);
  ASSERT_EQ(program.description().custom_operators.size(), 1U);
  Context context = program.new_context().value();
  const std::vector<float> x{1, -2, 3, 4};
  ASSERT_TRUE(context.set_input(0, in_view(x, Shape{4})).ok());
  EXPECT_EQ(context.run().code(), Code::kHostOperatorMissing);
  ASSERT_TRUE(program.host_operators()
                  ->add("Negate",
                        [](const device::HostOperatorCall& call) {
                          const auto in = floats_of(call.inputs[0]);
                          auto* out = static_cast<float*>(call.outputs[0].data);
                          for (std::size_t i = 0; i < in.size(); ++i) out[i] = -in[i];
                          return Status();
                        })
                  .ok());
  const Status status = context.run();
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{-1, -0.0F, -3, -4}));
}

TEST(SmokeRun, LayersAreMeasuredOnRequestOnly) {
  LoadOptions options = on(own_device());
  const Program plain = load(affine_model(8, 2), options);
  Context unmeasured = plain.new_context().value();
  ASSERT_TRUE(unmeasured.run().ok());
  EXPECT_EQ(unmeasured.layer_times().error().code(), Code::kUnsupported);
  options.profile_layers = true;
  const Program program = load(affine_model(8, 2), options);
  Context context = program.new_context().value();
  ASSERT_TRUE(context.run().ok());
  const auto layers = context.layer_times();
  ASSERT_TRUE(layers) << layers.error().to_string();
  EXPECT_TRUE(std::any_of(layers->begin(), layers->end(),
                          [](const device::LayerTime& l) { return l.executed; }));
}

TEST(SmokeRun, PrecompiledFilesLoadWithoutCompiling) {
  CompileOptions compile;
  compile.precompile = true;
  compile.device = "virtual:rk3588";
  const std::string model = affine_model(4, 2);
  const auto bytes = compile_bytes(as_byte_span(model), compile);
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  const auto program = Program::load(*bytes, on(own_device()));
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_TRUE(program->precompiled());
  Context context = program->new_context().value();
  const std::vector<float> x{1, 2, 3, 4};
  ASSERT_TRUE(context.set_input(0, in_view(x, Shape{4})).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(context.output(0).value()), (std::vector<float>{3, 5, 7, 9}));
  LoadOptions half = on(own_device());
  half.precision = device::Precision::kBF16;
  const auto other = Program::load(*bytes, half);
  ASSERT_TRUE(other) << other.error().to_string();
  EXPECT_FALSE(other->precompiled());
}

TEST(SmokeRun, PrecompiledShapeSetsAreTakenEach) {
  CompileOptions compile;
  compile.precompile = true;
  compile.import.shape_sets = {{Shape{1, 4}}, {Shape{2, 4}}};
  const std::string model = relu_model({"n", 4});
  const ByteVector bytes = compile_bytes(as_byte_span(model), compile).value();
  const auto file = ProgramFile::from_bytes(bytes).value();
  EXPECT_EQ(std::count_if(file->segments().begin(), file->segments().end(),
                          [](const SegmentInfo& s) { return s.kind == SegmentKind::kPrecompiled; }),
            2);
  const Program program = Program::load(bytes, on(own_device())).value();
  EXPECT_TRUE(program.precompiled());
  Context context = program.new_context().value();
  ASSERT_TRUE(context.set_input_shapes({Shape{2, 4}}).ok());
  EXPECT_TRUE(context.run().ok());
}

}  // namespace
}  // namespace corelane
