// What a line that is full does to those who submit.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "scheduler/testing/virtual_bench.h"

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;

/// Counts the threads that began to wait on it.
class WatchedClock final : public Clock {
 public:
  explicit WatchedClock(std::shared_ptr<Clock> under) : under_(std::move(under)) {}
  TimePoint now() const noexcept override { return under_->now(); }
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  TimePoint until) override {
    ++waits;
    return under_->wait_until(lock, cv, until);
  }
  TimerId call_at(TimePoint when, std::function<void()> f) override {
    return under_->call_at(when, std::move(f));
  }
  bool cancel(TimerId id) override { return under_->cancel(id); }
  bool is_virtual() const noexcept override { return true; }

  std::atomic<int> waits{0};

 private:
  const std::shared_ptr<Clock> under_;
};

/// A bench that sees whether submissions wait for room.
struct LineBench : VirtualBench {
  Status open_line(Config config) {
    config.try_emplace("backend", "Scripted");
    PipelineOptions with = options();
    with.clock = watched;
    auto made = Pipeline::create(config, with);
    if (!made) return made.error();
    pipeline = std::move(*made);
    return {};
  }
  /// A thread that submits, and holds its answer against `code`.
  std::thread submitter(int data, const RequestOptions& with, Code code = Code::kOk) {
    return std::thread(
        [this, data, with, code] { EXPECT_EQ(submit(data, with).wait().code(), code); });
  }
  /// Until so many waits have begun. Those who wait for answers count, too.
  void wait_for_waits(int count) const {
    while (watched->waits < count) std::this_thread::yield();
    (void)pipeline.statistics();  // By now the last one has given up the lock.
  }
  void wait_for_submitted(std::uint64_t count) const {
    while (pipeline.statistics().submitted < count) std::this_thread::yield();
  }

  std::shared_ptr<WatchedClock> watched = std::make_shared<WatchedClock>(script->clock);
};

TEST(NodeLimits, ASubmissionEntersWhenANewcomerOrADrainEmptiesTheLine) {
  for (const bool drains : {false, true}) {
    LineBench bench;
    bench.script->time = linear_time(1'000, 0);
    ASSERT_TRUE(bench
                    .open_line({{"max", "4"},
                                {"instance_num", "2"},
                                {"batching", "full"},
                                {"batching_timeout", "60000"},
                                {"queue_items", "4"}})
                    .ok());
    (void)bench.submit(0, {.items = 3});
    std::thread blocked = bench.submitter(1, {.items = 2});
    bench.wait_for_waits(1);
    // Fills a batch, or lets the line go: there is room then, and an instance is idle.
    if (drains)
      EXPECT_EQ(bench.pipeline.drain(TimePoint{}).code(), Code::kTimeout);
    else
      (void)bench.submit(2, {.items = 1, .priority = 1});
    bench.wait_for_submitted(drains ? 2 : 3);
    EXPECT_EQ(bench.now(), 0) << "it did not wait for the end of the call";
    bench.run_all();
    blocked.join();
    bench.adds_up();
  }
}

TEST(NodeLimits, AFullLineWaitsForNoMore) {
  LineBench bench;
  bench.script->time = linear_time(10, 0);
  ASSERT_TRUE(bench
                  .open_line({{"max", "4"},
                              {"batching", "full"},
                              {"batching_timeout", "60000"},
                              {"queue_items", "3"}})
                  .ok());
  (void)bench.submit(0, {.items = 3});
  std::thread blocked = bench.submitter(1, {.items = 3});
  bench.wait_for_waits(1);
  bench.run_to(0);
  bench.wait_for_submitted(2);
  EXPECT_EQ(bench.pipeline.statistics().running, 1U);
  bench.run_to(11);
  EXPECT_EQ(bench.pipeline.statistics().waiting, 1U) << "nobody waits for room any more";
  bench.run_all();
  blocked.join();
  EXPECT_EQ(bench.now(), 60'010);
}

TEST(NodeLimits, ALargeSubmissionIsNotOvertakenBySmallOnes) {
  LineBench bench;
  bench.script->time = linear_time(10, 0);
  ASSERT_TRUE(bench.open_line({{"max", "8"}, {"queue_items", "8"}}).ok());
  (void)bench.submit(0);
  (void)bench.submit(1);
  std::thread large = bench.submitter(2, {.items = 8});
  bench.wait_for_waits(1);
  std::thread small = bench.submitter(3, {});
  bench.wait_for_waits(2);  // There would be room for it.
  bench.run_to(10);
  bench.wait_for_submitted(3);
  bench.run_to(20);
  bench.wait_for_submitted(4);
  bench.run_all();
  large.join();
  small.join();
  EXPECT_EQ(bench.sizes(), "1 1 8 1");
}

TEST(NodeLimits, ThoseThatWaitForRoomEnterByTheirPriority) {
  LineBench bench;
  bench.script->time = linear_time(10, 0);
  ASSERT_TRUE(bench.open_line({{"queue_items", "1"}}).ok());
  (void)bench.submit(0);
  (void)bench.submit(1);
  std::thread low = bench.submitter(2, {.priority = -1});
  bench.wait_for_waits(1);
  std::thread high = bench.submitter(3, {.priority = 1});
  bench.wait_for_waits(2);
  for (int entered = 3; entered <= 4; ++entered) {
    bench.run_to(10 * (entered - 2));
    bench.wait_for_submitted(static_cast<std::uint64_t>(entered));
  }
  bench.run_all();
  low.join();
  high.join();
  std::vector<int> order;
  for (const SeenCall& call : bench.script->calls) order.push_back(call.data.front());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 3, 2}));
}

TEST(NodeLimits, ShutdownWakesAllThatWaitForRoom) {
  LineBench bench;
  bench.script->time = linear_time(10, 0);
  ASSERT_TRUE(bench.open_line({{"queue_items", "1"}}).ok());
  (void)bench.submit(0);
  (void)bench.submit(1);
  std::thread blocked[3];
  for (auto& each : blocked) each = bench.submitter(2, {}, Code::kCancelled);
  bench.wait_for_waits(3);
  EXPECT_EQ(bench.pipeline.shutdown(Shutdown::kCancel, TimePoint{}).code(), Code::kTimeout);
  for (auto& each : blocked) each.join();
  bench.run_all();
  bench.adds_up();
}

TEST(NodeLimits, WhoWaitedForRoomUntilTheDeadlineIsToldOfTheFullLine) {
  LineBench bench;
  bench.script->time = linear_time(100, 0);
  ASSERT_TRUE(bench.open_line({{"queue_items", "1"}}).ok());
  (void)bench.submit(0);
  (void)bench.submit(1);
  std::thread blocked([&] {
    const Ticket ticket = bench.submit(2, {.timeout = milliseconds(20)});
    EXPECT_EQ(ticket.state(), RequestState::kRejected);
    EXPECT_EQ(ticket.wait().code(), Code::kTimeout);
    const std::string text = ticket.wait().to_string();
    EXPECT_NE(text.find("waited for room until its timeout of 20.000 ms"), text.npos) << text;
    EXPECT_NE(text.find("queue_items is 1 items"), text.npos) << text;
  });
  bench.wait_for_waits(1);
  bench.run_to(20);
  blocked.join();
  bench.run_all();
}

TEST(NodeLimits, NothingIsDroppedWhereThatMakesNoRoom) {
  VirtualBench bench;
  bench.script->repeatable = true;
  bench.script->time = linear_time(10, 0);
  bench.script->body = [](std::span<const RequestPtr> batch) -> Status {
    if (batch.size() > 1) return error(Code::kEngineFailed, "too many");
    batch[0]->values[kResult] = 1;
    return {};
  };
  ASSERT_TRUE(
      bench.open({{"max", "4"}, {"queue_policy", "drop_oldest"}, {"queue_items", "4"}}).ok());
  bench.submit_at(0, 0);
  for (int i = 1; i <= 4; ++i) bench.submit_at(1, i);
  bench.submit_at(15, 5);  // The four run; at 20 they are two parts, of which one waits.
  bench.submit_at(21, 6, {.items = 3});
  bench.run_all();
  EXPECT_EQ(bench.tickets[6].wait().code(), Code::kBusy);
  EXPECT_TRUE(bench.tickets[5].wait().ok()) << "it was there first";
  bench.adds_up();
}

TEST(NodeLimits, WithoutAMeasuredCallNoTimeIsSaid) {
  VirtualBench bench;
  bench.script->time = linear_time(10, 0);
  ASSERT_TRUE(bench.open({{"queue_policy", "reject"}, {"queue_items", "1"}}).ok());
  for (int i = 0; i < 3; ++i) (void)bench.submit_at(0, i);
  bench.submit_at(15, 3);
  bench.submit_at(15, 4);
  bench.run_to(16);
  const Status first = bench.tickets[2].wait(), later = bench.tickets[4].wait();
  EXPECT_EQ(first.detail(Detail::kRetryAfter), "");
  EXPECT_NE(first.message().find("try again later"), std::string::npos) << first.to_string();
  EXPECT_EQ(later.detail(Detail::kRetryAfter), "10.0") << later.to_string();
  bench.run_all();
}

}  // namespace
}  // namespace corelane::scheduler
