#include "drivers/virtual/direct/direct_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "drivers/virtual/common/onnx_patch.h"
#include "drivers/virtual/engine/network.h"
#include "drivers/virtual/test_programs.h"

namespace corelane::drivers::virtual_npu {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::IsNan;

std::shared_ptr<const DirectNetwork> direct_of(const std::string& bytes,
                                               const std::vector<std::string>& names = {"x"}) {
  const auto patched = patch_onnx(onnx_image(bytes), {});
  if (!patched) return nullptr;
  const auto network = read_network(*patched, nullptr);
  EXPECT_TRUE(network) << network.error().to_string();
  std::vector<TensorDesc> inputs;
  for (const std::string& name : names) inputs.emplace_back().name = name;
  return network ? DirectNetwork::make(**network, inputs) : nullptr;
}

std::string unary(std::string_view op, const std::vector<std::int64_t>& dims,
                  const std::vector<std::string>& attributes = {}) {
  return NetworkBuilder()
      .input("x", dims)
      .node(op, {"x"}, {"y"}, "n", attributes)
      .output("y", dims)
      .bytes();
}

std::string binary(std::string_view op, const std::vector<std::int64_t>& a,
                   const std::vector<std::int64_t>& b, const std::vector<std::int64_t>& y) {
  return NetworkBuilder()
      .input("x", a)
      .input("z", b)
      .node(op, {"x", "z"}, {"y"})
      .output("y", y)
      .bytes();
}

/// x [2, 8] -> w [8, 5], bias, Tanh, [5, 3], bias, Softmax, and a second output in between.
std::string perceptron() {
  std::vector<float> w(40);
  std::vector<float> v(15);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.05F * static_cast<float>(i % 17) - 0.4F;
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = 0.3F - 0.1F * static_cast<float>(i % 7);
  return NetworkBuilder()
      .input("x", {2, 8})
      .floats("w", {8, 5}, w)
      .floats("c", {5}, {0.1F, -0.2F, 0.3F, 0.0F, 1.0F})
      .floats("v", {3, 5}, v)
      .floats("d", {3}, {1, 2, -3})
      .node("MatMul", {"x", "w"}, {"h0"})
      .node("Add", {"h0", "c"}, {"h1"})
      .node("Tanh", {"h1"}, {"h"})
      .node("Gemm", {"h", "v", "d"}, {"s"}, "g", {NetworkBuilder::int_attribute("transB", 1)})
      .node("Softmax", {"s"}, {"y"})
      .output("y", {2, 3})
      .output("h", {2, 5})
      .bytes();
}

/// Outputs of the two ways on random values between -3 and 3.
void expect_the_engines_results(const std::string& bytes, const std::vector<std::string>& names) {
  ASSERT_TRUE(direct_of(bytes, names));
  const auto direct = make_virtual_engine(kLanes)->prepare(onnx_image(bytes), {});
  ASSERT_TRUE(direct);
  const auto engine = prepare(onnx_image(bytes));
  const auto one = request(**direct);
  const auto other = request(*engine);
  std::minstd_rand random(7);
  std::uniform_real_distribution<float> values(-3, 3);
  std::vector<std::vector<float>> inputs;
  for (const TensorDesc& desc : engine->inputs()) {
    auto& input = inputs.emplace_back(*desc.shape.elements());
    for (float& value : input) value = values(random);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(one->set_input(i, tensor_ref(inputs[i], engine->inputs()[i].shape)).ok());
    ASSERT_TRUE(other->set_input(i, tensor_ref(inputs[i], engine->inputs()[i].shape)).ok());
  }
  ASSERT_TRUE(one->run(1).ok());
  ASSERT_TRUE(other->run(1).ok());
  for (std::size_t i = 0; i < engine->outputs().size(); ++i) {
    EXPECT_EQ((*direct)->outputs()[i].shape, engine->outputs()[i].shape);
    const auto a = floats_of(*one, i);
    const auto b = floats_of(*other, i);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t k = 0; k < a.size(); ++k)
      if (std::isnan(b[k]))
        EXPECT_TRUE(std::isnan(a[k])) << k;
      else
        EXPECT_NEAR(a[k], b[k], 2e-6 * std::max(1.0F, std::fabs(b[k]))) << i << "/" << k;
  }
}

TEST(DirectNetwork, GivesTheEnginesResults) {
  for (const char* op : {"Relu", "Abs", "Neg", "Sqrt", "Floor", "Ceil", "Exp", "Log", "Tanh",
                         "Sigmoid", "Softmax"}) {
    SCOPED_TRACE(op);
    expect_the_engines_results(unary(op, {2, 3, 5}), {"x"});
  }
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
    SCOPED_TRACE(op);
    expect_the_engines_results(binary(op, {2, 3}, {2, 3}, {2, 3}), {"x", "z"});
    expect_the_engines_results(binary(op, {2, 1, 3}, {4, 1}, {2, 4, 3}), {"x", "z"});
    expect_the_engines_results(binary(op, {1}, {2, 2}, {2, 2}), {"x", "z"});
  }
  expect_the_engines_results(binary("MatMul", {3, 4}, {4, 5}, {3, 5}), {"x", "z"});
  expect_the_engines_results(perceptron(), {"x"});
}

TEST(DirectNetwork, NotANumberAndInfinityGoThrough) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const auto run = [](const std::string& bytes, std::vector<std::vector<float>> in) {
    const auto network = direct_of(bytes, {"x", "z"});
    std::vector<const float*> inputs;
    for (const auto& i : in) inputs.push_back(i.data());
    std::vector<float> y(in[0].size());
    std::vector<float> scratch(network->scratch());
    float* outputs[] = {y.data()};
    network->run(inputs, outputs, scratch.data());
    return y;
  };
  EXPECT_THAT(run(unary("Relu", {3}), {{nan, -inf, inf}}), ElementsAre(IsNan(), 0.0F, inf));
  const auto max = run(binary("Max", {4}, {4}, {4}), {{nan, 1, -inf, 2}, {1, nan, 3, inf}});
  EXPECT_THAT(max, ElementsAre(IsNan(), IsNan(), 3.0F, inf));
  EXPECT_THAT(run(unary("Sigmoid", {2}), {{-inf, inf}}), ElementsAre(0.0F, 1.0F));
}

/// Runs a network of x on {1, 2, 3}, which its first output -x is written over; `second`: the other
/// output.
void expect_in_place(const std::string& network, const std::vector<float>& second) {
  const auto program = make_virtual_engine(1)->prepare(onnx_image(network), {});
  ASSERT_TRUE(program);
  const auto r = request(**program);
  std::vector<float> x = {1, 2, 3};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {3})).ok());
  ASSERT_TRUE(r->set_output(0, tensor_ref(x, {3})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(x, ElementsAre(-1, -2, -3));
  EXPECT_EQ(floats_of(*r, 1), second);
}

TEST(DirectNetwork, AnOutputMayBeTheMemoryOfAnInput) {
  expect_in_place(NetworkBuilder()
                      .input("x", {3})
                      .node("Neg", {"x"}, {"y"})
                      .node("Add", {"x", "x"}, {"z"})
                      .output("y", {3})
                      .output("z", {3})
                      .bytes(),
                  {2, 4, 6});
}

/// The second output was read after the first one had been written over it.
TEST(DirectNetwork, AnInputThatIsAnOutputIsReadBeforeAnotherOneIsWrittenOverIt) {
  const std::string network =
      NetworkBuilder()
          .input("x", {3})
          .constant("s", {1}, kOnnxInt64, std::string("\3\0\0\0\0\0\0\0", 8))
          .node("Neg", {"x"}, {"y"})
          .node("Reshape", {"x", "s"}, {"z"})
          .output("y", {3})
          .output("z", {3})
          .bytes();
  ASSERT_TRUE(direct_of(network));
  expect_in_place(network, {1, 2, 3});
}

TEST(DirectNetwork, InputsAndConstantsMayBeOutputs) {
  const auto program =
      make_virtual_engine(1)->prepare(onnx_image(NetworkBuilder()
                                                     .input("x", {2})
                                                     .floats("c", {2}, {7, 8})
                                                     .node("Identity", {"x"}, {"y"})
                                                     .node("Identity", {"c"}, {"z"})
                                                     .output("y", {2})
                                                     .output("z", {2})
                                                     .bytes()),
                                      {});
  ASSERT_TRUE(program);
  const auto r = request(**program);
  std::vector<float> x = {1, 2};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(floats_of(*r, 0), ElementsAre(1, 2));
  EXPECT_THAT(floats_of(*r, 1), ElementsAre(7, 8));
}

TEST(DirectNetwork, TheEngineRunsLargeAndOtherNetworks) {
  EXPECT_TRUE(direct_of(unary("Relu", {4000})));
  EXPECT_FALSE(direct_of(unary("Relu", {5000})));
  EXPECT_TRUE(direct_of(unary("Exp", {100})));
  EXPECT_FALSE(direct_of(unary("Exp", {400})));
  EXPECT_FALSE(direct_of(unary("Relu", {-1, 4})));
  EXPECT_FALSE(direct_of(unary("Relu", {0, 4})));
  EXPECT_FALSE(direct_of(unary("Erf", {4})));
  EXPECT_FALSE(direct_of(unary("Softmax", {4, 3}, {NetworkBuilder::int_attribute("axis", 0)})));
  EXPECT_FALSE(direct_of(binary("MatMul", {1, 128}, {128, 128}, {1, 128}), {"x", "z"}));
  EXPECT_FALSE(direct_of(binary("MatMul", {2, 3, 4}, {4, 5}, {2, 3, 5}), {"x", "z"}));
  const std::string integers = NetworkBuilder()
                                   .input("x", {4}, kOnnxInt64)
                                   .node("Abs", {"x"}, {"y"})
                                   .output("y", {4}, kOnnxInt64)
                                   .bytes();
  EXPECT_FALSE(direct_of(integers));
}

TEST(DirectNetwork, OpenShapesRunTheFormOfTheBoundShape) {
  const std::string bytes = NetworkBuilder()
                                .input("x", {-1, 2})
                                .floats("c", {2}, {10, 20})
                                .node("Add", {"x", "c"}, {"y"})
                                .output("y", {-1, 2})
                                .bytes();
  const auto program = make_virtual_engine(1)->prepare(onnx_image(bytes), {});
  ASSERT_TRUE(program);
  const auto r = request(**program);
  EXPECT_FALSE(r->run(1).ok());  // Nothing is bound.
  EXPECT_FALSE(r->output(0));
  std::vector<float> x(20000, 1.0F);
  for (const std::int64_t n : {1, 3, 10000, 2, 3}) {
    SCOPED_TRACE(n);
    const std::vector<float> part(x.begin(), x.begin() + 2 * n);
    std::vector<float> input = part;
    ASSERT_TRUE(r->set_input(0, tensor_ref(input, {n, 2})).ok());
    ASSERT_TRUE(r->set_output(0, {}).ok());
    const Status status = r->run(1);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(r->output(0)->shape, (Shape{n, 2}));
    const auto y = floats_of(*r, 0);
    ASSERT_EQ(y.size(), part.size());
    EXPECT_EQ(y[0], 11.0F);
    EXPECT_EQ(y.back(), 21.0F);
    std::vector<float> given(y.size());
    ASSERT_TRUE(r->set_output(0, tensor_ref(given, {n, 2})).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_EQ(given, y);
    std::vector<float> short_one(y.size() - 1);
    ASSERT_TRUE(r->set_output(0, tensor_ref(short_one, {n, 2})).ok());
    EXPECT_EQ(r->run(1).code(), Code::kShapeMismatch);
  }
  std::vector<float> wrong(3, 1.0F);
  ASSERT_TRUE(r->set_output(0, {}).ok());
  const Status bound = r->set_input(0, tensor_ref(wrong, {1, 3}));
  EXPECT_FALSE(bound.ok() && r->run(1).ok());
}

/// A buffer of a large run lived as long as the context.
TEST(DirectNetwork, WhatTheEngineHadIsLetGoAtTheNextRunWithoutIt) {
  const auto program =
      make_virtual_engine(1)->prepare(onnx_image(NetworkBuilder()
                                                     .input("x", {-1, 2})
                                                     .floats("c", {2}, {10, 20})
                                                     .node("Add", {"x", "c"}, {"y"})
                                                     .output("y", {-1, 2})
                                                     .bytes()),
                                      {});
  ASSERT_TRUE(program);
  const auto r = request(**program);
  for (int round = 0; round < 2; ++round) {
    auto large = std::make_shared<std::vector<float>>(200000, 1.0F);
    const std::weak_ptr<std::vector<float>> held = large;
    device::TensorRef tensor = tensor_ref(*large, {100000, 2});
    tensor.keep_alive = large;
    ASSERT_TRUE(r->set_input(0, tensor).ok());
    tensor.keep_alive.reset();
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_EQ(floats_of(*r, 0)[199999], 21.0F);
    large.reset();
    std::vector<float> small{1, 2};
    ASSERT_TRUE(r->set_input(0, tensor_ref(small, {1, 2})).ok());
    EXPECT_FALSE(r->is_brief());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_EQ(floats_of(*r, 0), (std::vector<float>{11, 22}));
    EXPECT_TRUE(held.expired());
  }
}

TEST(DirectNetwork, TheEngineServesLayerTimesAndOtherPrecisions) {
  device::PrepareOptions options;
  options.profile_layers = true;
  const auto program = make_virtual_engine(1)->prepare(onnx_image(relu_network()), options);
  ASSERT_TRUE(program);
  const auto r = request(**program);
  ASSERT_TRUE(r->run(1).ok());
  const auto times = r->layer_times();
  ASSERT_TRUE(times) << times.error().to_string();
  EXPECT_FALSE(times->empty());
}

TEST(DirectNetwork, UnboundTensorsHaveMemoryOfTheRequest) {
  const auto program = make_virtual_engine(1)->prepare(onnx_image(relu_network()), {});
  const auto r = request(**program);
  std::vector<float> x(16, 3.0F);
  std::vector<float> y(16, -1.0F);
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 16})).ok());
  ASSERT_TRUE(r->set_output(0, tensor_ref(y, {1, 16})).ok());
  ASSERT_TRUE(r->set_output(0, {}).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(y[0], -1.0F);
  EXPECT_EQ(floats_of(*r, 0)[0], 3.0F);
  EXPECT_FALSE(r->layer_times());
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
