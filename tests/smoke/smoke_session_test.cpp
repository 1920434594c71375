// Sessions on the virtual NPU.
#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "corelane/device/device.h"
#include "corelane/session/session.h"
#include "smoke_support.h"

namespace corelane {
namespace {

using testing::affine_model;
using testing::floats_of;
using testing::in_view;
using testing::options_on;

std::vector<float> affine(const std::vector<float>& x, float scale) {
  std::vector<float> y;
  for (const float v : x) y.push_back(v * scale + 1);
  return y;
}

Session session_of(const std::string& onnx, const SessionOptions& options) {
  auto session = Session::create(as_byte_span(onnx), options);
  EXPECT_TRUE(session) << session.error().to_string();
  return session ? *session : Session();
}

/// The call of a binding is kept from run to run; the shape of a result is not.
TEST(SmokeSession, ABoundResultGrowsAndShrinksWithinItsMemory) {
  using testing::OnnxBuilder;
  const std::string model =
      OnnxBuilder()
          .input("x", {std::int64_t{4}})
          .output("y", {std::int64_t{1}, std::string("N")}, testing::kOnnxInt64)
          .node("NonZero", {"x"}, {"y"})
          .build();
  Session session = session_of(model, options_on(testing::own_device()));
  auto made = session.io_binding();
  ASSERT_TRUE(made);
  std::vector<float> x(4);
  std::vector<std::int64_t> y(4);
  ASSERT_TRUE(made->bind_input("x", in_view(x, Shape{4})).ok());
  ASSERT_TRUE(made->bind_output("y", {y.data(), 32, DType::kI64, Shape{1, 4}, {}, {}}).ok());
  const std::pair<std::vector<float>, std::vector<std::int64_t>> cases[] = {
      {{0, 2, 0, 0}, {1}}, {{1, 2, 0, 4}, {0, 1, 3}}, {{0, 0, 3, 4}, {2, 3}}};
  for (const auto& [input, places] : cases) {
    x = input;
    const Status status = session.run(*made);
    ASSERT_TRUE(status.ok()) << status.to_string();
    const auto count = static_cast<std::int64_t>(places.size());
    EXPECT_EQ(made->outputs().at(0).shape, (Shape{1, count}));
    EXPECT_THAT(std::vector<std::int64_t>(y.begin(), y.begin() + count),
                ::testing::ElementsAreArray(places));
  }
}

TEST(SmokeSession, EveryWayToRunGivesTheSameResult) {
  Session session = session_of(affine_model(4, 3), options_on(testing::own_device()));
  const std::vector<float> x = {1, 2, 3, -4};
  const std::vector<float> y = affine(x, 3);
  const Feed feed = {{"x", in_view(x, Shape{4}), nullptr}};
  EXPECT_EQ(floats_of(session.run(feed)->front()), y);
  EXPECT_EQ(floats_of(session.submit(feed)->get()->front()), y);
  std::promise<std::vector<float>> called;
  ASSERT_TRUE(session.run_async(feed, [&](std::uint64_t, const Result<Outputs>& outputs) {
    called.set_value(outputs ? floats_of(outputs->front()) : std::vector<float>());
  }));
  EXPECT_EQ(called.get_future().get(), y);
  EXPECT_FALSE(session.run_pipeline(feed, 1)->has_value());
  EXPECT_EQ(floats_of(session.run_pipeline(feed, 1)->value().front()), y);
  IoBinding binding = session.io_binding().value();
  ASSERT_TRUE(binding.bind_input("x", in_view(x, Shape{4})).ok());
  ASSERT_TRUE(session.run(binding).ok());
  EXPECT_EQ(floats_of(binding.outputs().front()), y);
}

TEST(SmokeSession, TasksRunOnTheCoresOfTheSchedule) {
  SessionOptions options = options_on(testing::own_device());
  options.schedule = {2, 0};
  Session session = session_of(affine_model(4, 2), options);
  ASSERT_TRUE(session.set_trace(64).ok());
  const std::vector<float> x(4, 1);
  const Feed feed = {{"x", in_view(x, Shape{4}), nullptr}};
  for (int i = 0; i < 20; ++i)
    if (i % 2 == 0)
      ASSERT_TRUE(session.run(feed));
    else
      ASSERT_TRUE(session.submit(feed)->get());
  const auto records = session.read_trace().value();
  ASSERT_EQ(records.size(), 20U);
  for (const auto& record : records) EXPECT_EQ(record.core_bits, record.tag % 2 == 0 ? 4U : 1U);
}

TEST(SmokeSession, ManyThreadsAreNeverMixedUp) {
  SessionOptions options = options_on(testing::own_device());
  options.threads_per_core = 2;
  Session session = session_of(affine_model(16, 2), options);
  std::atomic<int> wrong{0};
  std::atomic<int> called{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::vector<float> x(16, static_cast<float>(t * 1000 + i));
        const std::vector<float> y = affine(x, 2);
        const Feed feed = {{"x", in_view(x, Shape{16}), nullptr}};
        if (i % 4 == 0) {
          const auto id =
              session.run_async(feed, [&, y](std::uint64_t, const Result<Outputs>& outputs) {
                ++called;
                wrong += !outputs || floats_of(outputs->front()) != y;
              });
          wrong += !id;
        } else {
          const auto outputs = session.run(feed);
          wrong += !outputs || floats_of(outputs->front()) != y;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(session.close().ok());
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(called, 8 * 50);
}

TEST(SmokeSession, ABatchIsThatOfSingleRuns) {
  const std::string model = testing::relu_model({std::int64_t{1}, std::int64_t{3}});
  Session session = session_of(model, options_on(testing::own_device()));
  const std::vector<float> x = {1, -2, 3, -4, 5, -6, 7, -8, 9, 10, 11, -12, 13, 14, -15};
  const auto outputs = session.run_batch({{"x", in_view(x, Shape{5, 3}), nullptr}});
  ASSERT_TRUE(outputs) << outputs.error().to_string();
  std::vector<float> y;
  for (const float v : x) y.push_back(std::max(v, 0.0F));
  EXPECT_EQ(floats_of(outputs->front()), y);
  EXPECT_EQ(outputs->front().shape, (Shape{5, 3}));
}

TEST(SmokeSession, OpenShapesAndIndependentContexts) {
  SessionOptions options = options_on(testing::own_device());
  options.disable_dup_context = true;
  Session session = session_of(testing::relu_model({std::string("N"), std::int64_t{2}}), options);
  EXPECT_EQ(session.statistics().duplicated, 0U);
  for (const std::int64_t n : {1, 4, 2, 4, 1, 3}) {
    std::vector<float> x(static_cast<std::size_t>(n) * 2);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    const Feed feed = {{"x", in_view(x, Shape{n, 2}), nullptr}};
    EXPECT_EQ(floats_of(session.run(feed)->front()), x);
    EXPECT_EQ(floats_of(session.submit(feed)->get()->front()), x);
  }
}

TEST(SmokeSession, FaultsOfTheDeviceFailTheirTaskOnly) {
  const auto faults =
      device::planned_faults(device::parse_faults("crash=0.1,slow=0.05,slow_ms=1,seed=3").value());
  Session session = session_of(affine_model(4, 2), options_on(testing::own_device(faults)));
  const std::vector<float> x = {1, 2, 3, 4};
  const Feed feed = {{"x", in_view(x, Shape{4}), nullptr}};
  std::atomic<int> resolved{0};
  std::atomic<int> failed{0};
  std::atomic<int> wrong{0};
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(session.run_async(feed, [&](std::uint64_t, const Result<Outputs>& outputs) {
      ++resolved;
      failed += !outputs;
      wrong += outputs && floats_of(outputs->front()) != std::vector<float>{3, 5, 7, 9};
    }));
  }
  ASSERT_TRUE(session.close().ok());
  EXPECT_EQ(resolved, 300);
  EXPECT_GT(failed, 0);
  EXPECT_EQ(wrong, 0);
}

TEST(SmokeSession, AHungTaskEndsAtItsTimeoutAndTheSessionGoesOn) {
  const auto faults = device::planned_faults(device::parse_faults("hang=0.5,seed=5").value());
  Session session = session_of(affine_model(4, 2), options_on(testing::own_device(faults)));
  const std::vector<float> x = {1, 2, 3, 4};
  const Feed feed = {{"x", in_view(x, Shape{4}), nullptr}};
  CallOptions call;
  call.timeout = std::chrono::milliseconds(200);
  int good = 0;
  int late = 0;
  for (int i = 0; i < 12; ++i) {
    const auto outputs = session.run(feed, call);
    if (outputs) {
      ++good;
      EXPECT_EQ(floats_of(outputs->front()), (std::vector<float>{3, 5, 7, 9}));
    } else {
      late += outputs.error().code() == Code::kTimeout;
    }
  }
  EXPECT_GT(good, 0);
  EXPECT_GT(late, 0);
  EXPECT_EQ(good + late, 12);
}

}  // namespace
}  // namespace corelane
