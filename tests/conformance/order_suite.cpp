// Several jobs: cores, order, priorities, fences, residency, traces.
#include <algorithm>

#include "conformance_base.h"

namespace corelane::conformance {
namespace {

class Order : public Conformance {};

bool overlap(const JobRecord& a, const JobRecord& b) {
  return a.started < b.ended && b.started < a.ended;
}

TEST_F(Order, EachCoreRunsWhatNamesIt) {
  for (std::size_t core = 0; core < cores(); ++core) {
    const Submission made = job(CoreSet::of({core}));
    JobRecord record;
    ASSERT_TRUE(queue_->run(made, &record).ok());
    EXPECT_EQ(record.core_bits, std::uint64_t{1} << core);
    expect_result(made);
  }
}

TEST_F(Order, JobsOnSeveralCoresTakeThemAll) {
  if (!device_->info().capabilities.multi_core_jobs || cores() < 2) GTEST_SKIP() << "one core";
  for (const CoreSet& set : {CoreSet::first(2), CoreSet::first(cores()), CoreSet::any(2)}) {
    const Submission made = job(set);
    JobRecord record;
    ASSERT_TRUE(queue_->run(made, &record).ok());
    EXPECT_EQ(CoreSet::mask(record.core_bits).count(), set.count());
    expect_result(made);
  }
}

TEST_F(Order, CoreSetsThatCannotBeAreRefused) {
  for (const CoreSet& set : {CoreSet::of({}), CoreSet::of({cores()}), CoreSet::any(cores() + 1)}) {
    EXPECT_EQ(queue_->run(job(set)).code(), Code::kInvalidArgument) << set.to_string();
    EXPECT_EQ(queue_->submit(job(set)).error().code(), Code::kInvalidArgument) << set.to_string();
  }
  EXPECT_TRUE(queue_->run(job(CoreSet::platform())).ok());
}

TEST_F(Order, AnyUsesAllCoresAndOneCoreRunsOneJob) {
  // All cores become idle at once, where a job can have them all: on a slow build the first of the
  // jobs could end before the last is submitted.
  const bool joins = device_->info().capabilities.multi_core_jobs;
  std::vector<std::pair<Submission, std::shared_ptr<Queue>>> made;
  for (std::size_t i = 0; i < 2 * cores(); ++i) made.emplace_back(slow_job(CoreSet::any()), queue_);
  const auto jobs = submit_while_busy(joins ? CoreSet::first(cores()) : CoreSet::of({0}), made);
  ASSERT_EQ(jobs.size(), made.size());
  std::uint64_t used = 0;
  for (const auto& completion : jobs) {
    ASSERT_TRUE(completion->wait());
    used |= completion->record().core_bits;
  }
  EXPECT_EQ(used, CoreSet::first(cores()).bits());
  for (std::size_t a = 0; a < jobs.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const JobRecord one = jobs[a]->record();
      const JobRecord two = jobs[b]->record();
      EXPECT_FALSE((one.core_bits & two.core_bits) != 0 && overlap(one, two)) << a << " " << b;
    }
}

TEST_F(Order, FirstInFirstOutWithinAPriority) {
  std::vector<std::pair<Submission, std::shared_ptr<Queue>>> made;
  for (const int priority : {0, 0, 7, -5, 7}) {
    made.emplace_back(job(CoreSet::of({0})), queue_);
    made.back().first.priority = priority;
  }
  const auto jobs = submit_while_core_0_is_busy(made);
  ASSERT_EQ(jobs.size(), made.size());
  for (const auto& completion : jobs) ASSERT_TRUE(completion->wait());
  std::vector<std::size_t> order = {0, 1, 2, 3, 4};
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return jobs[a]->record().started < jobs[b]->record().started;
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 4, 0, 1, 3}));
  EXPECT_EQ(jobs[4]->record().queue_depth, 4U);
}

TEST_F(Order, QueuePriorityIsAdded) {
  device::QueueOptions options;
  options.priority = 10;
  const auto urgent = *device_->make_queue(options);
  const auto jobs = submit_while_core_0_is_busy(
      {{job(CoreSet::of({0})), queue_}, {job(CoreSet::of({0})), urgent}});
  ASSERT_EQ(jobs.size(), 2U);
  const auto& normal = jobs[0];
  const auto& first = jobs[1];
  ASSERT_TRUE(normal->wait());
  ASSERT_TRUE(first->wait());
  EXPECT_LE(first->record().started, normal->record().started);
  EXPECT_EQ(first->record().priority, 10);
}

TEST_F(Order, QueuesWithSharesRunAllTheirJobs) {
  ASSERT_TRUE(device_->set_arbiter(device::fair_arbiter()).ok());
  device::QueueOptions options;
  options.weight = 3;
  const auto heavy = *device_->make_queue(options);
  options.time_cap = 0.5;
  options.cap_window = milliseconds(5);
  const auto capped = *device_->make_queue(options);
  std::vector<Submission> made;
  std::vector<std::shared_ptr<Completion>> jobs;
  for (int i = 0; i < 30; ++i) {
    made.push_back(job({}, static_cast<float>(i)));
    const auto& queue = i % 3 == 0 ? queue_ : i % 3 == 1 ? heavy : capped;
    jobs.push_back(*queue->submit(made.back()));
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ASSERT_TRUE(jobs[i]->wait());
    ASSERT_TRUE(jobs[i]->status().ok()) << jobs[i]->status().to_string();
    expect_result(made[i], static_cast<float>(i));
  }
  ASSERT_TRUE(capped->run(job()).ok());
  ASSERT_TRUE(device_->set_arbiter(nullptr).ok());
  options.weight = 0;
  EXPECT_EQ(device_->make_queue(options).error().code(), Code::kInvalidArgument);
}

TEST_F(Order, CancelledJobNeverStarts) {
  const Submission made = job(CoreSet::of({0}));
  auto blocker = occupy(CoreSet::of({0}));
  auto waiting = submit(made);
  EXPECT_TRUE(waiting->cancel());
  EXPECT_EQ(waiting->status().code(), Code::kCancelled);
  EXPECT_TRUE(waiting->released());
  EXPECT_EQ(waiting->record().core_bits, 0U);
  ASSERT_TRUE(blocker->wait());
  EXPECT_TRUE(queue_->run(made).ok());
}

TEST_F(Order, DepthFallsToZero) {
  EXPECT_EQ(queue_->depth(), 0U);
  const auto gate = std::make_shared<Fence>(device_->clock());
  Submission made = job(CoreSet::of({0}));
  made.wait.push_back(gate);
  const auto one = submit(made);
  made.bindings = job(CoreSet::of({0})).bindings;
  const auto two = submit(made);
  EXPECT_EQ(queue_->depth(), 2U);
  gate->signal();
  ASSERT_TRUE(queue_->drain());
  EXPECT_EQ(queue_->depth(), 0U);
  EXPECT_TRUE(one->done() && two->done());
}

TEST_F(Order, WaitAndDrainGiveUpAtTheirTime) {
  auto blocker = occupy(CoreSet::of({0}));
  auto queued = submit(job(CoreSet::of({0})));
  EXPECT_FALSE(queued->wait(now()));
  EXPECT_FALSE(queued->wait_released(now()));
  EXPECT_FALSE(queue_->drain(now()));
  EXPECT_TRUE(queued->wait());
}

TEST_F(Order, FencesOrderJobs) {
  auto fence = std::make_shared<Fence>();
  Submission later = job();
  later.wait = {fence};
  auto waiting = submit(later);
  EXPECT_FALSE(waiting->done());
  Submission earlier = job();
  earlier.signal = {fence};
  JobRecord record;
  ASSERT_TRUE(queue_->run(earlier, &record).ok());
  ASSERT_TRUE(waiting->wait());
  EXPECT_TRUE(waiting->status().ok());
  EXPECT_GE(waiting->record().started, record.ended);
  expect_result(later);
}

TEST_F(Order, FailedFenceFailsItsJobAndThoseBehind) {
  auto first = std::make_shared<Fence>();
  auto second = std::make_shared<Fence>();
  Submission made = job();
  made.wait = {first};
  made.signal = {second};
  auto completion = submit(made);
  first->signal(error(Code::kIo, "signalled by a test"));
  ASSERT_TRUE(completion->wait());
  EXPECT_EQ(completion->status().code(), Code::kIo);
  ASSERT_TRUE(second->wait());
  EXPECT_EQ(second->status().code(), Code::kIo);
}

TEST_F(Order, JobThatWaitsForAFenceCanBeCancelled) {
  Submission made = job();
  auto fence = std::make_shared<Fence>();
  made.wait = {fence};
  auto completion = submit(made);
  EXPECT_TRUE(completion->cancel());
  fence->signal();
  EXPECT_EQ(completion->status().code(), Code::kCancelled);
}

TEST_F(Order, TraceRecordsWhenOn) {
  EXPECT_EQ(device_->read_trace().error().code(), Code::kWrongState);
  ASSERT_TRUE(queue_->run(job()).ok());
  ASSERT_TRUE(device_->set_trace(8).ok());
  for (std::uint64_t i = 0; i < 4; ++i) {
    Submission made = job();
    made.tag = i;
    ASSERT_TRUE(queue_->run(made).ok());
  }
  ASSERT_TRUE(device_->set_trace(8).ok());
  for (std::uint64_t i = 10; i < 14; ++i) {
    Submission made = job();
    made.tag = i;
    ASSERT_TRUE(submit(made)->wait());
  }
  const auto trace = *device_->read_trace();
  ASSERT_EQ(trace.size(), 4U);
  for (std::size_t i = 0; i < trace.size(); ++i) EXPECT_EQ(trace[i].tag, 10 + i);
}

TEST_F(Order, CountersAddUp) {
  ASSERT_TRUE(queue_->run(job(CoreSet::of({0}))).ok());
  ASSERT_TRUE(submit(job(CoreSet::of({0})))->wait());
  ASSERT_TRUE(occupy(CoreSet::of({0}))->wait());
  const device::DeviceCounters counters = device_->counters();
  EXPECT_EQ(counters.submitted, 3U);
  EXPECT_EQ(counters.completed, 3U);
  EXPECT_EQ(counters.failed, 0U);
  ASSERT_EQ(counters.busy.size(), cores());
  EXPECT_GT(counters.busy[0].count(), 0);
}

TEST_F(Order, EightThreadsGetTheirOwnResults) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([this, t] {
      const Submission made = job();
      for (int i = 0; i < 50; ++i) {
        const auto first = static_cast<float>(100 * t + i - 400);
        fill(made, first);
        if (i % 2 == 0) {
          ASSERT_TRUE(queue_->run(made).ok());
        } else {
          auto completion = submit(made);
          ASSERT_TRUE(completion->wait_released());
          ASSERT_TRUE(completion->status().ok());
        }
        expect_result(made, first);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const device::DeviceCounters counters = device_->counters();
  EXPECT_EQ(counters.completed, 400U);
}

}  // namespace
}  // namespace corelane::conformance
