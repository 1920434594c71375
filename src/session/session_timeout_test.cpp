// SessionOptions::run_timeout: a run that hangs ends, and the session goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "corelane/base/log.h"
#include "device/registry/testing/listed_faults.h"
#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::feed_of;
using ::testing::HasSubstr;
using testing::milliseconds;
using testing::SessionBench;

/// A session on a device of which the first run hangs.
struct HungBench : SessionBench {
  explicit HungBench(std::shared_ptr<device::ListedFaults> first_hangs =
                         std::make_shared<device::ListedFaults>(std::vector{device::Fault::kHang}))
      : SessionBench("null:rk3588?a=1ms", true, first_hangs), faults(std::move(first_hangs)) {}
  Session limited(Duration timeout) const {
    SessionOptions given = options();
    given.schedule = {1};
    given.run_timeout = timeout;
    return session(given);
  }
  const std::shared_ptr<device::ListedFaults> faults;
};

TEST(SessionRunTimeout, EndsAHungRunSaysWhatHungAndTheSessionGoesOn) {
  HungBench bench;
  Session session = bench.limited(milliseconds(20));
  Future hung = session.submit(feed_of(bench.x)).value();
  bench.clock->advance(milliseconds(19));
  EXPECT_FALSE(hung.done());
  bench.clock->advance(milliseconds(1));
  const Status status = hung.get().error();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_THAT(status.to_string(),
              AllOf(HasSubstr("20 ms"), HasSubstr("run_timeout"), HasSubstr("core set '1'"),
                    HasSubstr("reset"), HasSubstr("'" + session.description().name + "'")));
  Future fine = session.submit(feed_of(bench.x)).value();
  bench.clock->advance(milliseconds(1));
  EXPECT_THAT(testing::floats_of(fine.get()->front()), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(session.device()->counters().resets, 1U);
}

TEST(SessionRunTimeout, EndsABlockingCallAndLeavesItsMemoryAlone) {
  HungBench bench;
  Session session = bench.limited(milliseconds(20));
  Status status;
  {
    const std::vector<float> gone = {4, 3, 2, 1};
    auto call = std::async(std::launch::async, [&] { return session.run(feed_of(gone)); });
    bench.faults->await(1);
    bench.clock->advance(milliseconds(20));
    status = call.get().error();
  }
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_THAT(status.to_string(), HasSubstr("run_timeout"));
  Future fine = session.submit(feed_of(bench.x)).value();
  bench.clock->advance(milliseconds(1));
  EXPECT_TRUE(fine.get());
}

/// How many of the `calls`, on one context whose jobs end when their engine does, have failed when
/// the limits of all are over.
std::size_t ended_in_time(std::size_t calls, const CallOptions& options) {
  SessionBench bench("null:rk3588?a=1s");
  SessionOptions limited = bench.options();
  limited.schedule = {0};
  limited.run_timeout = milliseconds(20);
  Session session = bench.session(limited);
  std::vector<std::future<Status>> ended(calls);
  for (std::future<Status>& call : ended) {
    call = std::async(std::launch::async, [&] {
      const Result<Outputs> outputs = session.run(feed_of(bench.x), options);
      return outputs ? Status() : outputs.error();
    });
  }
  // The engine does not listen to a reset: each call is handed over when the one before has failed.
  std::size_t in_time = 0;
  for (std::size_t n = 1; n <= calls; ++n) {
    while (bench.device->counters().submitted < n) std::this_thread::yield();
    bench.clock->advance(milliseconds(20));
  }
  for (std::future<Status>& call : ended)
    if (call.wait_for(std::chrono::seconds(5)) == std::future_status::ready) ++in_time;
  while (bench.clock->next_timer() != kNever) bench.clock->advance_to(bench.clock->next_timer());
  for (std::future<Status>& call : ended) EXPECT_EQ(call.get().code(), Code::kTimeout);
  return in_time;
}

TEST(SessionRunTimeout, EndsACallThatMayBeInterruptedWithoutAWaitForTheEngine) {
  CallOptions options;
  options.interrupted = [] { return false; };
  EXPECT_EQ(ended_in_time(1, options), 1U);
}

TEST(SessionRunTimeout, EndsCallsThatWaitForAContextWithoutAWaitForTheEngine) {
  EXPECT_EQ(ended_in_time(3, {}), 3U);
}

TEST(SessionRunTimeout, TheTimeInTheSessionsOwnQueueDoesNotCount) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  options.run_timeout = milliseconds(12);
  Session session = bench.session(options);
  std::vector<Future> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(session.submit(feed_of(bench.x)).value());
  bench.clock->advance(milliseconds(40));
  for (const Future& call : calls) EXPECT_TRUE(call.get());
}

TEST(SessionRunTimeout, TheEarlierEndOfCallAndRunCounts) {
  for (const int call_ms : {5, 50}) {
    HungBench bench;
    Session session = bench.limited(milliseconds(20));
    CallOptions call;
    call.timeout = milliseconds(call_ms);
    Future hung = session.submit(feed_of(bench.x), call).value();
    bench.clock->advance(milliseconds(std::min(call_ms, 20)));
    ASSERT_TRUE(hung.done());
    const Status status = hung.get().error();
    EXPECT_EQ(status.code(), Code::kTimeout);
    EXPECT_EQ(status.to_string().find("run_timeout") != std::string::npos, call_ms == 50);
  }
}

TEST(SessionRunTimeout, WithoutItTheLineAboutALongRunNamesIt) {
  std::string lines;
  log::set_callback([&](log::Level, std::string_view, std::string_view text) { lines += text; });
  HungBench bench;
  Session session = bench.limited({});
  Future hung = session.submit(feed_of(bench.x)).value();
  bench.clock->advance(std::chrono::seconds(30));
  log::set_callback({});
  EXPECT_THAT(lines, AllOf(HasSubstr("set run_timeout"),
                           HasSubstr("'" + session.description().name + "'")));
  ASSERT_TRUE(session.device()->reset(device::CoreSet::platform()).ok());
  EXPECT_FALSE(hung.get());
}

}  // namespace
}  // namespace corelane
