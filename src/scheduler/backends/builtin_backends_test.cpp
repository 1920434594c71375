// Identity, Sleep, Faulty and SyncTensor.
#include "scheduler/backends/builtin_backends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "scheduler/backends/testing/backend_bench.h"

namespace corelane::scheduler {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::BackendBench;
using testing::Batch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kMost;
using testing::requests_of;
using testing::results_of;

TEST(Identity, ResultIsTheData) {
  BackendBench bench;
  const auto identity = bench.open("Identity").value();
  EXPECT_EQ(identity->range(), (Range{1, kMost}));
  EXPECT_TRUE(identity->repeatable());
  const auto batch = requests_of({"x", "y"});
  ASSERT_TRUE(identity->forward(batch).ok());
  EXPECT_THAT(results_of(batch), ElementsAre("x", "y"));
  EXPECT_EQ(testing::text_at(*batch[0], kData), "x");
}

TEST(Identity, RequestWithoutDataFailsAlone) {
  BackendBench bench;
  auto batch = requests_of({"x", "y"});
  batch[0]->values.clear();
  ASSERT_TRUE(bench.open("Identity").value()->forward(batch).ok());
  EXPECT_EQ(batch[0]->failure().code(), Code::kOutOfRange);
  EXPECT_EQ(results_of(batch)[1], "y");
}

TEST(Identity, RangeIsSetByKeys) {
  BackendBench bench;
  EXPECT_EQ(bench.open("Identity", {{"min", "2"}, {"max", "4"}}).value()->range(), (Range{2, 4}));
  EXPECT_EQ(bench.open("Identity", {{"max", "4294967295"}}).value()->range(), (Range{1, kMost}));
}

TEST(BackendKeys, WrongSettingsAreRefusedWithTheirKey) {
  const std::vector<std::pair<std::string, Config>> wrong = {
      {"min", {{"min", "0"}}},
      {"min", {{"min", "-1"}}},
      {"min", {{"min", "x"}}},
      {"min", {{"min", ""}}},
      {"max", {{"max", "4294967296"}}},
      {"max", {{"max", "2.5"}}},
      {"min", {{"min", "5"}, {"max", "4"}}},
      {"a", {{"a", "-1"}}},
      {"a", {{"a", "nan"}}},
      {"a", {{"a", "inf"}}},
      {"b", {{"b", "1ms"}}},
      {"b", {{"b", "86400001"}}},
  };
  BackendBench bench;
  for (const auto& [key, config] : wrong) {
    EXPECT_EQ(bench.refusal_code("Sleep", config), Code::kInvalidArgument);
    EXPECT_THAT(bench.refusal("Sleep", config), HasSubstr("key '" + key + "'"));
    EXPECT_EQ(bench.open("Sleep", config).error().detail(Detail::kKey), key);
  }
}

/// Each wait ends at its time at once.
class LeapingClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return now_; }
  bool wait_until(std::unique_lock<std::mutex>&, std::condition_variable&,
                  TimePoint until) override {
    // The first wait of each call ends early, as a wait may.
    now_ = early_ ? now_ + (until - now_) / 2 : until;
    early_ = !early_;
    return now_ < until;
  }
  TimerId call_at(TimePoint, std::function<void()>) override { return 0; }
  bool cancel(TimerId) override { return false; }

 private:
  TimePoint now_{};
  bool early_ = true;
};

TEST(Sleep, CallOfNItemsTakesAPlusBNMilliseconds) {
  BackendBench bench;
  bench.clock = std::make_shared<LeapingClock>();
  const auto sleep = bench.open("Sleep", {{"a", "4"}, {"b", "0.25"}, {"max", "8"}}).value();
  EXPECT_EQ(sleep->range(), (Range{1, 8}));
  EXPECT_TRUE(sleep->repeatable());
  const auto batch = requests_of({"x", "y", "z"});
  ASSERT_TRUE(sleep->forward(batch).ok());
  EXPECT_EQ(bench.clock->now(), TimePoint(microseconds(4750)));
  EXPECT_THAT(results_of(batch), ElementsAre("x", "y", "z"));
  ASSERT_TRUE(sleep->forward(std::vector<RequestPtr>{testing::request_of("x", 8)}).ok());
  EXPECT_EQ(bench.clock->now(), TimePoint(microseconds(4750 + 6000)));
}

TEST(Sleep, WithoutKeysItDoesNotWait) {
  BackendBench bench;
  bench.clock = std::make_shared<VirtualClock>();
  EXPECT_TRUE(bench.open("Sleep").value()->forward(requests_of({"x"})).ok());
}

TEST(Sleep, LongestTimeIsATimePoint) {
  BackendBench bench;
  bench.clock = std::make_shared<LeapingClock>();
  const auto sleep = bench.open("Sleep", {{"a", "86400000"}, {"b", "86400000"}}).value();
  ASSERT_TRUE(sleep->forward(std::vector<RequestPtr>{testing::request_of("x", kMost)}).ok());
  EXPECT_GT(bench.clock->now(), TimePoint(std::chrono::hours(1000)));
}

TEST(Sleep, WaitsOnTheVirtualClock) {
  BackendBench bench;
  const auto clock = std::make_shared<VirtualClock>();
  bench.clock = clock;
  const auto sleep = bench.open("Sleep", {{"a", "5"}}).value();
  auto done = std::async(std::launch::async, [&] { return sleep->forward(requests_of({"x"})); });
  while (done.wait_for(Duration(0)) != std::future_status::ready) clock->advance(milliseconds(1));
  EXPECT_TRUE(done.get().ok());
  EXPECT_GE(clock->now(), TimePoint(milliseconds(5)));
}

TEST(SyncTensor, PassesOnAndReportsTheRangeInside) {
  BackendBench bench;
  bench.add("a", {.range = {2, 4}, .repeatable = true});
  const auto sync = bench.open("SyncTensor[a]").value();
  EXPECT_EQ(sync->range(), (Range{2, 4}));
  EXPECT_TRUE(sync->repeatable());
  const auto batch = requests_of({"x", "y"});
  ASSERT_TRUE(sync->forward(batch).ok());
  EXPECT_THAT(results_of(batch), ElementsAre("xa", "ya"));
  EXPECT_EQ(bench.open("SyncTensor").value()->range(), (Range{1, kMost}));
}

/// What `count` calls of one request each came to: '.' ok, 'f' failed, 'o' left out.
std::string pattern(InnerBackend& backend, int count) {
  std::string seen;
  for (int i = 0; i < count; ++i) {
    const auto batch = requests_of({"x"});
    const Status done = backend.forward(batch);
    seen += !done.ok() ? 'f' : results_of(batch)[0] == "-" ? 'o' : '.';
  }
  return seen;
}

TEST(Faulty, FailsThrowsAndLeavesOutEveryNth) {
  BackendBench bench;
  EXPECT_EQ(pattern(*bench.open("Faulty[Identity]").value(), 4), "....");
  EXPECT_EQ(pattern(*bench.open("Faulty(fail_every=3)[Identity]").value(), 6), "..f..f");
  EXPECT_EQ(pattern(*bench.open("Faulty(throw_every=2)[Identity]").value(), 4), ".f.f");
  EXPECT_EQ(pattern(*bench.open("Faulty(leave_out_every=2)[Identity]").value(), 4), ".o.o");
  const auto thrower = bench.open("Faulty(throw_every=1)[Identity]").value();
  const Status thrown = thrower->forward(requests_of({"x"}));
  EXPECT_EQ(thrown.code(), Code::kEngineFailed);
  EXPECT_THAT(thrown.to_string(), HasSubstr("'Faulty' threw"));
}

TEST(Faulty, ChanceFollowsTheSeedAndTheInstance) {
  BackendBench bench;
  const auto of = [&](const char* seed, const char* index) {
    const Config config = {{"fail_rate", "0.5"}, {"seed", seed}, {kThreadIndex, index}};
    return pattern(*bench.open("Faulty[Identity]", config).value(), 64);
  };
  EXPECT_EQ(of("1", "0"), of("1", "0"));
  EXPECT_NE(of("1", "0"), of("2", "0"));
  EXPECT_NE(of("1", "0"), of("1", "1"));
  EXPECT_EQ(pattern(*bench.open("Faulty(fail_rate=1)[Identity]").value(), 3), "fff");
}

TEST(Faulty, BadItemFailsItsCallItselfOrThrows) {
  BackendBench bench;
  const auto batch = requests_of({"x", "bad"});
  EXPECT_EQ(bench.open("Faulty(bad_item=bad)[Identity]").value()->forward(batch).code(),
            Code::kEngineFailed);
  EXPECT_EQ(
      bench.open("Faulty(bad_item=bad,bad_how=throw)[Identity]").value()->forward(batch).code(),
      Code::kEngineFailed);
  const auto item = bench.open("Faulty(bad_item=bad,bad_how=item)[Identity]").value();
  ASSERT_TRUE(item->forward(batch).ok());
  EXPECT_TRUE(batch[0]->failure().ok());
  EXPECT_EQ(batch[1]->failure().code(), Code::kEngineFailed);
  const auto numbers = bench.open("Faulty(bad_item=7)[Identity]").value();
  const std::vector<RequestPtr> seven = {
      std::make_shared<Request>(Dict{{kData, 7}}, RequestOptions())};
  EXPECT_FALSE(numbers->forward(seven).ok());
  const std::vector<RequestPtr> other = {
      std::make_shared<Request>(Dict{{kData, std::vector<int>{7}}}, RequestOptions())};
  EXPECT_TRUE(numbers->forward(other).ok());
}

TEST(Faulty, IsRepeatableAsTheBackendInsideOrAsItIsSet) {
  BackendBench bench;
  bench.add("once", {.range = {1, 4}});
  EXPECT_TRUE(bench.open("Faulty[Identity]").value()->repeatable());
  EXPECT_FALSE(bench.open("Faulty[once]").value()->repeatable());
  EXPECT_EQ(bench.open("Faulty[once]").value()->range(), (Range{1, 4}));
  EXPECT_TRUE(bench.open("Faulty(repeatable=true)[once]").value()->repeatable());
  EXPECT_FALSE(bench.open("Faulty(repeatable=0)[Identity]").value()->repeatable());
}

TEST(Faulty, WrongSettingsAreRefused) {
  BackendBench bench;
  EXPECT_EQ(bench.refusal_code("Faulty(fail_init=true)[Identity]"), Code::kEngineFailed);
  for (const char* wrong :
       {"fail_every=-1", "throw_every=x", "leave_out_every=1.5", "fail_rate=1.5", "fail_rate=nan",
        "seed=-1", "bad_how=sometimes", "repeatable=maybe", "fail_init=2"}) {
    const std::string text = fmt::format("Faulty({})[Identity]", wrong);
    EXPECT_EQ(bench.refusal_code(text), Code::kInvalidArgument) << text;
    const std::string key(wrong, std::string_view(wrong).find('='));
    EXPECT_THAT(bench.refusal(text), HasSubstr("'" + key + "'"));
  }
}

}  // namespace
}  // namespace corelane::scheduler
