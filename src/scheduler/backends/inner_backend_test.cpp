#include "scheduler/backends/inner_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "scheduler/backends/testing/backend_bench.h"

namespace corelane::scheduler {
namespace {

using ::testing::AllOf;
using testing::BackendBench;
using testing::Batch;
using ::testing::HasSubstr;
using testing::requests_of;
using testing::Script;

TEST(InnerBackend, CallOutsideTheRangeIsRefusedWithBothNumbers) {
  BackendBench bench;
  bench.add("a", {.range = {2, 3}});
  const auto a = bench.open("a").value();
  const Status few = a->forward(requests_of({"x"}));
  EXPECT_EQ(few.code(), Code::kOutOfRange);
  EXPECT_THAT(few.to_string(), AllOf(HasSubstr("2 to 3"), HasSubstr("given 1")));
  EXPECT_EQ(few.detail(Detail::kAllowed), "2 to 3");
  EXPECT_EQ(a->forward(requests_of({"x", "x", "x", "x"})).code(), Code::kOutOfRange);
  EXPECT_EQ(a->forward({}).code(), Code::kOutOfRange);
  const std::vector<RequestPtr> large = {testing::request_of("x", 4)};
  EXPECT_EQ(a->forward(large).code(), Code::kOutOfRange);
  EXPECT_TRUE(bench.calls.empty());
  EXPECT_TRUE(a->forward(requests_of({"x", "y"})).ok());
}

TEST(InnerBackend, SumOfItemsDoesNotOverflow) {
  const std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  const std::vector<RequestPtr> batch = {testing::request_of("x", most),
                                         testing::request_of("y", 2)};
  EXPECT_EQ(items_of(batch), std::uint64_t{most} + 2);
  EXPECT_EQ(check_range("a", {1, most}, items_of(batch)).code(), Code::kOutOfRange);
  EXPECT_TRUE(check_range("a", {1, most}, most).ok());
}

TEST(InnerBackend, ThrowingBackendFailsWithItsName) {
  BackendBench bench;
  bench.add("InitThrows",
            {.init = [](const Config&) -> Status { throw std::runtime_error("no file"); }});
  bench.add("InitFails",
            {.init = [](const Config&) -> Status { return error(Code::kNotFound, "no file"); }});
  bench.add("Throws", {.forward = [](Batch) -> Status { throw 7; }});
  bench.add("Fails", {.forward = [](Batch) -> Status { return error(Code::kIo, "lost"); }});
  EXPECT_EQ(bench.refusal_code("InitThrows"), Code::kEngineFailed);
  EXPECT_THAT(bench.refusal("InitThrows"), HasSubstr("'InitThrows' threw: no file"));
  EXPECT_EQ(bench.refusal_code("InitFails"), Code::kNotFound);
  EXPECT_THAT(bench.refusal("InitFails"), AllOf(HasSubstr("'InitFails'"), HasSubstr("no file")));

  const Status thrown = bench.open("Throws").value()->forward(requests_of({"x"}));
  EXPECT_EQ(thrown.code(), Code::kEngineFailed);
  EXPECT_THAT(thrown.to_string(), HasSubstr("'Throws' threw something"));
  const Status failed = bench.open("Fails").value()->forward(requests_of({"x"}));
  EXPECT_EQ(failed.code(), Code::kIo);
  EXPECT_THAT(failed.to_string(), AllOf(HasSubstr("backend 'Fails' failed"), HasSubstr("lost")));
}

TEST(InnerBackend, RangeThatBreaksThePromiseIsRefused) {
  BackendBench bench;
  bench.add("Reversed", {.range = {3, 2}});
  bench.add("NoMax", {.range = {1, 0}});
  bench.add("NoMin", {.range = {0, 4}});
  for (const char* name : {"Reversed", "NoMax", "NoMin"}) {
    EXPECT_EQ(bench.refusal_code(name), Code::kEngineFailed) << name;
    EXPECT_THAT(bench.refusal(name), HasSubstr(name));
  }
}

class Growing final : public Backend {
 public:
  Status forward(Batch) override { return {}; }
  std::uint32_t max() const noexcept override { return ++max_; }

 private:
  mutable std::uint32_t max_ = 0;
};

TEST(InnerBackend, RangeIsReadOnce) {
  BackendBench bench;
  ASSERT_TRUE(
      bench.registry
          .add("Growing", [](const BackendSurroundings&) { return std::make_unique<Growing>(); })
          .ok());
  const auto inner = bench.open("Growing").value();
  EXPECT_EQ(inner->range(), (Range{1, 1}));
  EXPECT_EQ(inner->forward(requests_of({"x", "y"})).code(), Code::kOutOfRange);
  EXPECT_EQ(inner->range(), (Range{1, 1}));
}

TEST(InnerBackend, CallBeforeInitIsRefused) {
  BackendBench bench;
  bench.add("a", {});
  auto a = InnerBackend::make(parse_backend("a").value(), {}, {bench.clock, &bench.registry});
  EXPECT_EQ(a->forward(requests_of({"x"})).code(), Code::kWrongState);
  for (const char* name : {"S", "Range", "Faulty", "SyncTensor"}) {
    const auto made = bench.registry.make(name, {bench.clock, &bench.registry}).value();
    EXPECT_EQ(made->forward(requests_of({"x"})).code(), Code::kWrongState) << name;
    EXPECT_EQ(made->min(), 1u);
    EXPECT_EQ(made->max(), 1u);
    EXPECT_FALSE(made->repeatable());
  }
}

TEST(InnerBackend, SettingsReachTheOneThatTheyAreFor) {
  BackendBench bench;
  Config seen;
  bench.add("a", {.init = [&](const Config& config) {
              seen = config;
              return Status();
            }});
  ASSERT_EQ(bench.refusal("SyncTensor[a(k=own)]",
                          {{"k", "node"}, {"a::l", "named"}, {"m", "node"}, {"b::m", "other"}}),
            "ok");
  EXPECT_EQ(seen["k"], "own");    // Of its parentheses.
  EXPECT_EQ(seen["l"], "named");  // Of `a::l`.
  EXPECT_EQ(seen["m"], "node");
}

TEST(InnerBackend, ChainsOfKeysAndOfBracketsMeanTheSame) {
  BackendBench bench;
  bench.add("a", {.range = {1, 5}});
  EXPECT_EQ(bench.open("SyncTensor[Range(range=\"7,9\")[a]]").value()->range(), (Range{7, 9}));
  EXPECT_EQ(bench
                .open("SyncTensor",
                      {{"SyncTensor::backend", "Range"}, {"Range::backend", "a"}, {"range", "7,9"}})
                .value()
                ->range(),
            (Range{7, 9}));
}

TEST(InnerBackend, WrapperNeedsOneBackend) {
  BackendBench bench;
  bench.add("a", {});
  for (const char* name : {"Faulty", "Range(range=\"1,1\")"}) {
    EXPECT_EQ(bench.refusal_code(name), Code::kInvalidArgument) << name;
    EXPECT_THAT(bench.refusal(name), HasSubstr("[X]"));
  }
  EXPECT_EQ(bench.refusal_code("Faulty[a,a]"), Code::kInvalidArgument);
  EXPECT_EQ(bench.refusal_code("SyncTensor[a,a]"), Code::kInvalidArgument);
  EXPECT_EQ(bench.refusal_code("Faulty[(swap)a]"), Code::kInvalidArgument);
  EXPECT_EQ(bench.refusal_code("Faulty[nobody]"), Code::kNotFound);
  EXPECT_EQ(bench.refusal_code("Faulty", {{"Faulty::backend", "a["}}), Code::kInvalidArgument);
  EXPECT_EQ(bench.refusal_code("Faulty", {{"Faulty::backend", ""}}), Code::kInvalidArgument);
}

TEST(InnerBackend, NameInsideOfItselfEnds) {
  BackendBench bench;
  EXPECT_NE(bench.refusal_code("Faulty", {{"Faulty::backend", "Faulty"}}), Code::kOk);
  EXPECT_NE(bench.refusal_code(
                "Faulty", {{"Faulty::backend", "SyncTensor"}, {"SyncTensor::backend", "Faulty"}}),
            Code::kOk);
  EXPECT_NE(bench.refusal_code("S[S,Identity]", {{"S::backend", "S,Identity"}}), Code::kOk);
}

}  // namespace
}  // namespace corelane::scheduler
