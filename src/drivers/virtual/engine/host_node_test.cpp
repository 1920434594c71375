#include "drivers/virtual/engine/host_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <stdexcept>
#include <thread>

#include "drivers/virtual/test_networks.h"
#include "drivers/virtual/test_requests.h"
#include "drivers/virtual/virtual_engine.h"

namespace corelane::drivers::virtual_npu {
namespace {

using device::HostOperatorCall;
using device::HostOperatorTable;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// y = Scale(x) * 1 with Scale a custom operator, `factor` its attribute.
std::string scale_network(const std::vector<std::string>& attributes = {
                              NetworkBuilder::int_attribute("factor", 3)}) {
  return NetworkBuilder()
      .input("x", {1, 4})
      .node("Scale", {"x"}, {"h"}, "scale", attributes, "my")
      .node("Relu", {"h"}, {"y"})
      .output("y", {1, 4})
      .bytes();
}

Status scale(const HostOperatorCall& call) {
  const auto factor = std::get<std::int64_t>(call.attributes.find("factor")->second);
  const auto* in = static_cast<const float*>(call.inputs[0].data);
  auto* out = static_cast<float*>(call.outputs[0].data);
  for (std::size_t i = 0; i < call.inputs[0].size / sizeof(float); ++i)
    out[i] = in[i] * static_cast<float>(factor);
  return {};
}

device::PrepareOptions options_with(std::shared_ptr<HostOperatorTable> table) {
  device::PrepareOptions options;
  options.custom_operators = {{"Scale", "my"}};
  options.host_operators = std::move(table);
  return options;
}

/// Runs the program once on `core`; the result or the failure.
Result<std::vector<float>> run_once(device::LaneProgram& program, std::size_t core,
                                    std::vector<float> x) {
  CORELANE_ASSIGN(const auto request, program.new_request(1, core));
  std::vector<float> y(x.size());
  CORELANE_TRY(request->set_input(0, tensor_ref(x, {1, 4})));
  CORELANE_TRY(request->set_output(0, tensor_ref(y, {1, 4})));
  CORELANE_TRY(request->run(1));
  return y;
}

TEST(HostNode, CallbackComputesTheNode) {
  auto table = std::make_shared<HostOperatorTable>();
  ASSERT_TRUE(table->add("Scale", scale).ok());
  auto program = make_virtual_engine(3)->prepare(onnx_image(scale_network()), options_with(table));
  ASSERT_TRUE(program) << program.error().to_string();
  const auto y = run_once(**program, 0, {1, -2, 3, 4});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_THAT(*y, ElementsAre(3, 0, 9, 12));
}

TEST(HostNode, MissingCallbackFailsTheJobAndCanBeAddedLater) {
  for (const std::size_t lanes : {std::size_t{1}, std::size_t{3}}) {
    auto table = std::make_shared<HostOperatorTable>();
    auto program =
        make_virtual_engine(lanes)->prepare(onnx_image(scale_network()), options_with(table));
    ASSERT_TRUE(program) << program.error().to_string();
    const auto missing = run_once(**program, 0, {1, 2, 3, 4});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), Code::kHostOperatorMissing);
    EXPECT_THAT(missing.error().message(), HasSubstr("'Scale'"));
    ASSERT_TRUE(table->add("Scale", scale).ok());
    const auto y = run_once(**program, 0, {1, 2, 3, 4});
    ASSERT_TRUE(y) << y.error().to_string();
    EXPECT_THAT(*y, ElementsAre(3, 6, 9, 12));
  }
}

TEST(HostNode, FailureAndExceptionKeepTheirReason) {
  auto table = std::make_shared<HostOperatorTable>();
  std::atomic<int> mode{0};
  ASSERT_TRUE(table
                  ->add("Scale",
                        [&mode](const HostOperatorCall&) -> Status {
                          if (mode == 0) return Status(Code::kOutOfRange, "too far");
                          throw std::runtime_error("thrown words");
                        })
                  .ok());
  auto program = make_virtual_engine(2)->prepare(onnx_image(scale_network()), options_with(table));
  ASSERT_TRUE(program);
  const auto failed = run_once(**program, 0, {1, 2, 3, 4});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kHostOperatorFailed);
  EXPECT_EQ(failed.error().cause().message(), "too far");
  mode = 1;
  const auto thrown = run_once(**program, 0, {1, 2, 3, 4});
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().code(), Code::kHostOperatorFailed);
  EXPECT_THAT(thrown.error().cause().message(), HasSubstr("thrown words"));
}

/// The engine made no request beside a run that hung: all later runs were over their time.
TEST(HostNode, ARequestAfterAnAbandonedRunThatHangsComputes) {
  for (const std::size_t lanes : {std::size_t{1}, std::size_t{3}}) {
    auto table = std::make_shared<HostOperatorTable>();
    std::promise<void> hangs, go_on;
    std::atomic<int> calls{0};
    ASSERT_TRUE(table
                    ->add("Scale",
                          [&](const HostOperatorCall& call) -> Status {
                            if (calls++ == 0) {
                              hangs.set_value();
                              go_on.get_future().wait();
                            }
                            return scale(call);
                          })
                    .ok());
    auto program =
        make_virtual_engine(lanes)->prepare(onnx_image(scale_network()), options_with(table));
    ASSERT_TRUE(program) << program.error().to_string();
    const auto first = (*program)->new_request(1, 0);
    const auto second = (*program)->new_request(1, 0);
    ASSERT_TRUE(first);
    ASSERT_TRUE(second);
    std::vector<float> x(4, 1.0F);
    std::vector<float> y(4);
    ASSERT_TRUE((*first)->set_input(0, tensor_ref(x, {1, 4})).ok());
    ASSERT_TRUE((*first)->set_output(0, tensor_ref(y, {1, 4})).ok());
    std::thread runner([&] { (void)(*first)->run(1); });
    hangs.get_future().wait();
    (*first)->abandon();
    EXPECT_EQ((*second)->run(1).code(), Code::kDeviceReset) << "it was made before";
    EXPECT_TRUE((*second)->lost()) << "so that the job is run on another request";
    const auto next = run_once(**program, 0, {1, 2, 3, 4});
    EXPECT_TRUE(next) << next.error().to_string();
    if (next) EXPECT_THAT(*next, ElementsAre(3, 6, 9, 12));
    go_on.set_value();
    runner.join();
  }
}

TEST(HostNode, FailuresOfTwoLanesAreNotMixedUp) {
  auto table = std::make_shared<HostOperatorTable>();
  ASSERT_TRUE(table
                  ->add("Scale",
                        [](const HostOperatorCall& call) -> Status {
                          const float first = *static_cast<const float*>(call.inputs[0].data);
                          if (first < 0)
                            return error(Code::kOutOfRange, "value {}", static_cast<int>(first));
                          return scale(call);
                        })
                  .ok());
  auto program = make_virtual_engine(3)->prepare(onnx_image(scale_network()), options_with(table));
  ASSERT_TRUE(program);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int lane = 0; lane < 3; ++lane)
    threads.emplace_back([&, lane] {
      for (int i = 0; i < 50; ++i) {
        const bool bad = (i + lane) % 2 == 0;
        const auto first = static_cast<float>(bad ? -1 - lane : lane);
        const auto y = run_once(**program, static_cast<std::size_t>(lane), {first, 1, 1, 1});
        const bool right =
            bad ? !y && y.error().cause().message() == "value " + std::to_string(-1 - lane)
                : y && (*y)[0] == static_cast<float>(3 * lane);
        wrong += right ? 0 : 1;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(HostNode, TwoNodesOfOneTypeWithOneInputStayApart) {
  const std::string bytes =
      NetworkBuilder()
          .input("x", {1, 4})
          .node("Scale", {"x"}, {"a"}, "a", {NetworkBuilder::int_attribute("factor", 2)}, "my")
          .node("Scale", {"x"}, {"b"}, "b", {NetworkBuilder::int_attribute("factor", 5)}, "my")
          .node("Add", {"a", "b"}, {"y"})
          .output("y", {1, 4})
          .bytes();
  auto table = std::make_shared<HostOperatorTable>();
  ASSERT_TRUE(table->add("Scale", scale).ok());
  auto program = make_virtual_engine(1)->prepare(onnx_image(bytes), options_with(table));
  ASSERT_TRUE(program) << program.error().to_string();
  const auto y = run_once(**program, 0, {1, 2, 3, 4});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_THAT(*y, ElementsAre(7, 14, 21, 28));
}

TEST(HostNode, ConstantInputsDoNotRunTheCallbackAtPrepare) {
  const std::string bytes =
      NetworkBuilder()
          .input("x", {1, 4})
          .floats("k", {1, 4}, {1, 2, 3, 4})
          .node("Scale", {"k"}, {"h"}, "s", {NetworkBuilder::int_attribute("factor", 2)}, "my")
          .node("Add", {"x", "h"}, {"y"})
          .output("y", {1, 4})
          .bytes();
  auto table = std::make_shared<HostOperatorTable>();
  std::atomic<int> calls{0};
  ASSERT_TRUE(table
                  ->add("Scale",
                        [&calls](const HostOperatorCall& call) {
                          ++calls;
                          return scale(call);
                        })
                  .ok());
  auto program = make_virtual_engine(1)->prepare(onnx_image(bytes), options_with(table));
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_EQ(calls, 0);
  const auto y = run_once(**program, 0, {1, 1, 1, 1});
  ASSERT_TRUE(y);
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(*y, ElementsAre(3, 5, 7, 9));
}

TEST(HostNode, DeclaredTypeAndShapeOfTheOutputHold) {
  const std::string bytes =
      NetworkBuilder()
          .input("x", {1, 4}, kOnnxInt64)
          .node("Pair", {"x"}, {"y"}, "pair",
                {NetworkBuilder::ints_attribute("corelane_output_dtypes", {kOnnxInt64}),
                 NetworkBuilder::strings_attribute("corelane_output_shapes", {"?,2"})},
                "my")
          .output("y", {1, 2}, kOnnxInt64)
          .bytes();
  auto table = std::make_shared<HostOperatorTable>();
  DType seen_input = DType::kUndefined;
  DType seen_output = DType::kUndefined;
  ASSERT_TRUE(table
                  ->add("Pair",
                        [&](const HostOperatorCall& call) -> Status {
                          seen_input = call.inputs[0].dtype;
                          seen_output = call.outputs[0].dtype;
                          if (call.outputs[0].shape != Shape{1, 2} || seen_input != DType::kI64 ||
                              seen_output != DType::kI64)
                            return Status(Code::kTypeMismatch, "not as declared");
                          const auto* in = static_cast<const std::int64_t*>(call.inputs[0].data);
                          auto* out = static_cast<std::int64_t*>(call.outputs[0].data);
                          out[0] = in[0] + in[1];
                          out[1] = in[2] + in[3];
                          return {};
                        })
                  .ok());
  device::PrepareOptions options;
  options.custom_operators = {{"Pair", "my"}};
  options.host_operators = table;
  auto program = make_virtual_engine(1)->prepare(onnx_image(bytes), options);
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_EQ((*program)->outputs()[0].shape, (Shape{1, 2}));
  auto request = (*program)->new_request(1, 0);
  ASSERT_TRUE(request);
  std::vector<std::int64_t> x = {1, 2, 3, 4};
  std::vector<std::int64_t> y(2);
  ASSERT_TRUE((*request)->set_input(0, tensor_ref(x, {1, 4})).ok());
  ASSERT_TRUE((*request)->set_output(0, tensor_ref(y, {1, 2})).ok());
  const Status status = (*request)->run(1);
  ASSERT_TRUE(status.ok()) << status.to_string() << " input " << dtype_name(seen_input)
                           << " output " << dtype_name(seen_output);
  EXPECT_THAT(y, ElementsAre(3, 7));
}

/// The first of two nodes gives the run up: the second one is not computed.
TEST(HostNode, AnAbandonedRunEndsBetweenTwoNodes) {
  const std::string network = NetworkBuilder()
                                  .input("x", {1, 4})
                                  .node("Scale", {"x"}, {"h"}, "first", {}, "my")
                                  .node("Scale", {"h"}, {"y"}, "second", {}, "my")
                                  .output("y", {1, 4})
                                  .bytes();
  device::LaneRequest* running = nullptr;
  int calls = 0;
  auto table = std::make_shared<HostOperatorTable>();
  const auto count = [&](const HostOperatorCall&) {
    ++calls;
    if (running != nullptr) running->abandon();
    return Status();
  };
  ASSERT_TRUE(table->add("Scale", count).ok());
  auto program = make_virtual_engine(1)->prepare(onnx_image(network), options_with(table));
  ASSERT_TRUE(program) << program.error().to_string();
  const auto request = (*program)->new_request(1, 0).value();
  std::vector<float> x(4);
  ASSERT_TRUE(request->set_input(0, tensor_ref(x, {1, 4})).ok());
  running = request.get();
  (void)request->run(1);
  EXPECT_EQ(calls, 1);
  running = nullptr;
  EXPECT_TRUE(request->run(1).ok()) << "the next run is not abandoned";
  EXPECT_EQ(calls, 3);
}

/// Runs of [8, 4] that are given up by their first node, between runs of [5, 4]. Where the engine
/// ended them there, its later nodes kept the sizes of one run with the memory of another.
void expect_right_runs_after_abandoned_ones(NetworkBuilder& builder, bool sizes_by_values) {
  device::LaneRequest* running = nullptr;
  auto table = std::make_shared<HostOperatorTable>();
  const auto give_up = [&](const HostOperatorCall& call) {
    std::memcpy(call.outputs[0].data, call.inputs[0].data, call.inputs[0].size);
    if (running != nullptr) running->abandon();
    return Status();
  };
  ASSERT_TRUE(table->add("GiveUp", give_up).ok());
  device::PrepareOptions options;
  options.custom_operators = {{"GiveUp", "my"}};
  options.host_operators = table;
  const std::string network =
      builder.node("Neg", {"h"}, {"a"})
          .node("Erf", {"a"}, {"b"})
          .node("Sub", {"b", "h"}, {"c"})
          .node("ReduceMean", {"c"}, {"y"}, {}, {NetworkBuilder::ints_attribute("axes", {0})})
          .output("y", {1, 4})
          .bytes();
  for (const std::size_t lanes : {std::size_t{1}, std::size_t{3}}) {
    auto program = make_virtual_engine(lanes)->prepare(onnx_image(network), options);
    ASSERT_TRUE(program) << program.error().to_string();
    const auto request = (*program)->new_request(1, 0).value();
    for (int round = 1; round <= 100; ++round) {
      for (const std::int64_t rows : {8, 5}) {
        // Erf of such values is -1 below 0. Sizes by values: rows that are not 0.
        std::vector<float> x(32, sizes_by_values ? 0.0F : static_cast<float>(4 * round));
        std::fill_n(x.begin(), rows * 4, static_cast<float>(4 * round));
        const Shape shape = sizes_by_values ? Shape{8, 4} : Shape{rows, 4};
        ASSERT_TRUE(request->set_input(0, tensor_ref(x, shape)).ok());
        running = rows == 8 ? request.get() : nullptr;
        const Status status = request->run(1);
        if (rows == 8) continue;
        ASSERT_TRUE(status.ok()) << status.to_string();
        ASSERT_EQ(floats_of(*request, 0),
                  std::vector<float>(4, -1.0F - static_cast<float>(4 * round)));
      }
    }
  }
}

TEST(HostNode, RunsOfOpenSizesAreRightAfterAbandonedOnes) {
  NetworkBuilder builder;
  builder.input("x", {-1, 4}).node("GiveUp", {"x"}, {"h"}, "first", {}, "my");
  expect_right_runs_after_abandoned_ones(builder, false);
}

TEST(HostNode, RunsOfSizesThatFollowValuesAreRightAfterAbandonedOnes) {
  NetworkBuilder builder;
  builder.input("x", {8, 4})
      .node("ReduceMax", {"x"}, {"r"}, "r",
            {NetworkBuilder::ints_attribute("axes", {1}),
             NetworkBuilder::int_attribute("keepdims", 0)})
      .node("NonZero", {"r"}, {"p"})
      .constant("first", {1}, kOnnxInt64, std::string(8, '\0'))
      .node("Squeeze", {"p", "first"}, {"places"})
      .node("Gather", {"x", "places"}, {"g"})
      .node("GiveUp", {"g"}, {"h"}, "first", {}, "my");
  expect_right_runs_after_abandoned_ones(builder, true);
}

TEST(HostNode, NoPrecompiledFormWithCustomOperators) {
  auto program = make_virtual_engine(1)->prepare(
      onnx_image(scale_network()), options_with(std::make_shared<HostOperatorTable>()));
  ASSERT_TRUE(program);
  const auto form = (*program)->export_precompiled();
  ASSERT_FALSE(form);
  EXPECT_EQ(form.error().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
