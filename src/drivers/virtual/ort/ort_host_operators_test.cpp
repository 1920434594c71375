#include "drivers/virtual/ort/ort_host_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "drivers/virtual/ort/ort_engine.h"
#include "drivers/virtual/test_networks.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using device::HostOperatorCall;
using device::HostOperatorTable;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string factor(std::int64_t value) { return NetworkBuilder::int_attribute("factor", value); }

/// y = relu(Scale(x)) with Scale a custom operator.
std::string scale_network() {
  return NetworkBuilder()
      .input("x", {1, 4})
      .node("Scale", {"x"}, {"h"}, "scale", {factor(3)}, "my")
      .node("Relu", {"h"}, {"y"})
      .output("y", {1, 4})
      .bytes();
}

Status scale(const HostOperatorCall& call) {
  const auto by = std::get<std::int64_t>(call.attributes.find("factor")->second);
  const auto* in = static_cast<const float*>(call.inputs[0].data);
  auto* out = static_cast<float*>(call.outputs[0].data);
  for (std::size_t i = 0; i < call.inputs[0].size / sizeof(float); ++i)
    out[i] = in[i] * static_cast<float>(by);
  return {};
}

Result<std::shared_ptr<device::LaneProgram>> try_prepare(const std::string& network,
                                                         std::shared_ptr<HostOperatorTable> table,
                                                         const std::string& type = "Scale",
                                                         const std::string& domain = "my") {
  device::PrepareOptions options;
  options.custom_operators = {{type, domain}};
  options.host_operators = std::move(table);
  return make_ort_engine(2)->prepare(onnx_image(network), options);
}

std::shared_ptr<HostOperatorTable> table_of(device::HostOperator op,
                                            const std::string& type = "Scale") {
  auto table = std::make_shared<HostOperatorTable>();
  EXPECT_TRUE(table->add(type, std::move(op)).ok());
  return table;
}

Result<std::vector<float>> run_once(device::LaneProgram& program, std::vector<float> x) {
  CORELANE_ASSIGN(const auto request, program.new_request(1, 0));
  std::vector<float> y(x.size());
  CORELANE_TRY(request->set_input(0, tensor_ref(x, {1, 4})));
  CORELANE_TRY(request->set_output(0, tensor_ref(y, {1, 4})));
  CORELANE_TRY(request->run(1));
  return y;
}

TEST(OrtHostOperators, CallbackComputesTheNode) {
  const auto program = try_prepare(scale_network(), table_of(scale));
  ASSERT_TRUE(program) << program.error().to_string();
  const auto y = run_once(**program, {1, -2, 3, 4});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_THAT(*y, ElementsAre(3, 0, 9, 12));
}

TEST(OrtHostOperators, TwoNodesOfOneTypeStayApart) {
  const std::string network = NetworkBuilder()
                                  .input("x", {1, 4})
                                  .node("Scale", {"x"}, {"a"}, "a", {factor(2)}, "my")
                                  .node("Scale", {"x"}, {"b"}, "b", {factor(5)}, "my")
                                  .node("Add", {"a", "b"}, {"y"})
                                  .output("y", {1, 4})
                                  .bytes();
  const auto program = try_prepare(network, table_of(scale));
  ASSERT_TRUE(program) << program.error().to_string();
  const auto y = run_once(**program, {1, 2, 3, 4});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_THAT(*y, ElementsAre(7, 14, 21, 28));
}

/// An operator that the engine has is the host's all the same, in the standard domain too.
TEST(OrtHostOperators, AStandardNameMayBeTheHosts) {
  const std::string network = NetworkBuilder()
                                  .input("x", {1, 4})
                                  .node("Relu", {"x"}, {"y"}, "own", {factor(2)})
                                  .output("y", {1, 4})
                                  .bytes();
  const auto program = try_prepare(network, table_of(scale, "Relu"), "Relu", "");
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_THAT(run_once(**program, {1, -2, 3, 4}).value(), ElementsAre(2, -4, 6, 8));
}

TEST(OrtHostOperators, MissingCallbackFailsTheJobAndCanBeAddedLater) {
  auto table = std::make_shared<HostOperatorTable>();
  const auto program = try_prepare(scale_network(), table);
  ASSERT_TRUE(program) << program.error().to_string();
  const auto missing = run_once(**program, {1, 2, 3, 4});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Code::kHostOperatorMissing);
  EXPECT_THAT(missing.error().message(), HasSubstr("'Scale'"));
  ASSERT_TRUE(table->add("Scale", scale).ok());
  EXPECT_THAT(run_once(**program, {1, 2, 3, 4}).value(), ElementsAre(3, 6, 9, 12));
}

TEST(OrtHostOperators, FailureAndExceptionKeepTheirReason) {
  std::atomic<bool> throws{false};
  const auto program =
      try_prepare(scale_network(), table_of([&throws](const HostOperatorCall&) -> Status {
                    if (throws) throw std::runtime_error("thrown words");
                    return Status(Code::kOutOfRange, "too far");
                  }));
  ASSERT_TRUE(program) << program.error().to_string();
  const auto failed = run_once(**program, {1, 2, 3, 4});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kHostOperatorFailed);
  EXPECT_EQ(failed.error().cause().message(), "too far");
  throws = true;
  const auto thrown = run_once(**program, {1, 2, 3, 4});
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().code(), Code::kHostOperatorFailed);
  EXPECT_THAT(thrown.error().cause().message(), HasSubstr("thrown words"));
}

TEST(OrtHostOperators, FailuresOfTwoLanesAreNotMixedUp) {
  const auto program =
      try_prepare(scale_network(), table_of([](const HostOperatorCall& call) -> Status {
                    const float first = *static_cast<const float*>(call.inputs[0].data);
                    if (first < 0)
                      return error(Code::kOutOfRange, "value {}", static_cast<int>(first));
                    return scale(call);
                  }));
  ASSERT_TRUE(program) << program.error().to_string();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int lane = 0; lane < 3; ++lane) {
    threads.emplace_back([&, lane] {
      for (int i = 0; i < 50; ++i) {
        const bool bad = (i + lane) % 2 == 0;
        const auto first = static_cast<float>(bad ? -1 - lane : lane);
        const auto y = run_once(**program, {first, 1, 1, 1});
        const bool right =
            bad ? !y && y.error().cause().message() == "value " + std::to_string(-1 - lane)
                : y && (*y)[0] == static_cast<float>(3 * lane);
        wrong += right ? 0 : 1;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(OrtHostOperators, ConstantInputsDoNotRunTheCallbackAtPrepare) {
  const std::string network = NetworkBuilder()
                                  .input("x", {1, 4})
                                  .floats("k", {1, 4}, {1, 2, 3, 4})
                                  .node("Scale", {"k"}, {"h"}, "s", {factor(2)}, "my")
                                  .node("Add", {"x", "h"}, {"y"})
                                  .output("y", {1, 4})
                                  .bytes();
  std::atomic<int> calls{0};
  const auto program = try_prepare(network, table_of([&calls](const HostOperatorCall& call) {
                                     ++calls;
                                     return scale(call);
                                   }));
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_EQ(calls, 0);
  EXPECT_THAT(run_once(**program, {1, 1, 1, 1}).value(), ElementsAre(3, 5, 7, 9));
  EXPECT_EQ(calls, 1);
}

/// Two inputs of different types, one of them left out in a second node; a declared output.
std::string pair_network(const std::vector<std::string>& attributes) {
  return NetworkBuilder()
      .input("x", {1, 4}, kOnnxInt64)
      .input("f", {2})
      .node("Pair", {"x", "", "f"}, {"y"}, "pair", attributes, "my")
      .output("y", {1, 2}, kOnnxInt64)
      .bytes();
}

TEST(OrtHostOperators, DeclaredTypeAndShapeOfTheOutputHold) {
  const auto pair = [](const HostOperatorCall& call) -> Status {
    const auto& in = call.inputs;
    if (in.size() != 3 || in[0].dtype != DType::kI64 || in[1].dtype != DType::kUndefined ||
        in[1].data != nullptr || in[2].dtype != DType::kF32 ||
        call.outputs[0].dtype != DType::kI64 || call.outputs[0].shape != Shape{1, 2})
      return {Code::kTypeMismatch, "not as declared"};
    const auto* x = static_cast<const std::int64_t*>(in[0].data);
    const auto* f = static_cast<const float*>(in[2].data);
    auto* y = static_cast<std::int64_t*>(call.outputs[0].data);
    y[0] = x[0] + x[1] + static_cast<std::int64_t>(f[0]);
    y[1] = x[2] + x[3] + static_cast<std::int64_t>(f[1]);
    return {};
  };
  const auto program = try_prepare(
      pair_network({NetworkBuilder::ints_attribute("corelane_output_dtypes", {kOnnxInt64}),
                    NetworkBuilder::strings_attribute("corelane_output_shapes", {"?,2"})}),
      table_of(pair, "Pair"), "Pair");
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_EQ((*program)->outputs()[0].shape, (Shape{1, 2}));
  const auto request = (*program)->new_request(1, 0).value();
  std::vector<std::int64_t> x = {1, 2, std::int64_t{1} << 40, 4};
  std::vector<float> f = {10, 20};
  std::vector<std::int64_t> y(2);
  ASSERT_TRUE(request->set_input(0, tensor_ref(x, {1, 4})).ok());
  ASSERT_TRUE(request->set_input(1, tensor_ref(f, {2})).ok());
  ASSERT_TRUE(request->set_output(0, tensor_ref(y, {1, 2})).ok());
  const Status ran = request->run(1);
  ASSERT_TRUE(ran.ok()) << ran.to_string();
  EXPECT_THAT(y, ElementsAre(13, (std::int64_t{1} << 40) + 24));
}

TEST(OrtHostOperators, AnOutputWithoutATypeIsRefusedByItsNode) {
  const auto program = try_prepare(pair_network({}), table_of(scale, "Pair"), "Pair");
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(program.error().message(), HasSubstr("'pair'"));
}

TEST(OrtHostOperators, LayerTimesNameTheOperatorAsTheNetworkDoes) {
  device::PrepareOptions options;
  options.custom_operators = {{"Scale", "my"}};
  options.host_operators = table_of(scale);
  options.profile_layers = true;
  const auto program = make_ort_engine(1)->prepare(onnx_image(scale_network()), options).value();
  const auto request = program->new_request(1, 0).value();
  ASSERT_TRUE(request->run(1).ok());
  const auto layers = request->layer_times();
  ASSERT_TRUE(layers) << layers.error().to_string();
  ASSERT_EQ(layers->size(), 2U);
  EXPECT_EQ((*layers)[0].type, "Scale");
  EXPECT_EQ((*layers)[0].name, "scale");
  EXPECT_EQ((*layers)[1].type, "Relu");
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu::ort
