// What a forked child of a process with sessions sees of them: every call is refused, and none
// waits.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using testing::feed_of;
using testing::floats_of;
using testing::relu_model;
using testing::SessionBench;

/// A child that takes longer than this hangs; they take milliseconds.
constexpr unsigned kPatienceSeconds = 20;

/// Forks; in the child `checks` says which of them fail. 0: none; -1: it hung or crashed.
int failures_in_child(const std::function<int()>& checks) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatienceSeconds);
    _exit(checks());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The number of the first check that does not hold, from 1; 0 when all hold.
int first_wrong(std::initializer_list<std::function<bool()>> checks) {
  int number = 0;
  for (const auto& check : checks) {
    ++number;
    if (!check()) return number;
  }
  return 0;
}

template <class T>
bool refused(const Result<T>& result) {
  return !result && result.error().code() == Code::kWrongState &&
         result.error().message().find("spawn") != std::string::npos;
}

/// A virtual clock whose now() can be made to wait.
class GateClock final : public Clock {
 public:
  TimePoint now() const noexcept override {
    if (std::this_thread::get_id() == held.load()) {
      inside = true;
      while (held.load() != std::thread::id()) std::this_thread::yield();
    }
    return clock.now();
  }
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  TimePoint until) override {
    return clock.wait_until(lock, cv, until);
  }
  TimerId call_at(TimePoint when, std::function<void()> f) override {
    return clock.call_at(when, std::move(f));
  }
  bool cancel(TimerId id) override { return clock.cancel(id); }
  bool is_virtual() const noexcept override { return true; }

  VirtualClock clock;
  std::atomic<std::thread::id> held{};  ///< Waits in now().
  mutable std::atomic<bool> inside{false};
};

TEST(SessionFork, WhatIsNotResolvedFailsInTheChildAtOnce) {
  SessionBench bench("null:rk3588?a=100ms");
  Session session = bench.session(bench.options());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(session.run_pipeline(feed_of(bench.x)));
  Future future = session.submit(feed_of(bench.x)).value();
  int called = 0;
  EXPECT_EQ(failures_in_child([&] {
              return first_wrong({
                  [&] { return session.flush().size() == 1 && refused(session.flush().front()); },
                  [&] { return session.drain().code() == Code::kWrongState; },
                  [&] { return future.wait() && future.done(); },
                  [&] { return refused(future.get()); },
                  [&] { return !future.cancel(); },
                  [&] {
                    future.then([&](const Result<Outputs>& result) { called += refused(result); });
                    return called == 1;
                  },
                  [&] { return !session.wait_callbacks(); },
                  [&] { return Session::close_all().ok(); },
              });
            }),
            0);
  bench.run_out(session);
  EXPECT_EQ(floats_of(future.get()->front()), bench.x);
  EXPECT_EQ(session.flush().size(), 2U);
}

TEST(SessionFork, WhatIsResolvedIsTheChildsToo) {
  SessionBench bench("null:rk3588");
  Session session = bench.session(bench.options());
  const Future future = session.submit(feed_of(bench.x)).value();
  ASSERT_TRUE(future.get());
  EXPECT_EQ(
      failures_in_child([&] {
        std::vector<float> given;
        future.then([&](const Result<Outputs>& result) { given = floats_of(result->front()); });
        return first_wrong({
            [&] { return floats_of(future.get()->front()) == bench.x; },
            [&] { return given == bench.x; },
        });
      }),
      0);
}

TEST(SessionFork, ACallbackThatRunsMeanwhileIsNotWaitedFor) {
  SessionBench bench("null:rk3588", false);
  Session session = bench.session(bench.options());
  std::promise<void> entered;
  std::promise<void> leave;
  ASSERT_TRUE(session.run_async(feed_of(bench.x), [&](std::uint64_t, const Result<Outputs>&) {
    entered.set_value();
    leave.get_future().get();
  }));
  entered.get_future().get();
  EXPECT_EQ(failures_in_child([&] { return session.wait_callbacks() ? 1 : 0; }), 0);
  leave.set_value();
  EXPECT_TRUE(session.wait_callbacks());
}

TEST(SessionFork, TheSessionsLockMayBeHeldMeanwhile) {
  const auto clock = std::make_shared<GateClock>();
  SessionOptions options;
  options.load.on = testing::open("null:rk3588", clock);
  options.load.cache = false;
  const std::string onnx = relu_model({std::int64_t{1}, std::int64_t{4}});
  Session session = testing::make_session(onnx, options);
  const std::vector<float> x = {1, 2, 3, 4};
  ASSERT_TRUE(session.run(feed_of(x)));
  CallOptions call;
  CallControl& control = call.control.emplace();
  std::thread submits([&] {
    clock->held = std::this_thread::get_id();
    EXPECT_TRUE(session.submit(feed_of(x), call));
  });
  while (!clock->inside) std::this_thread::yield();
  EXPECT_EQ(failures_in_child([&] {
              clock->held = std::thread::id();
              return first_wrong({
                  [&] { return session.closed(); },
                  [&] { return session.statistics().contexts == 1; },
                  [&] { return session.statistics().tasks_by_context.size() == 1; },
                  [&] { return session.statistics().accepted == 0; },
                  [&] { return session.memory().total() == 0; },
                  [&] { return session.close().code() == Code::kWrongState; },
                  [&] { return session.set_trace(1).code() == Code::kWrongState; },
                  [&] { return refused(session.read_trace()); },
                  [&] {
                    control.terminate();
                    return control.terminated();
                  },
                  [&] {
                    SessionOptions own;
                    own.load.device = "null:rk3588";
                    own.load.cache = false;
                    return Session::create(as_byte_span(onnx), own, &session).error().code() ==
                           Code::kWrongState;
                  },
                  [&] {
                    session = Session();
                    return Session::close_all().ok();
                  },
              });
            }),
            0);
  clock->held = std::thread::id();
  submits.join();
  EXPECT_FALSE(session.closed());
  EXPECT_EQ(session.statistics().accepted, 2U);
}

}  // namespace
}  // namespace corelane
