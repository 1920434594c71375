/// The records of the threaded engine, read a second time (A20).
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "scheduler/testing/log_replay.h"
#include "scheduler/testing/virtual_bench.h"

namespace corelane::scheduler {
namespace {

using replay::LogReplay;
using replay::Requests;
using replay::Rules;

struct GroupShape {
  const char* min;
  const char* max;
  const char* instances;
  std::vector<Topology::Group> groups;
};

const GroupShape kShapes[] = {
    {"1", "8", "1", {{"", {1, 8}, 1}}},
    {"1", "6", "3", {{"", {1, 6}, 3}}},
    {"1&4&8", "1&4&8", "2", {{"", {1, 1}, 2}, {"", {4, 4}, 2}, {"", {8, 8}, 2}}},
    {"1&3", "2&7", "1&2", {{"", {1, 2}, 1}, {"", {3, 7}, 2}}}};

/// A run of random requests, and what its rules were.
struct RandomRun {
  explicit RandomRun(std::uint64_t seed) : random(seed), shape(kShapes[below(4)]) {
    rules.groups = shape.groups;
    rules.full = below(2) == 0;
    rules.isolate = below(2) == 0;
    rules.timeout = std::chrono::microseconds(500 * below(8));
    rules.ageing = std::chrono::milliseconds(3);
    bench.script->repeatable = true;
    // No two calls end at one instant.
    bench.script->time = [this](const std::string&, std::uint32_t items) {
      return Duration(2'000'000 + 700'000 * items + 11 * ++calls);
    };
    bench.script->body = [](std::span<const RequestPtr> batch) -> Status {
      for (const RequestPtr& request : batch) request->values[kResult] = 1;
      for (const RequestPtr& request : batch)
        if (std::any_cast<int>(request->values.at(kData)) % 23 == 7)
          return error(Code::kEngineFailed, "bad");
      return {};
    };
  }
  std::uint64_t below(std::uint64_t end) { return random() % end; }

  void go() {
    ASSERT_TRUE(bench
                    .open({{"min", shape.min},
                           {"max", shape.max},
                           {"instance_num", shape.instances},
                           {"batching", rules.full ? "full" : "idle"},
                           {"batching_timeout", std::to_string(ms_of(rules.timeout))},
                           {"ageing", std::to_string(ms_of(rules.ageing))},
                           {"isolate", rules.isolate ? "true" : "false"},
                           {"deadlines", "expire"},
                           {"records", "100000"}})
                    .ok());
    TimePoint now{};
    for (int i = 0; i < 200; ++i) {
      now += Duration(1 + below(below(5) == 0 ? 9'000'000 : 900'000));
      replay::Submitted one{static_cast<std::uint64_t>(i + 1), now};
      RequestOptions with;
      with.priority = one.priority = static_cast<std::int32_t>(below(4)) - 1;
      if (below(4) == 0) {
        const Range range = rules.groups[below(rules.groups.size())].range;
        with.items = one.items = range.min + static_cast<std::uint32_t>(below(range.max));
        if (one.items > range.max) with.items = one.items = range.max;
      }
      if (below(5) == 0) {
        // Where batches wait for more, those of a call of 7.6 ms after 3.5 ms spare twice the wait.
        with.timeout = Duration((rules.full ? 15'000'000 : 1'000'000) + below(20'000'000));
        one.deadline = now + with.timeout;
      }
      submitted.push_back(one);
      bench.submit_at(now, i, with);
    }
    bench.run_all();
    log = bench.pipeline.records();
    std::ranges::sort(log, {}, &BatchRecord::id);
  }
  static double ms_of(Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  }

  std::mt19937_64 random;
  const GroupShape& shape;
  Rules rules;
  Requests submitted;
  std::vector<BatchRecord> log;
  std::atomic<std::int64_t> calls{0};
  VirtualBench bench;
};

void same_call(const BatchRecord& read, const BatchRecord& logged) {
  EXPECT_EQ(read.started, logged.started);
  EXPECT_EQ(read.group, logged.group);
  EXPECT_EQ(read.instance, logged.instance);
  EXPECT_EQ(read.items, logged.items);
  EXPECT_EQ(logged.padding, 0U);
  EXPECT_EQ(reason_name(read.reason), reason_name(logged.reason));
  EXPECT_EQ(read.oldest, logged.oldest);
  EXPECT_EQ(read.requests, logged.requests);
}

/// The figures of the run, from the calls as they were read.
void same_figures(const RandomRun& run, const LogReplay& read) {
  Statistics sum;
  const Statistics all = run.bench.pipeline.statistics();
  sum.batch_sizes.resize(all.batch_sizes.size());
  sum.queue_times.resize(all.queue_times.size());
  for (const BatchRecord& call : read.calls) {
    ++sum.batches;
    sum.batch_items += call.items;
    ++sum.batch_sizes[call.items];
    ++sum.reasons[static_cast<std::size_t>(call.reason)];
    sum.busy_sum += run.log[call.id - 1].ended - call.started;
    for (const std::uint64_t id : call.requests) {
      const Duration waited = call.started - run.submitted[id - 1].at;
      std::size_t bucket = 0;
      while (bucket < kQueueTimeBounds.size() && waited > kQueueTimeBounds[bucket]) ++bucket;
      ++sum.queue_times[bucket];
      sum.queue_time_sum += waited;
    }
  }
  EXPECT_EQ(sum.batches, all.batches);
  EXPECT_EQ(sum.batch_items, all.batch_items);
  EXPECT_EQ(sum.batch_sizes, all.batch_sizes);
  EXPECT_EQ(sum.reasons, all.reasons);
  EXPECT_EQ(sum.busy_sum, all.busy_sum);
  EXPECT_EQ(sum.queue_times, all.queue_times);
  EXPECT_EQ(sum.queue_time_sum, all.queue_time_sum);
  EXPECT_EQ(read.done, all.done);
  EXPECT_EQ(read.failed, all.failed);
  EXPECT_EQ(read.expired, all.expired);
  EXPECT_EQ(all.submitted, run.submitted.size());
}

TEST(NodeReplay, TheRecordsSayWhatTheRulesSay) {
  std::array<std::uint64_t, kReasons> seen{};
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    RandomRun run(seed);
    run.go();
    if (HasFatalFailure()) return;
    LogReplay read(run.rules, run.submitted, run.log);
    read.run();
    for (std::size_t i = 0; i < std::min(read.calls.size(), run.log.size()); ++i) {
      SCOPED_TRACE("call " + std::to_string(i + 1));
      same_call(read.calls[i], run.log[i]);
      if (HasFailure()) return;
      ++seen[static_cast<std::size_t>(run.log[i].reason)];
    }
    EXPECT_EQ(read.calls.size(), run.log.size());
    same_figures(run, read);
    if (HasFailure()) return;
  }
  for (const Reason reason : {Reason::kFull, Reason::kIdle, Reason::kTimeout, Reason::kIsolate})
    EXPECT_GT(seen[static_cast<std::size_t>(reason)], 100U) << reason_name(reason);
}

}  // namespace
}  // namespace corelane::scheduler
