#include "lanes/lane_scheduler.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "base/process/unique_fd.h"
#include "corelane/base/log.h"
#include "dispatch/awaited.h"
#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

TEST(LaneScheduler, BlockingRunStaysInTheCallersThread) {
  FakeDevice fake;
  std::thread::id ran_in;
  fake.state->before_run = [&](std::uint64_t) {
    ran_in = std::this_thread::get_id();
    return Status();
  };
  const device::Submission job = fake.job({}, 3);
  device::JobRecord record;
  ASSERT_TRUE(fake.queue->run(job, &record).ok());
  EXPECT_EQ(ran_in, std::this_thread::get_id());
  EXPECT_EQ(FakeDevice::result(job), 6);
  EXPECT_EQ(record.core_bits, 1U);
  EXPECT_EQ(record.bytes_in, 16U);
  EXPECT_EQ(record.bytes_out, 16U);
  EXPECT_EQ(record.code, Code::kOk);
  EXPECT_LE(record.started, record.ended);
}

/// A device whose runs wait at a gate, so that a test can set the callback of a job that runs.
struct FromCallback {
  explicit FromCallback(std::size_t cores) : fake(cores) {
    fake.state->before_run = [this](std::uint64_t) {
      {
        const std::lock_guard guard(mutex);
        ran_in.push_back(std::this_thread::get_id());
      }
      gate.pass();
      return Status();
    };
  }
  /// To be called in a callback: a job that its thread may run next.
  std::shared_ptr<device::Completion> submit() const {
    device::Submission job = fake.job();
    job.from_callback = true;
    auto submitted = fake.queue->submit(job);
    EXPECT_TRUE(submitted.has_value());
    return submitted ? *submitted : nullptr;
  }
  /// A wait of this kind never runs the job itself.
  static bool ends(device::Completion& job) {
    return job.wait(real_clock()->now() + std::chrono::seconds(30));
  }
  Gate gate;
  std::mutex mutex;
  std::vector<std::thread::id> ran_in;
  FakeDevice fake;
};

TEST(LaneScheduler, AJobFromACallbackThatReturnsSoonRunsInTheThreadThatCalledBack) {
  FromCallback test(1);
  std::shared_ptr<device::Completion> second;
  std::atomic<bool> returned{false};
  const auto first = test.fake.queue->submit(test.fake.job());
  ASSERT_TRUE(first.has_value());
  test.gate.await(1);
  (*first)->on_done([&](device::Completion&) {
    second = test.submit();
    returned = true;
  });
  test.gate.open();
  ASSERT_TRUE(FromCallback::ends(**first));
  while (!returned) std::this_thread::yield();
  ASSERT_TRUE(FromCallback::ends(*second));
  ASSERT_EQ(test.ran_in.size(), 2U);
  EXPECT_EQ(test.ran_in[0], test.ran_in[1]);
}

TEST(LaneScheduler, TheNextJobRunsInTheThreadWhoseCallbacksAreSaidToBeBrief) {
  FromCallback test(1);
  device::Submission brief = test.fake.job();
  brief.brief_callbacks = true;
  const auto first = test.fake.queue->submit(brief);
  ASSERT_TRUE(first.has_value());
  test.gate.await(1);
  const auto second = test.fake.queue->submit(test.fake.job());
  ASSERT_TRUE(second.has_value());
  std::size_t begun = 0;
  bool awaited = false;
  bool second_awaited = true;
  std::atomic<int> returned{0};
  (*first)->on_done([&](device::Completion&) {
    const std::lock_guard guard(test.mutex);
    begun = test.ran_in.size();
    awaited = dispatch::thread_is_awaited();
    ++returned;
  });
  (*second)->on_done([&](device::Completion&) {
    second_awaited = dispatch::thread_is_awaited();
    ++returned;
  });
  test.gate.open();
  ASSERT_TRUE(FromCallback::ends(**second));
  while (returned != 2) std::this_thread::yield();
  EXPECT_EQ(begun, 1U) << "the second job began while the callback of the first was called";
  EXPECT_TRUE(awaited);
  EXPECT_FALSE(second_awaited) << "its callback may take any time";
  ASSERT_EQ(test.ran_in.size(), 2U);
  EXPECT_EQ(test.ran_in[0], test.ran_in[1]);
}

TEST(LaneScheduler, ACallbackLeavesOneJobToItsThreadAndTheOthersToOtherWorkers) {
  FromCallback test(2);
  std::atomic<bool> one_ended{false};
  std::atomic<bool> returned{false};
  std::shared_ptr<device::Completion> third;
  const auto first = test.fake.queue->submit(test.fake.job());
  ASSERT_TRUE(first.has_value());
  test.gate.await(1);
  (*first)->on_done([&](device::Completion&) {
    const auto second = test.submit();
    third = test.submit();
    one_ended = FromCallback::ends(*second);
    returned = true;
  });
  test.gate.open();
  while (!returned) std::this_thread::yield();
  EXPECT_TRUE(one_ended);
  EXPECT_TRUE(FromCallback::ends(*third));
}

/// Which thread begins is a race, so it is tried until the waiter does.
TEST(LaneScheduler, ACallbackInTheThreadOfAWaiterLeavesNoJobToIt) {
  FromCallback test(1);
  test.gate.open();
  const std::thread::id waiter = std::this_thread::get_id();
  bool tried = false;
  bool ended = false;
  for (int i = 0; i < 1000 && !tried; ++i) {
    const auto first = test.fake.queue->submit(test.fake.job());
    ASSERT_TRUE(first.has_value());
    (*first)->on_done([&](device::Completion&) {
      if (std::this_thread::get_id() != waiter) return;
      tried = true;
      ended = FromCallback::ends(*test.submit());
    });
    ASSERT_TRUE((*first)->wait());
  }
  ASSERT_TRUE(tried);
  EXPECT_TRUE(ended);
}

TEST(LaneScheduler, TensorsAreBoundOnceForManyRuns) {
  FakeDevice fake;
  const device::Submission job = fake.job();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(fake.queue->run(job).ok());
  EXPECT_EQ(fake.state->binds, 2);
}

TEST(LaneScheduler, WaitMayRunTheJobItself) {
  FakeDevice fake;
  for (int i = 0; i < 200; ++i) {
    const device::Submission job = fake.job({}, static_cast<float>(i));
    auto completion = fake.queue->submit(job);
    ASSERT_TRUE(completion.has_value());
    ASSERT_TRUE((*completion)->wait());
    EXPECT_TRUE((*completion)->status().ok());
    EXPECT_TRUE((*completion)->released());
    EXPECT_EQ(FakeDevice::result(job), 2 * static_cast<float>(i));
  }
}

/// Which thread begins is a race; either way the job runs once, and run_here() says who ran it.
TEST(LaneScheduler, AThreadMayRunAJobThatNoOtherHasBegun) {
  FakeDevice fake(1);
  std::atomic<int> runs{0};
  std::thread::id ran_in;
  fake.state->before_run = [&](std::uint64_t) {
    ++runs;
    ran_in = std::this_thread::get_id();
    return Status();
  };
  int here = 0;
  int submitted = 0;
  for (; submitted < 200 || (here == 0 && submitted < 100'000); ++submitted) {
    const auto completion = *fake.queue->submit(fake.job());
    if (completion->run_here()) {
      EXPECT_TRUE(completion->done());
      EXPECT_EQ(ran_in, std::this_thread::get_id());
      ++here;
    }
    ASSERT_TRUE(completion->wait());
    EXPECT_FALSE(completion->run_here()) << "it is done";
  }
  EXPECT_EQ(runs, submitted);
  EXPECT_GT(here, 0);
}

TEST(LaneScheduler, AJobThatWaitsForItsCoreOrHasADeadlineIsNotRunHere) {
  FakeDevice fake(1);
  Gate gate;
  fake.state->hold_runs_at(gate);
  const auto first = *fake.queue->submit(fake.job());
  gate.await(1);
  EXPECT_FALSE(first->run_here()) << "another thread runs it";
  const auto second = *fake.queue->submit(fake.job());
  EXPECT_FALSE(second->run_here()) << "its core is busy";
  gate.open();
  ASSERT_TRUE(second->wait());
  device::Submission limited = fake.job();
  limited.deadline = real_clock()->now() + std::chrono::hours(1);
  const auto third = *fake.queue->submit(limited);
  EXPECT_FALSE(third->run_here()) << "this thread could not leave it";
  EXPECT_TRUE(third->wait());
}

TEST(LaneScheduler, JobsOfOneCoreStartInOrderAndHigherPriorityFirst) {
  FakeDevice fake(1);
  Gate gate;
  fake.state->hold_runs_at(gate);
  auto first = *fake.queue->submit(fake.job());
  gate.await(1);
  std::vector<std::shared_ptr<device::Completion>> jobs;
  for (const int priority : {0, 0, 5, -3, 5}) {
    device::Submission job = fake.job();
    job.priority = priority;
    jobs.push_back(*fake.queue->submit(job));
  }
  EXPECT_EQ(fake.queue->depth(), 6U);
  gate.open();
  ASSERT_TRUE(fake.queue->drain());
  std::vector<std::size_t> order = {0, 1, 2, 3, 4};
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return jobs[a]->record().started < jobs[b]->record().started;
  });
  EXPECT_THAT(order, ::testing::ElementsAre(2, 4, 0, 1, 3));
}

TEST(LaneScheduler, JobOnSeveralCoresTakesThemTogether) {
  FakeDevice fake(3);
  Gate gate;
  fake.state->before_run = [&](std::uint64_t bits) {
    if (bits == 1) gate.pass();
    return Status();
  };
  auto holder = *fake.queue->submit(fake.job(device::CoreSet::of({0})));
  gate.await(1);
  auto pair = *fake.queue->submit(fake.job(device::CoreSet::of({0, 1})));
  EXPECT_FALSE(pair->done());
  // Core 1 is reserved for the pair; core 2 is not concerned.
  auto beside = *fake.queue->submit(fake.job(device::CoreSet::of({2})));
  ASSERT_TRUE(beside->wait());
  auto after_it = *fake.queue->submit(fake.job(device::CoreSet::of({1})));
  EXPECT_FALSE(after_it->done());
  gate.open();
  ASSERT_TRUE(after_it->wait());
  EXPECT_EQ(pair->record().core_bits, 3U);
  EXPECT_LE(pair->record().ended, after_it->record().started);
  EXPECT_FALSE(fake.state->overlap);
}

TEST(LaneScheduler, AllCoresAreTakenByTheCallersOwnRunAndByAJob) {
  FakeDevice fake(3);
  device::JobRecord record;
  ASSERT_TRUE(fake.queue->run(fake.job(device::CoreSet::platform()), &record).ok());
  EXPECT_EQ(record.core_bits, 7U);
  const auto job = *fake.queue->submit(fake.job(device::CoreSet::platform()));
  ASSERT_TRUE(job->wait());
  EXPECT_EQ(job->record().core_bits, 7U);
}

TEST(LaneScheduler, TheEngineIsToldWhatAJobAsksForWhenItChanges) {
  FakeDevice fake(1);
  std::vector<device::CoreSet> told;
  fake.state->on_cores = [&](const device::CoreSet& cores) { told.push_back(cores); };
  device::Submission job = fake.job();
  for (const device::CoreSet& asked : {device::CoreSet::any(), device::CoreSet::of({0}),
                                       device::CoreSet::of({0}), device::CoreSet::platform()}) {
    job.cores = asked;
    ASSERT_TRUE(fake.queue->run(job).ok());
  }
  EXPECT_THAT(told, ::testing::ElementsAre(device::CoreSet::of({0}), device::CoreSet::platform()));
}

TEST(LaneScheduler, TheEngineIsToldTheGrantWhileCoresAreHeldExclusively) {
  FakeDevice fake(3);
  const auto other = *fake.device->prepare({}, {});
  auto residence =
      other->make_resident(device::CoreSet::of({0}), device::Residency::kExclusive).value();
  std::vector<device::CoreSet> told;
  fake.state->on_cores = [&](const device::CoreSet& cores) { told.push_back(cores); };
  const device::Submission job = fake.job();
  ASSERT_TRUE(fake.queue->run(job).ok());
  ASSERT_TRUE((*fake.queue->submit(job))->wait_released());
  EXPECT_THAT(told, ::testing::ElementsAre(device::CoreSet::of({1})));
  residence.reset();
  ASSERT_TRUE(fake.queue->run(job).ok());
  EXPECT_EQ(told.back(), device::CoreSet::any());
}

TEST(LaneScheduler, BindingsInUseAreBusyUntilReleased) {
  FakeDevice fake(2);
  Gate gate;
  fake.state->hold_runs_at(gate);
  const device::Submission job = fake.job();
  auto completion = *fake.queue->submit(job);
  gate.await(1);
  EXPECT_EQ(fake.queue->submit(job).error().code(), Code::kBusy);
  EXPECT_EQ(job.bindings->set_input(0, {}).code(), Code::kBusy);
  EXPECT_EQ(job.bindings->output(0).error().code(), Code::kBusy);
  gate.open();
  ASSERT_TRUE(completion->wait_released());
  EXPECT_TRUE(job.bindings->set_input(0, {}).ok());
}

TEST(LaneScheduler, CancelRemovesWhatHasNotStarted) {
  FakeDevice fake(1);
  Gate gate;
  fake.state->hold_runs_at(gate);
  auto running = *fake.queue->submit(fake.job());
  gate.await(1);
  auto waiting = *fake.queue->submit(fake.job());
  EXPECT_FALSE(running->cancel());
  EXPECT_TRUE(waiting->cancel());
  EXPECT_FALSE(waiting->cancel());
  EXPECT_EQ(waiting->status().code(), Code::kCancelled);
  EXPECT_EQ(waiting->record().core_bits, 0U);
  EXPECT_EQ(running->status().code(), Code::kWrongState);
  gate.open();
  ASSERT_TRUE(running->wait());
  EXPECT_EQ(fake.state->runs, 1);
}

TEST(LaneScheduler, CallbackRunsOnceAndMayUseTheDevice) {
  FakeDevice fake(1);
  std::atomic<int> calls{0};
  device::Fence chained;
  auto completion = *fake.queue->submit(fake.job());
  completion->on_done([&](device::Completion& done) {
    ++calls;
    EXPECT_TRUE(done.status().ok());
    // The only core: nothing of the scheduler may wait for this callback.
    EXPECT_TRUE(fake.queue->run(fake.job()).ok());
    auto timed = fake.job();
    timed.deadline = fake.device->clock()->now() + std::chrono::hours(1);
    EXPECT_TRUE(fake.queue->run(timed).ok());
    auto next = *fake.queue->submit(fake.job());
    EXPECT_TRUE(next->wait());
    next->on_done([&](device::Completion&) { throw std::runtime_error("dropped"); });
    chained.signal();
  });
  ASSERT_TRUE(chained.wait());
  ASSERT_TRUE(completion->wait());
  EXPECT_EQ(calls, 1);
}

TEST(LaneScheduler, FencesOrderJobsOfDifferentCores) {
  FakeDevice fake(3);
  auto fence = std::make_shared<device::Fence>();
  device::Submission second = fake.job(device::CoreSet::of({1}));
  second.wait = {fence};
  auto later = *fake.queue->submit(second);
  EXPECT_FALSE(later->done());
  device::Submission first = fake.job(device::CoreSet::of({0}));
  first.signal = {fence};
  ASSERT_TRUE(fake.queue->run(first).ok());
  ASSERT_TRUE(later->wait());
  EXPECT_TRUE(later->status().ok());
  EXPECT_TRUE(fence->status().ok());
}

TEST(LaneScheduler, FailedFenceFailsTheJob) {
  FakeDevice fake;
  auto fence = std::make_shared<device::Fence>();
  auto passed = std::make_shared<device::Fence>();
  passed->signal();
  device::Submission job = fake.job();
  job.wait = {passed, fence};
  auto completion = *fake.queue->submit(job);
  fence->signal(error(Code::kIo, "lost"));
  ASSERT_TRUE(completion->wait());
  EXPECT_EQ(completion->status().code(), Code::kIo);
  EXPECT_EQ(completion->status().cause().message(), "lost");
  EXPECT_EQ(fake.state->runs, 0);
}

/// A fence whose descriptor another process would signal.
struct Imported {
  void signal() const { EXPECT_EQ(eventfd_write(fd.get(), 1), 0); }
  void fail() { writer = UniqueFd(); }

  static Imported event() {
    Imported made{UniqueFd(eventfd(0, EFD_CLOEXEC)), {}, {}};
    made.fence = *device::import_fence_fd(made.fd.get());
    return made;
  }
  static Imported pipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    Imported made{UniqueFd(ends[0]), UniqueFd(ends[1]), {}};
    made.fence = *device::import_fence_fd(made.fd.get());
    return made;
  }
  UniqueFd fd;
  UniqueFd writer;
  std::shared_ptr<device::Fence> fence;
};

/// The thread that signals all imported fences.
std::thread::id watcher_of_fences() {
  const Imported any = Imported::event();
  std::thread::id watcher;
  device::Fence noted;
  any.fence->on_signal([&](const Status&) {
    watcher = std::this_thread::get_id();
    noted.signal();
  });
  any.signal();
  EXPECT_TRUE(noted.wait());
  return watcher;
}

TEST(LaneScheduler, CallbacksLeaveTheThreadThatSignalsImportedFencesAlone) {
  const std::thread::id watcher = watcher_of_fences();
  for (const bool event_driven : {false, true}) {
    for (const bool fails : {false, true}) {
      FakeDevice fake(1, {}, event_driven);
      Imported given = Imported::pipe();
      auto job = fake.job();
      job.wait = {given.fence};
      const auto completion = *fake.queue->submit(job);
      std::thread::id called_in;
      device::Fence called;
      completion->on_done([&](device::Completion&) {
        called_in = std::this_thread::get_id();
        called.signal();
      });
      if (fails)
        given.fail();
      else
        EXPECT_EQ(write(given.writer.get(), "x", 1), 1);
      ASSERT_TRUE(completion->wait() && called.wait());
      EXPECT_EQ(completion->status().ok(), !fails);
      EXPECT_NE(called_in, watcher) << event_driven << fails;
    }
  }
}

TEST(LaneScheduler, ACallbackMayWaitForWhatAnImportedFenceLeadsTo) {
  for (const bool event_driven : {false, true}) {
    FakeDevice fake(2, {}, event_driven);
    const Imported first = Imported::event();
    const Imported second = Imported::event();
    const auto done = std::make_shared<device::Fence>();
    auto job = fake.job();
    job.wait = {second.fence};
    job.signal = {done};
    const auto later = *fake.queue->submit(job);
    job = fake.job();
    job.wait = {first.fence};
    const auto completion = *fake.queue->submit(job);
    device::Fence called;
    completion->on_done([&](device::Completion&) {
      second.signal();
      EXPECT_TRUE(second.fence->wait() && later->wait() && done->wait());
      called.signal();
    });
    first.signal();
    EXPECT_TRUE(called.wait());
  }
}

TEST(LaneScheduler, ExclusiveCoresKeepOthersOff) {
  FakeDevice fake(2);
  auto other = *fake.device->prepare({}, {});
  auto residence =
      fake.executable->make_resident(device::CoreSet::of({0}), device::Residency::kExclusive);
  ASSERT_TRUE(residence.has_value());
  EXPECT_EQ(
      other->make_resident(device::CoreSet::of({0}), device::Residency::kShared).error().code(),
      Code::kOutOfCores);
  device::Submission foreign = fake.job();
  foreign.executable = other;
  foreign.bindings = *other->new_bindings();
  foreign.cores = device::CoreSet::of({0});
  EXPECT_EQ(fake.queue->submit(foreign).error().code(), Code::kOutOfCores);
  foreign.cores = device::CoreSet::any();
  for (int i = 0; i < 4; ++i) {
    device::JobRecord record;
    ASSERT_TRUE(fake.queue->run(foreign, &record).ok());
    EXPECT_EQ(record.core_bits, 2U);
  }
  device::JobRecord mine;
  ASSERT_TRUE(fake.queue->run(fake.job(device::CoreSet::of({0})), &mine).ok());
  residence->reset();
  foreign.cores = device::CoreSet::of({0});
  EXPECT_TRUE(fake.queue->run(foreign).ok());
}

TEST(LaneScheduler, TraceKeepsTheLastRecordsOfEachCore) {
  FakeDevice fake(2);
  EXPECT_EQ(fake.device->read_trace().error().code(), Code::kWrongState);
  ASSERT_TRUE(fake.device->set_trace(2).ok());
  for (int i = 0; i < 5; ++i) {
    device::Submission job = fake.job(device::CoreSet::of({0}));
    job.tag = static_cast<std::uint64_t>(i);
    ASSERT_TRUE(fake.queue->run(job).ok());
  }
  ASSERT_TRUE(fake.queue->run(fake.job(device::CoreSet::of({0, 1}))).ok());
  const auto trace = *fake.device->read_trace();
  ASSERT_EQ(trace.size(), 2U);
  EXPECT_EQ(trace[0].tag, 4U);
  EXPECT_EQ(trace[1].core_bits, 3U);
  ASSERT_TRUE(fake.device->set_trace(0).ok());
  ASSERT_TRUE(fake.queue->run(fake.job()).ok());
  EXPECT_TRUE(fake.device->read_trace()->empty());
}

/// Always grants core 1 to the last job; wrong grants after `sane` turns off.
class LastFirst final : public device::Arbiter {
 public:
  explicit LastFirst(bool sane) : sane_(sane) {}
  std::optional<device::Grant> pick(std::span<const device::WaitingJob> waiting,
                                    std::span<const device::CoreState> cores,
                                    TimePoint) const override {
    if (!sane_) return device::Grant{waiting.size() + 5, 1};
    if (cores[1].busy) return std::nullopt;
    return device::Grant{waiting.size() - 1, 2};
  }

 private:
  const bool sane_;
};

TEST(LaneScheduler, ArbiterDecidesAndIsNotTrusted) {
  FakeDevice fake(2);
  ASSERT_TRUE(fake.device->set_arbiter(std::make_shared<LastFirst>(true)).ok());
  device::JobRecord record;
  ASSERT_TRUE(fake.queue->run(fake.job(), &record).ok());
  EXPECT_EQ(record.core_bits, 2U);
  log::set_level(log::Level::kOff);
  ASSERT_TRUE(fake.device->set_arbiter(std::make_shared<LastFirst>(false)).ok());
  ASSERT_TRUE(fake.queue->run(fake.job(), &record).ok());
  EXPECT_EQ(record.core_bits, 1U);
  log::set_level(log::Level::kWarn);
}

TEST(LaneScheduler, ForeignObjectsAreRefused) {
  FakeDevice one;
  FakeDevice two;
  EXPECT_EQ(one.queue->run(two.job()).code(), Code::kInvalidArgument);
  device::Submission mixed = one.job();
  mixed.bindings = *(*one.device->prepare({}, {}))->new_bindings();
  EXPECT_EQ(one.queue->run(mixed).code(), Code::kInvalidArgument);
  EXPECT_EQ(one.queue->run({}).code(), Code::kInvalidArgument);
  EXPECT_EQ(one.queue->run(one.job(device::CoreSet::of({3}))).code(), Code::kInvalidArgument);
}

TEST(LaneScheduler, DeviceMayBeDroppedInItsOwnCallback) {
  auto done = std::make_shared<device::Fence>();
  for (int i = 0; i < 50; ++i) {
    auto fake = std::make_unique<FakeDevice>();
    Gate gate;
    fake->state->hold_runs_at(gate);
    auto finished = std::make_shared<device::Fence>();
    auto completion = *fake->queue->submit(fake->job());
    gate.await(1);
    completion->on_done([finished](device::Completion&) { finished->signal(); });
    completion.reset();
    auto state = fake->state;  // Outlives the last run.
    fake.reset();
    gate.open();
    ASSERT_TRUE(finished->wait());
  }
}

TEST(LaneScheduler, CountersAndFiguresFollow) {
  FakeDevice fake(2);
  EXPECT_EQ(fake.device->memory().weights, 1000U);
  {
    const device::Submission job = fake.job();
    ASSERT_TRUE(fake.queue->run(job).ok());
    EXPECT_EQ(fake.device->memory().buffers, 32U);
    EXPECT_EQ(fake.executable->memory().buffers, 32U);
  }
  EXPECT_EQ(fake.device->memory().buffers, 0U);
  {
    auto buffer = *fake.device->create_buffer(100, {});
    EXPECT_EQ(fake.device->memory().buffers, 100U);
  }
  EXPECT_EQ(fake.device->memory().buffers, 0U);
  fake.state->before_run = [](std::uint64_t) { return error(Code::kEngineFailed, "no"); };
  EXPECT_EQ(fake.queue->run(fake.job()).code(), Code::kEngineFailed);
  const device::DeviceCounters counters = fake.device->counters();
  EXPECT_EQ(counters.submitted, 2U);
  EXPECT_EQ(counters.completed, 2U);
  EXPECT_EQ(counters.failed, 1U);
  EXPECT_GT(counters.busy[0].count(), 0);
}

TEST(LaneScheduler, ThrowingEngineIsAFailedJob) {
  FakeDevice fake;
  fake.state->before_run = [](std::uint64_t) -> Status { throw std::runtime_error("bang"); };
  const Status status = fake.queue->run(fake.job());
  EXPECT_EQ(status.code(), Code::kEngineFailed);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("bang"));
}

}  // namespace
}  // namespace corelane::lanes
