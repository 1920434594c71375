// Sessions on the virtual NPU whose contexts load the model on their own: weights of another
// session, custom operators; and the outputs of quantized models.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <utility>

#include "corelane/device/device.h"
#include "corelane/device/host_operator.h"
#include "corelane/session/session.h"
#include "smoke_support.h"

namespace corelane {
namespace {

using ::testing::ElementsAre;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::in_view;
using testing::kOnnxFloat;
using testing::OnnxBuilder;
using testing::options_on;

/// x [1, 2048] * weight, with or without the weights in the program.
ByteVector scaled_program(float weight, bool remove_weights, std::int64_t rows = 1) {
  const std::string model =
      OnnxBuilder()
          .input("x", {rows, 2048})
          .output("y", {rows, 2048})
          .constant<float>("w", {2048}, kOnnxFloat, std::vector<float>(2048, weight))
          .node("Mul", {"x", "w"}, {"y"})
          .build("scaled");
  CompileOptions options;
  options.remove_weights = remove_weights;
  auto bytes = compile_bytes(as_byte_span(model), options);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  return bytes.value_or(ByteVector());
}

TEST(SmokeSessionWeights, TheyOutliveTheSessionTheyCameFrom) {
  const auto device = testing::own_device();
  auto first = std::make_unique<Session>(
      Session::create(scaled_program(3, false), options_on(device)).value());
  // The same constants in a network of another input size.
  auto second = Session::create(scaled_program(3, true, 2), options_on(device), first.get());
  ASSERT_TRUE(second) << second.error().to_string();
  first.reset();
  EXPECT_EQ(second->statistics().duplicated, 0U);
  EXPECT_THAT(second->warnings(), ElementsAre(HasSubstr("another session's")));
  const std::vector<float> x(4096, 2);
  const Feed feed = {{"x", in_view(x, Shape{2, 2048}), nullptr}};
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(floats_of(second->run(feed)->front()), std::vector<float>(4096, 6));
}

/// x -> Relu -> Negate (a custom operator) -> y, of 4 floats.
std::string custom_model(bool with_weights) {
  OnnxBuilder model;
  model.input("x", {4}).output("y", {4});
  if (with_weights)
    model.constant<float>("w", {4}, kOnnxFloat, {1, 1, 1, 1}).node("Mul", {"x", "w"}, {"r"});
  else
    model.node("Relu", {"x"}, {"r"});
  return model.node("Negate", {"r"}, {"y"}, "test.ops").build("custom");
}

/// Negate calls `called` before it computes.
SessionOptions custom_options(const std::shared_ptr<device::Device>& device,
                              const std::function<void()>& called) {
  SessionOptions options = options_on(device);
  options.load.import.custom_operators = {"test.ops.Negate"};
  options.load.host_operators = std::make_shared<device::HostOperatorTable>();
  const Status added = options.load.host_operators->add(
      "Negate", [called](const device::HostOperatorCall& call) -> Status {
        called();
        const std::vector<float> in = floats_of(call.inputs[0]);
        auto* out = static_cast<float*>(call.outputs[0].data);
        for (std::size_t i = 0; i < in.size(); ++i) out[i] = -in[i];
        return {};
      });
  EXPECT_TRUE(added.ok());
  return options;
}

TEST(SmokeSessionCustomOperators, ForceIndependentContextsWithARemark) {
  std::atomic<int> calls{0};
  const std::string model = custom_model(false);
  const SessionOptions options = custom_options(testing::own_device(), [&] { ++calls; });
  auto session = Session::create(as_byte_span(model), options);
  ASSERT_TRUE(session) << session.error().to_string();
  EXPECT_EQ(session->statistics().contexts, 3U);
  EXPECT_EQ(session->statistics().duplicated, 0U);
  EXPECT_TRUE(session->options().disable_dup_context);
  EXPECT_THAT(session->warnings(), ElementsAre(HasSubstr("custom operators")));
  const std::vector<float> x = {1, -2, 3, 4};
  const Feed feed = {{"x", in_view(x, Shape{4}), nullptr}};
  for (int i = 0; i < 3; ++i) {
    const auto outputs = i == 1 ? session->submit(feed)->get() : session->run(feed);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    EXPECT_THAT(floats_of(outputs->front()), ElementsAre(-1, 0, -3, -4));
  }
  EXPECT_EQ(calls, 3);
}

/// What the operator does with the binding is for the next run; a run within has a copy.
TEST(SmokeSessionCustomOperators, MayUseTheBindingOfTheirRun) {
  std::function<void()> meanwhile;
  const SessionOptions options = custom_options(testing::own_device(), [&] {
    if (const auto f = std::exchange(meanwhile, nullptr)) f();
  });
  Session session = Session::create(as_byte_span(custom_model(false)), options).value();
  IoBinding binding = session.io_binding().value();
  const std::vector<float> x = {1, 2, 3, 4};
  const std::vector<float> next = {5, 6, 7, 8};
  std::vector<float> y(4);
  ASSERT_TRUE(binding.bind_input("x", in_view(x, Shape{4})).ok());
  ASSERT_TRUE(binding.bind_output("y", {y.data(), 16, DType::kF32, Shape{4}, {}, {}}).ok());
  Status within;
  for (const bool nested : {true, false}) {
    meanwhile = [&] {
      if (nested) within = session.run(binding);
      binding.clear_inputs();
      binding.clear_outputs();
      const Status bound = binding.bind_input("x", in_view(next, Shape{4}));
      EXPECT_TRUE(bound.ok()) << bound.to_string();
    };
    const Status status = session.run(binding);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_THAT(binding.outputs().size(), 1U);
    if (nested) EXPECT_THAT(y, ElementsAre(-1, -2, -3, -4));
    if (nested) EXPECT_EQ(binding.outputs()[0].data.get(), y.data());
    ASSERT_TRUE(session.run(binding).ok());
    EXPECT_THAT(floats_of(binding.outputs().at(0)), ElementsAre(-5, -6, -7, -8));
    EXPECT_NE(binding.outputs()[0].data.get(), y.data());
  }
  EXPECT_TRUE(within.ok()) << within.to_string();
}

TEST(SmokeSessionCustomOperators, OneContextNeedsNoRemark) {
  std::atomic<int> calls{0};
  const std::string model = custom_model(false);
  SessionOptions options = custom_options(testing::own_device(), [&] { ++calls; });
  options.schedule = {1};
  const Session session = Session::create(as_byte_span(model), options).value();
  EXPECT_TRUE(session.warnings().empty());
  EXPECT_EQ(session.statistics().contexts, 1U);
}

TEST(SmokeSessionCustomOperators, TakeNoWeightsOfAnotherSession) {
  std::atomic<int> calls{0};
  const std::string model = custom_model(true);
  const SessionOptions options = custom_options(testing::own_device(), [&] { ++calls; });
  const Session first = Session::create(as_byte_span(model), options).value();
  const auto refused = Session::create(as_byte_span(model), options, &first);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
  EXPECT_THAT(refused.error().message(), HasSubstr("custom operators"));
}

TEST(SmokeSessionCustomOperators, AMissingOneFailsItsTasksAndTheSessionGoesOn) {
  std::atomic<int> calls{0};
  const std::string model = custom_model(false);
  SessionOptions options = custom_options(testing::own_device(), [&] { ++calls; });
  options.load.host_operators->remove("Negate");
  Session session = Session::create(as_byte_span(model), options).value();
  const std::vector<float> x = {1, -2, 3, 4};
  const Feed feed = {{"x", in_view(x, Shape{4}), nullptr}};
  EXPECT_EQ(session.run(feed).error().code(), Code::kHostOperatorMissing);
  ASSERT_TRUE(options.load.host_operators
                  ->add("Negate", [](const device::HostOperatorCall&) { return Status(); })
                  .ok());
  EXPECT_TRUE(session.run(feed));
}

/// x -> Q -> DQ -> Relu -> Q -> DQ -> y with int8 after f32.
std::string quantized_model() {
  const std::vector<OnnxBuilder::Dim> dims = {std::int64_t{1}, std::int64_t{8}};
  return OnnxBuilder()
      .input("x", dims)
      .output("y", dims)
      .constant<float>("s", {}, kOnnxFloat, {0.5F})
      .constant<std::int8_t>("z", {}, testing::kOnnxInt8, {3})
      .constant<float>("t", {}, kOnnxFloat, {0.25F})
      .constant<std::int8_t>("u", {}, testing::kOnnxInt8, {-7})
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("DequantizeLinear", {"q", "s", "z"}, {"d"})
      .node("Relu", {"d"}, {"r"})
      .node("QuantizeLinear", {"r", "t", "u"}, {"p"})
      .node("DequantizeLinear", {"p", "t", "u"}, {"y"})
      .build("quantized");
}

TEST(SmokeSessionOutputForm, RawIntegersAreTheFloatsInAnotherForm) {
  const auto device = testing::own_device();
  const std::string model = quantized_model();
  SessionOptions options = options_on(device);
  Session floats = Session::create(as_byte_span(model), options).value();
  options.output_form = OutputForm::kRaw;
  Session raw = Session::create(as_byte_span(model), options).value();
  EXPECT_EQ(floats.outputs().front().dtype, DType::kF32);
  EXPECT_EQ(raw.outputs().front().dtype, DType::kI8);
  EXPECT_EQ(raw.outputs().front().quant, Quant::affine(0.25F, -7));
  const std::vector<float> x = {-3, 0, 0.5F, 1, 2.5F, 7, 20, 60};
  const Feed feed = {{"x", in_view(x, Shape{1, 8}), nullptr}};
  const std::vector<float> y = floats_of(floats.run(feed)->front());
  const Tensor q = raw.run(feed)->front();
  ASSERT_EQ(q.size, 8U);
  EXPECT_EQ(q.quant, Quant::affine(0.25F, -7));
  const auto* bytes = static_cast<const std::int8_t*>(q.data.get());
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ((static_cast<float>(bytes[i]) + 7) * 0.25F, y[i]) << i;
  EXPECT_THAT(y, ElementsAre(0, 0, 0.5F, 1, 2.5F, 7, 20, 33.5F));
}

}  // namespace
}  // namespace corelane
