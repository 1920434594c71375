// Deadlines, resets and injected faults.
#include <cstdlib>

#include "conformance_base.h"

namespace corelane::conformance {
namespace {

class Failure : public Conformance {};

TEST_F(Failure, RunningJobTimesOutAtItsDeadline) {
  EventLog events;
  ASSERT_TRUE(events.watch(*device_).ok());
  slow_ = prepare(driver().image_slow());
  Submission made = job_of(slow_, CoreSet::of({0}));
  const TensorDesc& desc = slow_->outputs()[0];
  auto memory = std::make_unique<std::vector<char>>(*desc.bytes(), 'm');
  ASSERT_TRUE(
      made.bindings->set_output(0, {memory->data(), memory->size(), desc.shape, nullptr}).ok());
  made.deadline = now() + milliseconds(2);
  auto completion = submit(made);
  ASSERT_TRUE(completion->wait());
  for (const char c : *memory) ASSERT_EQ(c, 'm') << "an abandoned job wrote to user memory";
  memory.reset();  // A sanitizer sees it if the engine still writes here.
  EXPECT_EQ(completion->status().code(), Code::kTimeout);
  EXPECT_GE(completion->record().ended, made.deadline);
  // Others go on, on the same core too.
  const Submission next = job(CoreSet::of({0}));
  ASSERT_TRUE(queue_->run(next).ok());
  expect_result(next);
  ASSERT_TRUE(completion->wait_released());
  EXPECT_EQ(completion->status().code(), Code::kTimeout);
  ASSERT_TRUE(made.bindings->set_output(0, {}).ok());
  if (completion->record().core_bits != 0) {  // It had started.
    ASSERT_EQ(events.all().size(), 1U);
    EXPECT_EQ(events.all()[0].kind, device::EventKind::kCoreReset);
    EXPECT_EQ(events.all()[0].core_bits, 1U);
    EXPECT_EQ(device_->counters().abandoned, 1U);
  }
}

TEST_F(Failure, QueuedJobTimesOutWithoutStarting) {
  auto blocker = occupy(CoreSet::of({0}));
  Submission made = job(CoreSet::of({0}));
  made.deadline = now() + milliseconds(1);
  auto completion = submit(made);
  ASSERT_TRUE(completion->wait_released());
  EXPECT_EQ(completion->status().code(), Code::kTimeout);
  EXPECT_EQ(completion->record().core_bits, 0U);
  ASSERT_TRUE(blocker->wait());
  EXPECT_TRUE(blocker->status().ok());
}

TEST_F(Failure, PassedDeadlineIsATimeoutAtOnce) {
  Submission made = job();
  made.deadline = now() - milliseconds(1);
  EXPECT_EQ(queue_->run(made).code(), Code::kTimeout);
  made.deadline = kNever;
  EXPECT_TRUE(queue_->run(made).ok());
}

/// A session runs short work of a device that says so in a thread that must not hang.
TEST_F(Failure, JobsMayHangWhereFaultsAreInjected) {
  EXPECT_EQ(device_->info().capabilities.bounded_jobs, device_->info().kind == "virtual");
  open_with_faults({});
  EXPECT_FALSE(device_->info().capabilities.bounded_jobs);
}

TEST_F(Failure, JobInTimeCopiesItsResultToUserMemory) {
  Submission made = job();
  std::vector<float> x(kElements, 2);
  std::vector<float> y(kElements, -7);
  const std::size_t size = kElements * sizeof(float);
  ASSERT_TRUE(made.bindings->set_input(0, {x.data(), size, {1, kElements}, nullptr}).ok());
  ASSERT_TRUE(made.bindings->set_output(0, {y.data(), size, {1, kElements}, nullptr}).ok());
  for (const bool direct : {false, true, false}) {
    made.deadline = now() + hours(1);
    made.direct_user_memory = direct;
    x[5] += 1;
    ASSERT_TRUE(queue_->run(made).ok());
    EXPECT_EQ(y[5], driver().expected(x[5]));
  }
}

TEST_F(Failure, ResetAbandonsWhatRunsAndNothingElse) {
  EventLog events;
  ASSERT_TRUE(events.watch(*device_).ok());
  open_with_faults({Fault::kHang});
  ASSERT_TRUE(events.watch(*device_).ok());
  Submission made = job(CoreSet::of({0}));
  auto stuck = submit(made);
  faults_->await(1);
  auto queued = submit(job(CoreSet::of({0})));
  const std::size_t last = cores() - 1;
  auto beside = cores() > 1 ? submit(job(CoreSet::of({last}))) : nullptr;
  if (beside != nullptr) {
    ASSERT_TRUE(beside->wait());
    EXPECT_TRUE(beside->status().ok());
  }
  EXPECT_FALSE(stuck->done());
  ASSERT_TRUE(device_->reset(CoreSet::of({0})).ok());
  ASSERT_TRUE(stuck->wait_released());
  EXPECT_EQ(stuck->status().code(), Code::kDeviceReset);
  ASSERT_TRUE(queued->wait());
  EXPECT_TRUE(queued->status().ok());
  ASSERT_EQ(events.all().size(), 1U);
  EXPECT_EQ(device_->reset(CoreSet::of({cores()})).code(), Code::kInvalidArgument);
}

TEST_F(Failure, LossEndsEveryJobAndTheDeviceComesBack) {
  // A single core has only the job that is struck.
  const bool pair = cores() > 1;
  open_with_faults(pair ? std::vector{Fault::kNone, Fault::kLost} : std::vector{Fault::kLost});
  EventLog events;
  ASSERT_TRUE(events.watch(*device_).ok());
  std::vector<std::shared_ptr<Completion>> jobs;
  if (pair) jobs.push_back(occupy(CoreSet::of({1})));
  if (pair) faults_->await(1);
  Submission blocked = job();
  auto fence = std::make_shared<Fence>();
  auto signal = std::make_shared<Fence>();
  blocked.wait = {fence};
  blocked.signal = {signal};
  jobs.push_back(submit(blocked));
  jobs.push_back(submit(job(CoreSet::of({0}))));
  for (const auto& completion : jobs) {
    ASSERT_TRUE(completion->wait());
    EXPECT_EQ(completion->status().code(), Code::kDeviceLost) << completion->status().to_string();
    EXPECT_TRUE(completion->wait_released());
  }
  EXPECT_TRUE(signal->wait());
  EXPECT_EQ(signal->status().code(), Code::kDeviceLost);
  fence->signal();
  // Lost or back, what was prepared before does not run again.
  Submission old = job();
  EXPECT_EQ(queue_->submit(old).error().code(), Code::kDeviceLost);
  while (events.all().size() < 2) std::this_thread::yield();
  EXPECT_EQ(events.all()[0].kind, device::EventKind::kLost);
  EXPECT_EQ(events.all()[1].kind, device::EventKind::kBack);
  EXPECT_FALSE(events.lines().empty());
  EXPECT_EQ(device_->health(), device::Health::kGood);
  const Status again = queue_->run(old);
  EXPECT_EQ(again.code(), Code::kDeviceLost);
  EXPECT_NE(again.message().find("prepare again"), std::string::npos);
  executable_ = prepare(driver().image_elementwise(kElements));
  const Submission next = job();
  ASSERT_TRUE(queue_->run(next).ok());
  expect_result(next);
}

TEST_F(Failure, LossStrikesABlockingRun) {
  open_with_faults({Fault::kLost});
  EXPECT_EQ(queue_->run(job()).code(), Code::kDeviceLost);
}

TEST_F(Failure, HangEndsAtTheDeadline) {
  open_with_faults({Fault::kHang, Fault::kNone, Fault::kHang});
  for (int i = 0; i < 2; ++i) {
    const Submission hangs = job(CoreSet::of({0}));
    // On a loaded machine a job may miss a short deadline before it starts.
    for (Duration allowed = milliseconds(3);; allowed *= 2) {
      Submission made = hangs;
      made.deadline = now() + allowed;
      auto completion = submit(made);
      ASSERT_TRUE(completion->wait_released());
      ASSERT_EQ(completion->status().code(), Code::kTimeout);
      EXPECT_GE(completion->record().ended, made.deadline);
      if (completion->record().core_bits != 0) break;
    }
    const Submission next = job(CoreSet::of({0}));
    ASSERT_TRUE(queue_->run(next).ok());
    expect_result(next);
  }
  EXPECT_EQ(device_->health(), device::Health::kGood);
}

TEST_F(Failure, CrashFailsTheJobAndResetsTheCore) {
  open_with_faults({Fault::kCrash, Fault::kNone, Fault::kCrash});
  EventLog events;
  ASSERT_TRUE(events.watch(*device_).ok());
  EXPECT_EQ(queue_->run(job(CoreSet::of({0}))).code(), Code::kDeviceReset);
  EXPECT_TRUE(queue_->run(job(CoreSet::of({0}))).ok());
  auto completion = submit(job(CoreSet::of({0})));
  ASSERT_TRUE(completion->wait());
  EXPECT_EQ(completion->status().code(), Code::kDeviceReset);
  const Submission next = job(CoreSet::of({0}));
  ASSERT_TRUE(queue_->run(next).ok());
  expect_result(next);
  EXPECT_EQ(device_->counters().resets, 2U);
  while (events.all().size() < 2) std::this_thread::yield();
  for (const device::Event& event : events.all()) {
    EXPECT_EQ(event.kind, device::EventKind::kCoreReset);
    EXPECT_EQ(event.core_bits, 1U);
  }
}

TEST_F(Failure, SlowJobIsRightAndTakesLonger) {
  open_with_faults({Fault::kSlow});
  const Submission made = job();
  JobRecord record;
  ASSERT_TRUE(queue_->run(made, &record).ok());
  EXPECT_GE(record.ended - record.started, faults_->slow_by());
  expect_result(made);
}

/// One entry of CORELANE_FAULTS per run of the test.
class Faults : public testing::TestWithParam<const char*> {};

/// What one thread saw of its jobs.
struct Seen {
  std::map<Code, int> codes;
  int wrong = 0;
  int early = 0;
};

class FaultyRounds : public Conformance {
 public:
  void TestBody() override {}
  /// Jobs of all kinds, each with a deadline, until `rounds`; each must complete exactly once.
  void work(int rounds, float seed, Seen& seen) {
    std::atomic<int> called{0};
    std::atomic<int> submitted{0};
    for (int i = 0; i < rounds; ++i) {
      auto bindings = executable_->new_bindings();
      if (!bindings) {
        ++seen.codes[bindings.error().code()];
        continue;
      }
      Submission made;
      made.executable = executable_;
      made.bindings = *bindings;
      const float first = seed + static_cast<float>(i % 50);
      fill(made, first);
      made.deadline = now() + milliseconds(i % 2 == 0 ? 150 : 250);
      auto completion = queue_->submit(made);
      if (!completion) {
        ++seen.codes[completion.error().code()];
        continue;
      }
      ++submitted;
      (*completion)->on_done([&](Completion&) { ++called; });
      EXPECT_TRUE((*completion)->wait_released());
      account(**completion, made, first, seen);
    }
    while (called != submitted) std::this_thread::yield();
  }

  void account(const Completion& completion, const Submission& made, float first, Seen& seen) {
    const Status status = completion.status();
    ++seen.codes[status.code()];
    if (status.code() == Code::kTimeout && completion.record().ended < made.deadline) ++seen.early;
    if (!status.ok()) return;
    const auto output = made.bindings->output(0);
    if (!output || output->size != kElements * sizeof(float)) {
      ++seen.wrong;
      return;
    }
    const auto* y = static_cast<const float*>(output->data);
    for (std::size_t i = 0; i < kElements; ++i)
      if (y[i] != driver().expected(first + static_cast<float>(i))) {
        ++seen.wrong;
        return;
      }
  }

  using Conformance::device_;
  using Conformance::queue_;
  void start() { SetUp(); }
};

TEST_P(Faults, KeepTheInvariants) {
  const std::string faults = GetParam();
  setenv("CORELANE_FAULTS", faults.c_str(), 1);
  FaultyRounds rounds;
  rounds.start();
  unsetenv("CORELANE_FAULTS");
  constexpr int kThreads = 4;
  constexpr int kRounds = 150;
  Seen seen[kThreads];
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] { rounds.work(kRounds, static_cast<float>(100 * t), seen[t]); });
  for (std::thread& thread : threads) thread.join();
  Seen sum;
  for (const Seen& one : seen) {
    for (const auto& [code, count] : one.codes) sum.codes[code] += count;
    sum.wrong += one.wrong;
    sum.early += one.early;
  }
  int total = 0;
  for (const auto& [code, count] : sum.codes) {
    total += count;
    EXPECT_TRUE(code == Code::kOk || code == Code::kTimeout || code == Code::kDeviceReset ||
                code == Code::kOutOfMemory || code == Code::kBadResult)
        << code_name(code);
  }
  EXPECT_EQ(total, kThreads * kRounds);
  EXPECT_EQ(sum.early, 0);
  EXPECT_GE(sum.codes[Code::kOk], total / 2);
  if (faults.find("flip") != std::string::npos) {
    EXPECT_GT(sum.wrong, 0) << "the faults do not strike";
    EXPECT_LT(sum.wrong, total / 5);
  } else {
    EXPECT_EQ(sum.wrong, 0);
  }
  if (faults.find("crash") != std::string::npos) EXPECT_GT(sum.codes[Code::kDeviceReset], 0);
  if (faults.find("hang") != std::string::npos) EXPECT_GT(sum.codes[Code::kTimeout], 0);
  if (faults.find("short") != std::string::npos)
    EXPECT_GT(sum.codes[Code::kBadResult], 0);
  else
    EXPECT_EQ(sum.codes[Code::kBadResult], 0);
  if (faults.find("oom") != std::string::npos) EXPECT_GT(sum.codes[Code::kOutOfMemory], 0);
  EXPECT_TRUE(rounds.queue_->drain());
  EXPECT_EQ(rounds.device_->health(), device::Health::kGood);
}

INSTANTIATE_TEST_SUITE_P(
    OnePercent, Faults,
    testing::Values("hang=0.01,seed=3", "crash=0.01,seed=3", "slow=0.01,slow_ms=1,seed=3",
                    "flip=0.02,seed=3", "short=0.01,seed=3", "oom=0.01,seed=3",
                    "hang=0.01,crash=0.01,slow=0.01,slow_ms=1,flip=0.01,short=0.01,oom=0.01,"
                    "seed=5"));

}  // namespace
}  // namespace corelane::conformance
