// Everything at once, with failures: each call resolves exactly once.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using testing::floats_of;
using testing::item;
using testing::SessionBench;

struct Tally {
  std::atomic<int> expected{0};
  std::atomic<int> resolved{0};
  std::atomic<int> failed{0};
  std::atomic<int> wrong{0};

  /// `tag` is what went in, in every element.
  void take(const Result<Outputs>& outputs, float tag) {
    ++resolved;
    if (!outputs) {
      ++failed;
      if (outputs.error().code() != Code::kEngineFailed) ++wrong;
      return;
    }
    for (const float y : floats_of(outputs->front())) wrong += y != tag;
  }
};

/// Calls of every kind, from one of several threads.
void call_all(Session& session, int thread, int rounds, Tally& tally) {
  for (int i = 0; i < rounds; ++i) {
    const auto tag = static_cast<float>(thread * rounds + i);
    const std::vector<float> one(4, tag);
    const std::vector<float> three(12, tag);
    const Feed feed = {item("x", one, Shape{1, 4})};
    const Feed batch = {item("x", three, Shape{3, 4})};
    ++tally.expected;
    switch (i % 5) {
      case 0:
        tally.take(session.run(feed), tag);
        break;
      case 1: {
        const auto id = session.run_async(
            feed, [&tally, tag](std::uint64_t, const Result<Outputs>& o) { tally.take(o, tag); });
        if (!id) ++tally.wrong;
        break;
      }
      case 2:
        tally.take(session.run_batch(batch), tag);
        break;
      case 3: {
        const auto id = session.run_batch_async(
            batch, [&tally, tag](std::uint64_t, const Result<Outputs>& o) { tally.take(o, tag); });
        if (!id) ++tally.wrong;
        break;
      }
      default:
        tally.take(session.submit(feed)->get(), tag);
    }
  }
}

void stress(const std::string& device, SessionOptions (*adjust)(SessionOptions)) {
  SessionBench bench(device, false);
  Session session = bench.session(adjust(bench.options()));
  Tally tally;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] { call_all(session, t, 250, tally); });
  int piped = 0;
  for (int i = 0; i < 100; ++i) {
    const std::vector<float> one(4, 7);
    const auto outputs = session.run_pipeline({item("x", one, Shape{1, 4})});
    piped += !outputs.has_value() || outputs->has_value();
  }
  piped += static_cast<int>(session.flush().size());
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(session.close().ok());
  EXPECT_EQ(piped, 100);
  EXPECT_EQ(tally.resolved, tally.expected);
  EXPECT_EQ(tally.wrong, 0);
  EXPECT_GT(tally.failed, 0);
  const SessionStatistics s = session.statistics();
  EXPECT_EQ(s.completed, s.accepted);
  EXPECT_EQ(s.accepted, 4U * 250U / 5U * (1 + 1 + 3 + 3 + 1) + 100U);
  EXPECT_EQ(s.waiting + s.running + s.pending_callbacks, 0U);
}

TEST(SessionStress, OnTheClockWithOneInTwentyFailing) {
  stress("null:rk3588?fail=20", [](SessionOptions o) {
    o.schedule = {0, 1, 2};
    return o;
  });
}

TEST(SessionStress, OnThreadsWithOneInTwentyFailing) {
  stress("null:rk3588?fail=20&threads=1&a=20us", [](SessionOptions o) {
    o.schedule = {0, 0, 1, 2};
    o.threads_per_core = 2;
    o.sequential_callbacks = false;
    o.placement = PlacementPolicy::kLeastLoaded;
    return o;
  });
}

TEST(SessionStress, EightThreadsOfTaggedRunsAreNeverMixedUp) {
  SessionBench bench("null:rk3588?threads=1", false);
  SessionOptions options = bench.options();
  options.schedule = {0, 1, 2};
  Session session = bench.session(options);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const std::vector<float> x(4, static_cast<float>(t * 1000 + i));
        const auto y = session.run({item("x", x, Shape{1, 4})});
        wrong += !y || floats_of(y->front()) != x;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(session.statistics().completed, 4000U);
}

}  // namespace
}  // namespace corelane
