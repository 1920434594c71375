// Observers of an inference set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <stdexcept>

#include "runtime/testing/set_bench.h"

namespace corelane {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::SetBench;

TimePoint at(int ms) { return TimePoint(milliseconds(ms)); }

/// An observer that keeps its records; read after flush().
struct Seen {
  explicit Seen(InferenceSet& set, std::uint32_t one_in = 1) {
    SetObserverOptions options;
    options.one_in = one_in;
    options.on_record = [this](const SetRecord& record) { records.push_back(record); };
    auto made = set.observe(std::move(options));
    EXPECT_TRUE(made) << made.error().to_string();
    if (made) observation = *made;
  }
  std::vector<std::uint64_t> ids() {
    EXPECT_TRUE(observation->flush());
    std::vector<std::uint64_t> found;
    for (const SetRecord& record : records) found.push_back(record.id);
    return found;
  }
  std::vector<SetRecord> records;
  std::shared_ptr<device::Observation> observation;
};

void submit(InferenceSet& set, std::uint64_t id) {
  ASSERT_TRUE(set.submit(set.acquire().value(), id).ok());
}

void collect(InferenceSet& set, std::uint64_t id) {
  const auto done = set.collect_id(id);
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_TRUE(set.release(*done).ok());
}

TEST(SetRecords, SayWhenAnInferenceGotWhere) {
  SetBench bench("null?a=5ms");
  InferenceSet set = bench.set({.size = 2});
  Seen seen(set);
  const SetHandle other = set.acquire().value();
  const SetHandle handle = set.acquire().value();
  std::array<std::int32_t, 4> y{};
  ASSERT_TRUE(
      handle.context().bind_output(0, {y.data(), 16, DType::kI32, Shape{1, 4}, {}, {}}).ok());
  bench.clock->advance_to(at(1));
  ASSERT_TRUE(set.submit(other, 41).ok());
  ASSERT_TRUE(set.submit(handle, 42).ok());
  bench.clock->advance_to(at(8));
  collect(set, 42);
  ASSERT_THAT(seen.ids(), ElementsAre(42));
  const SetRecord& record = seen.records[0];
  EXPECT_EQ(record.handle, handle.index());
  EXPECT_EQ(record.attempts, 1U);
  EXPECT_EQ(record.code, Code::kOk);
  EXPECT_EQ(record.in_flight, 2U);
  EXPECT_EQ(record.submitted, at(1));
  EXPECT_EQ(record.run.enqueued, at(1));
  EXPECT_EQ(record.run.copied_in, TimePoint{}) << "its input is its own";
  EXPECT_EQ(record.job.queued, at(1));
  EXPECT_EQ(record.job.started, at(1));
  EXPECT_EQ(record.job.ended, at(6));
  EXPECT_EQ(record.run.copied_out, at(6));
  EXPECT_EQ(record.completed, at(6));
  EXPECT_EQ(record.collected, at(8));
}

TEST(SetRecords, AllSeeTheSameAndTheDeviceItsPart) {
  SetBench bench("null:generic:2?a=1ms");
  InferenceSet set = bench.set({.size = 3});
  Seen one(set);
  Seen two(set);
  Seen sampled(set, 2);
  std::vector<std::uint64_t> jobs;
  device::ObserverOptions watch;
  watch.on_record = [&](const device::JobRecord& record) { jobs.push_back(record.id); };
  const auto of_device = bench.device->observe(std::move(watch)).value();
  for (std::uint64_t round = 0; round < 4; ++round) {
    for (std::uint64_t i = 0; i < 3; ++i) submit(set, 3 * round + i);
    bench.clock->advance(milliseconds(2));
    for (const std::uint64_t i : {2U, 0U, 1U}) collect(set, 3 * round + i);
  }
  EXPECT_THAT(one.ids(), ElementsAre(2, 0, 1, 5, 3, 4, 8, 6, 7, 11, 9, 10)) << "as collected";
  EXPECT_EQ(two.ids(), one.ids());
  EXPECT_THAT(sampled.ids(), ElementsAre(2, 1, 3, 8, 7, 9));
  EXPECT_TRUE(of_device->flush());
  std::vector<std::uint64_t> joined;
  for (const SetRecord& record : one.records) joined.push_back(record.job.id);
  EXPECT_THAT(joined, ::testing::UnorderedElementsAreArray(jobs));
  for (std::size_t i = 0; i < one.records.size(); ++i) {
    EXPECT_EQ(one.records[i].completed, two.records[i].completed);
    EXPECT_EQ(one.records[i].job.id, two.records[i].job.id);
  }
}

TEST(SetRecords, AnObserverMayBeToldOfWhatHasCompletedWhetherOrNotItIsCollected) {
  SetBench bench("null:generic:2?a=5ms");
  InferenceSet set = bench.set({.size = 2});
  Seen collected(set);
  std::vector<SetRecord> completed;
  SetObserverOptions options;
  options.at_completion = true;
  options.on_record = [&](const SetRecord& record) { completed.push_back(record); };
  const auto observation = set.observe(std::move(options)).value();
  submit(set, 1);
  submit(set, 2);
  bench.clock->advance_to(at(5));
  EXPECT_TRUE(observation->flush());
  ASSERT_EQ(completed.size(), 2U);
  EXPECT_EQ(completed[0].completed, at(5));
  EXPECT_EQ(completed[0].collected, at(5));
  EXPECT_EQ(completed[0].attempts, 1U);
  bench.clock->advance_to(at(8));
  collect(set, 2);
  EXPECT_THAT(collected.ids(), ElementsAre(2));
  EXPECT_EQ(collected.records[0].collected, at(8));
  EXPECT_TRUE(observation->flush());
  EXPECT_EQ(completed.size(), 2U) << "once each";
}

TEST(SetRecords, OfSeveralAttemptsTheLastIsShown) {
  SetBench bench("null?a=1s");
  InferenceSet set = bench.set({.size = 1, .attempt_time = milliseconds(10), .retries = 2});
  Seen seen(set);
  submit(set, 7);
  bench.clock->advance_to(at(30));
  collect(set, 7);
  ASSERT_THAT(seen.ids(), ElementsAre(7));
  const SetRecord& record = seen.records[0];
  EXPECT_EQ(record.attempts, 3U);
  EXPECT_EQ(record.code, Code::kTimeout);
  EXPECT_EQ(record.submitted, at(0));
  EXPECT_EQ(record.run.enqueued, at(20));
  EXPECT_EQ(record.job.queued, at(20));
  EXPECT_EQ(record.job.code, Code::kTimeout);
  EXPECT_EQ(record.completed, at(30));
}

TEST(SetRecords, AreMadeForCallbacksTooInTheirOrder) {
  SetBench bench("null:rk3588?a=10ms");
  InferenceSet set = bench.set({.size = 4, .in_order = true});
  Seen seen(set);
  for (std::uint64_t id = 0; id < 4; ++id)
    ASSERT_TRUE(set.submit(set.acquire().value(), id, [](const SetHandle&) {}).ok());
  EXPECT_TRUE(set.cancel(3)) << "the fourth waits for a core";
  bench.clock->advance_to(at(10));
  EXPECT_THAT(seen.ids(), ElementsAre(0, 1, 2, 3));
  const SetRecord& last = seen.records[3];
  EXPECT_EQ(last.code, Code::kCancelled);
  EXPECT_EQ(last.job.core_bits, 0U);
  EXPECT_EQ(last.completed, at(0));
  EXPECT_EQ(last.collected, at(10));
}

TEST(SetRecords, BeginAndEndWithTheObservation) {
  SetBench bench("null");
  InferenceSet set = bench.set({.size = 3});
  submit(set, 1);
  Seen seen(set);
  collect(set, 1);
  submit(set, 2);
  collect(set, 2);
  submit(set, 3);
  EXPECT_THAT(seen.ids(), ElementsAre(2)) << "nobody observed the submission of 1";
  seen.observation.reset();
  collect(set, 3);
  EXPECT_EQ(seen.records.size(), 1U);
}

TEST(SetRecords, ARefusedSubmissionHasNone) {
  SetBench bench("null?a=1ms");
  InferenceSet set = bench.set({.size = 1});
  Seen seen(set);
  submit(set, 1);
  EXPECT_EQ(set.submit(SetHandle(), 2).code(), Code::kInvalidArgument);
  bench.clock->advance(milliseconds(1));
  collect(set, 1);
  EXPECT_THAT(seen.ids(), ElementsAre(1));
}

TEST(SetRecords, AnObserverMayThrowOutliveTheSetAndEndInItsOwnCall) {
  SetBench bench("null");
  auto set = std::make_unique<InferenceSet>(bench.set({.size = 1}));
  std::promise<void> ended;
  std::vector<std::uint64_t> ids;
  std::shared_ptr<device::Observation> observation;
  SetObserverOptions options;
  options.on_record = [&](const SetRecord& record) {
    ids.push_back(record.id);
    if (record.id == 1) throw std::runtime_error("as users do");
    EXPECT_FALSE(observation->flush()) << "in its own call";
    observation.reset();
    ended.set_value();
  };
  observation = set->observe(std::move(options)).value();
  for (std::uint64_t id = 1; id < 3; ++id) {
    submit(*set, id);
    collect(*set, id);
    if (id == 1) EXPECT_TRUE(observation->flush());
  }
  set.reset();
  ended.get_future().wait();
  EXPECT_THAT(ids, ElementsAre(1, 2));
}

TEST(SetRecords, WhatComesWhileTheRingIsFullIsDroppedAndCounted) {
  SetBench bench("null");
  InferenceSet set = bench.set({.size = 1});
  std::promise<void> gate;
  auto open = gate.get_future().share();
  std::atomic<std::uint64_t> delivered{0};
  SetObserverOptions options;
  options.ring = 2;
  options.on_record = [&, open](const SetRecord&) {
    open.wait();
    ++delivered;
  };
  const auto observation = set.observe(std::move(options)).value();
  for (std::uint64_t id = 0; id < 20; ++id) {
    submit(set, id);
    collect(set, id);
  }
  // A call that waits has two records at most, and the ring two more.
  EXPECT_GE(observation->dropped(), 16U);
  EXPECT_FALSE(observation->flush(bench.clock->now()));
  gate.set_value();
  EXPECT_TRUE(observation->flush());
  EXPECT_EQ(delivered + observation->dropped(), 20U);
}

TEST(SetRecords, OptionsThatCannotBeAreRefused) {
  SetBench bench("null");
  InferenceSet set = bench.set({.size = 1});
  const auto code = [&](SetObserverOptions options) {
    return set.observe(std::move(options)).error().code();
  };
  const auto ignore = [](const SetRecord&) {};
  EXPECT_EQ(code({}), Code::kInvalidArgument);
  EXPECT_EQ(code({.on_record = ignore, .one_in = 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({.on_record = ignore, .ring = 0}), Code::kInvalidArgument);
  EXPECT_EQ(InferenceSet().observe({.on_record = ignore}).error().code(), Code::kWrongState);
  set.shutdown();
  EXPECT_EQ(code({.on_record = ignore}), Code::kCancelled);
}

TEST(SetRecords, InAForkedChildNothingIsDeliveredAndNothingHangs) {
  SetBench bench("null", false);
  InferenceSet set = bench.set({.size = 1});
  Seen seen(set);
  submit(set, 1);
  collect(set, 1);
  EXPECT_THAT(seen.ids(), ElementsAre(1));
  submit(set, 2);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const bool refused =
        set.observe({.on_record = [](const SetRecord&) {}}).error().code() == Code::kWrongState &&
        !seen.observation->flush() && seen.observation->dropped() == 0;
    seen.observation.reset();
    set = {};
    _exit(refused && seen.records.size() == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  collect(set, 2);
  EXPECT_THAT(seen.ids(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace corelane
