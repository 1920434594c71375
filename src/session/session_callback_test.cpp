// What a callback may do, and how a session ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "corelane/base/log.h"
#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using testing::CallbackLog;
using ::testing::ElementsAre;
using testing::feed_of;
using testing::floats_of;
using testing::milliseconds;
using testing::SessionBench;

/// Drops log lines while it lives.
struct QuietLog {
  QuietLog() {
    log::set_callback([](log::Level, std::string_view, std::string_view) {});
  }
  ~QuietLog() { log::set_callback({}); }
};

TEST(SessionCallback, MayRunAndSubmitAndCloseItsSession) {
  SessionBench bench("null:rk3588", false);
  Session session = bench.session(bench.options());
  std::promise<std::vector<float>> inner;
  std::promise<Status> closed;
  ASSERT_TRUE(session.run_async(feed_of(bench.x), [&](std::uint64_t, const Result<Outputs>&) {
    // More than may be pending: nothing here waits for a callback.
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(
          session.run_async(feed_of(bench.x), [](std::uint64_t, const Result<Outputs>&) {}));
    }
    inner.set_value(floats_of(session.run(feed_of({5, 6, 7, 8}))->front()));
    EXPECT_FALSE(session.wait_callbacks());
    closed.set_value(session.close());
  }));
  EXPECT_THAT(inner.get_future().get(), ElementsAre(5, 6, 7, 8));
  EXPECT_TRUE(closed.get_future().get().ok());
  EXPECT_TRUE(session.close().ok());
  EXPECT_EQ(session.statistics().callbacks, 21U);
}

TEST(SessionCallback, MayWaitForWhatAContinuationDoes) {
  SessionBench bench("null:rk3588", false);
  Session session = bench.session(bench.options());
  std::promise<bool> came;
  ASSERT_TRUE(session.run_async(feed_of(bench.x), [&](std::uint64_t, const Result<Outputs>&) {
    const auto continued = std::make_shared<std::promise<void>>();
    session.submit(feed_of(bench.x))->then([continued](const Result<Outputs>&) {
      continued->set_value();
    });
    came.set_value(continued->get_future().wait_for(std::chrono::seconds(60)) ==
                   std::future_status::ready);
  }));
  EXPECT_TRUE(came.get_future().get());
  EXPECT_TRUE(session.close().ok());
}

TEST(SessionCallback, OfTwoSessionsMayCallEachOtherAtTheirLimits) {
  SessionBench bench("null:rk3588", false);
  SessionOptions options = bench.options();
  options.max_pending_callbacks = 1;
  Session sessions[] = {bench.session(options), bench.session(options)};
  std::promise<void> entered[2];
  std::promise<Status> answers[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(sessions[i].run_async(
        feed_of(bench.x),
        [&, i, other = entered[1 - i].get_future().share()](std::uint64_t, const Result<Outputs>&) {
          entered[i].set_value();
          other.wait();  // Now both have as many pending callbacks as they may.
          const auto outputs = sessions[1 - i].run(feed_of(bench.x));
          answers[i].set_value(outputs ? Status() : outputs.error());
        }));
  }
  for (auto& answer : answers) EXPECT_TRUE(answer.get_future().get().ok());
  for (Session& session : sessions) EXPECT_TRUE(session.close().ok());
}

TEST(SessionCallback, ThatIsPendingHoldsNoBindingUp) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.max_pending_callbacks = 1;
  Session session = bench.session(options);
  IoBinding binding = session.io_binding().value();
  ASSERT_TRUE(binding.bind_input("x", feed_of(bench.x).front().view).ok());
  std::promise<void> done;  // The callback waits for the binding that is run elsewhere.
  ASSERT_TRUE(session.run_async(
      feed_of(bench.x), [&](std::uint64_t, const Result<Outputs>&) { done.get_future().wait(); }));
  EXPECT_FALSE(session.try_submit(feed_of(bench.x)).value());
  EXPECT_TRUE(session.run(binding).ok());
  EXPECT_THAT(floats_of(binding.outputs().front()), ElementsAre(1, 2, 3, 4));
  done.set_value();
  EXPECT_TRUE(session.close().ok());
}

TEST(SessionCallback, MayDropTheLastHandle) {
  SessionBench bench("null:rk3588", false);
  auto last = std::make_shared<Session>(bench.session(bench.options()));
  std::promise<void> dropped;
  std::promise<void> later;
  Session& session = *last;
  ASSERT_TRUE(
      session.run_async(feed_of(bench.x), [&, last](std::uint64_t, const Result<Outputs>&) mutable {
        // Still to be called back when the session is gone.
        EXPECT_TRUE(
            last->run_async(feed_of(bench.x), [&](std::uint64_t, const Result<Outputs>& outputs) {
              EXPECT_TRUE(outputs);
              later.set_value();
            }));
        last.reset();
        dropped.set_value();
      }));
  last.reset();
  dropped.get_future().get();
  later.get_future().get();
}

TEST(SessionCallback, WhatItThrowsIsLoggedAndTheSessionGoesOn) {
  const QuietLog quiet;
  SessionBench bench("null:rk3588", false);
  Session session = bench.session(bench.options());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(session.run_async(feed_of(bench.x), [](std::uint64_t, const Result<Outputs>&) {
      throw std::runtime_error("from a callback");
    }));
  }
  ASSERT_TRUE(session.close().ok());
  EXPECT_EQ(session.statistics().callbacks, 1000U);
}

TEST(SessionCallback, NeverRunsOnACoresThread) {
  SessionBench bench("null:rk3588?threads=1", false);
  Session session = bench.session(bench.options());
  std::atomic<int> elsewhere{0};
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(session.run_async(feed_of(bench.x), [&](std::uint64_t, const Result<Outputs>&) {
      char name[16] = {};
      pthread_getname_np(pthread_self(), name, sizeof name);
      elsewhere += std::string(name) == "corelane-callbk";
    }));
  }
  ASSERT_TRUE(session.close().ok());
  EXPECT_EQ(elsewhere, 50);
}

TEST(SessionClose, AcceptedTasksAreFinishedAndCalledBack) {
  SessionBench bench("null:rk3588?a=20ms", false);
  std::atomic<int> called{0};
  {
    Session session = bench.session(bench.options());
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(session.run_async(feed_of(bench.x), [&](std::uint64_t, const Result<Outputs>& o) {
        called += o.has_value();
      }));
    }
  }
  EXPECT_EQ(called, 4);
}

TEST(SessionClose, AClosedSessionRefusesCallsAndShowsWhatItWas) {
  SessionBench bench("null:rk3588");
  Session session = bench.session(bench.options());
  ASSERT_TRUE(session.run(feed_of(bench.x)));
  ASSERT_TRUE(session.close().ok());
  ASSERT_TRUE(session.close().ok());
  EXPECT_TRUE(session.closed());
  EXPECT_EQ(session.run(feed_of(bench.x)).error().code(), Code::kWrongState);
  EXPECT_EQ(session.submit(feed_of(bench.x)).error().code(), Code::kWrongState);
  EXPECT_EQ(session.inputs().size(), 1U);
  EXPECT_EQ(session.statistics().completed, 1U);
}

TEST(SessionClose, ATimeLimitCancelsWhatWaits) {
  SessionBench bench("null:rk3588?a=100ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  Session session = bench.session(options);
  CallbackLog log;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  EXPECT_EQ(session.close(Duration{0}).code(), Code::kTimeout);
  bench.run_out(session);
  EXPECT_THAT(log.tasks(), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(log.entries[0].status.ok());
  for (int i = 1; i < 4; ++i) EXPECT_EQ(log.entries[i].status.code(), Code::kCancelled);
  EXPECT_EQ(bench.now_ms(), 100);
  EXPECT_TRUE(session.close().ok());
}

TEST(SessionClose, CloseAllEndsWhatStillLives) {
  SessionBench bench("null:rk3588");
  Session one = bench.session(bench.options());
  Session two = bench.session(bench.options());
  EXPECT_TRUE(Session::close_all().ok());
  EXPECT_TRUE(one.closed());
  EXPECT_TRUE(two.closed());
}

TEST(SessionClose, ContextsAreFreed) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.schedule = {0, 1, 2};
  options.threads_per_core = 2;
  std::size_t once = 0;
  for (int i = 0; i < 50; ++i) {
    Session session = bench.session(options);
    EXPECT_TRUE(session.run(feed_of(bench.x)));
    if (i == 0) once = bench.device->memory().total();
    EXPECT_EQ(bench.device->memory().total(), once);
  }
  EXPECT_EQ(bench.device->memory().total(), 0U);
}

TEST(SessionFork, TheChildIsRefusedAndCanLeave) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer's own allocator may be locked forever in a forked child";
#endif
  SessionBench bench("null:rk3588?threads=1", false);
  Session session = bench.session(bench.options());
  ASSERT_TRUE(session.run_async(feed_of(bench.x), [](std::uint64_t, const Result<Outputs>&) {}));
  ASSERT_TRUE(session.wait_callbacks());
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = session.run(feed_of(bench.x)).error().code() == Code::kWrongState &&
                         session.close().code() == Code::kWrongState;
    session = Session();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(session.run(feed_of(bench.x)));
}

}  // namespace
}  // namespace corelane
