// The end of several sessions: one time limit for all, and none waits for another's callbacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using testing::feed_of;
using testing::milliseconds;
using testing::SessionBench;

/// What takes longer than this hangs; it takes milliseconds.
constexpr std::chrono::seconds kPatience{20};

template <class T>
bool comes(std::future<T>& value) {
  return value.wait_for(kPatience) == std::future_status::ready;
}

TEST(SessionClose, CloseAllHasOneTimeLimitForAllSessions) {
  SessionBench bench("null:rk3588?a=1s");
  std::array<Session, 3> sessions;
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    SessionOptions options = bench.options();
    options.schedule = {i};
    sessions[i] = bench.session(options);
    ASSERT_TRUE(sessions[i].submit(feed_of(bench.x)));
  }
  auto closed =
      std::async(std::launch::async, [] { return Session::close_all(milliseconds(500)); });
  while (!sessions[0].closed()) std::this_thread::yield();
  bench.clock->advance_to(TimePoint{} + milliseconds(500));
  EXPECT_TRUE(comes(closed)) << "another session waits for a time limit of its own";
  for (const Session& session : sessions) EXPECT_TRUE(session.closed());
  bench.clock->run_all();
  EXPECT_EQ(closed.get().code(), Code::kTimeout);
  for (Session& session : sessions) EXPECT_TRUE(session.close().ok());
}

TEST(SessionCallback, SessionsMayCloseEachOther) {
  struct Pair {
    SessionBench bench{"null:rk3588", false};
    Session one = bench.session(bench.options());
    Session two = bench.session(bench.options());
    std::promise<Status> one_closed;
    std::promise<Status> two_closed;
    std::atomic<int> inside{0};

    void meet(int count) {
      ++inside;
      while (inside < count) std::this_thread::yield();
    }
    void close(Session& other, std::promise<Status>& closed) {
      meet(2);
      EXPECT_FALSE(other.wait_callbacks());
      meet(4);
      closed.set_value(other.close());
    }
  };
  auto pair = std::make_unique<Pair>();
  Pair& p = *pair;
  auto one_closed = p.one_closed.get_future();
  auto two_closed = p.two_closed.get_future();
  ASSERT_TRUE(p.one.run_async(feed_of(p.bench.x), [&p](std::uint64_t, const Result<Outputs>&) {
    p.close(p.two, p.two_closed);
  }));
  ASSERT_TRUE(p.two.run_async(feed_of(p.bench.x), [&p](std::uint64_t, const Result<Outputs>&) {
    p.close(p.one, p.one_closed);
  }));
  if (!comes(one_closed) || !comes(two_closed)) {
    static_cast<void>(pair.release());  // Its threads hang in it.
    FAIL() << "each waits for the other's callback";
  }
  EXPECT_TRUE(one_closed.get().ok());
  EXPECT_TRUE(two_closed.get().ok());
  EXPECT_TRUE(p.one.close().ok());
  EXPECT_TRUE(p.two.close().ok());
}

TEST(SessionCallback, TheLastHandleOfAnotherSessionMayGoWhileItsTasksRun) {
  SessionBench bench("null:rk3588");
  SessionBench slow("null:rk3588?a=100ms");
  Session session = bench.session(bench.options());
  auto other = std::make_shared<Session>(slow.session(slow.options()));
  std::promise<void> dropped;
  std::promise<bool> finished;
  auto was_dropped = dropped.get_future();
  auto was_finished = finished.get_future();
  ASSERT_TRUE(other->run_async(feed_of(slow.x), [&](std::uint64_t, const Result<Outputs>& outputs) {
    finished.set_value(outputs.has_value());
  }));
  const Future future = other->submit(feed_of(slow.x)).value();
  ASSERT_TRUE(session.run_async(
      feed_of(bench.x),
      [&dropped, last = std::move(other)](std::uint64_t, const Result<Outputs>&) mutable {
        last.reset();
        dropped.set_value();
      }));
  EXPECT_TRUE(comes(was_dropped)) << "it waits for the other session's tasks";
  slow.clock->run_all();
  EXPECT_TRUE(was_finished.get());
  EXPECT_TRUE(future.get());
}

TEST(SessionCallback, AnIdleSessionThatAnotherClosesIsFreedAtOnce) {
  SessionBench bench("null:rk3588", false);
  SessionBench idle("null:rk3588", false);
  Session session = bench.session(bench.options());
  Session other = idle.session(idle.options());
  ASSERT_TRUE(other.run(feed_of(idle.x)));
  // Programs and contexts hold the device.
  const long holders = idle.device.use_count();
  std::promise<long> left;
  ASSERT_TRUE(session.run_async(feed_of(bench.x), [&](std::uint64_t, const Result<Outputs>&) {
    EXPECT_TRUE(other.close().ok());
    left.set_value(idle.device.use_count());
  }));
  EXPECT_LT(left.get_future().get(), holders);
}

}  // namespace
}  // namespace corelane
