#include "lanes/laned_residence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <numeric>
#include <thread>

#include "corelane/device/registry.h"
#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

using device::CoreSet;
using device::Residency;
using ::testing::HasSubstr;

/// A fake device whose runs say in which thread they are.
struct ThreadBench {
  ThreadBench() {
    fake.state->before_run = [this](std::uint64_t) {
      in_caller = std::this_thread::get_id() == caller;
      return Status();
    };
  }
  device::JobRecord run(const device::Submission& job) {
    in_caller = false;
    device::JobRecord record;
    EXPECT_TRUE(fake.queue->run(job, &record).ok());
    return record;
  }
  device::Submission job_of(const std::shared_ptr<device::Executable>& executable,
                            CoreSet cores = {}) const {
    device::Submission job = fake.job(cores);
    job.executable = executable;
    job.bindings = *executable->new_bindings();
    return job;
  }
  FakeDevice fake{3};
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> in_caller{false};
};

TEST(LanedResidence, RunsStayInTheirCallersThread) {
  ThreadBench bench;
  const auto other = *bench.fake.device->prepare({}, {});
  const auto residence =
      bench.fake.executable->make_resident(CoreSet::of({1}), Residency::kExclusive);
  ASSERT_TRUE(residence.has_value());
  EXPECT_EQ(bench.run(bench.fake.job()).core_bits, 2U);
  EXPECT_TRUE(bench.in_caller);
  EXPECT_EQ(bench.run(bench.fake.job(CoreSet::of({0}))).core_bits, 1U);
  EXPECT_TRUE(bench.in_caller);
  for (const CoreSet& cores : {CoreSet::any(), CoreSet::of({2}), CoreSet::platform()}) {
    EXPECT_EQ(bench.run(bench.job_of(other, cores)).core_bits & 2U, 0U);
    EXPECT_TRUE(bench.in_caller) << cores.to_string();
  }
}

/// Grants the last core, or nothing.
class LastCore final : public device::Arbiter {
 public:
  std::optional<device::Grant> pick(std::span<const device::WaitingJob>,
                                    std::span<const device::CoreState> cores,
                                    TimePoint) const override {
    if (cores.back().busy || !cores.back().usable) return std::nullopt;
    return device::Grant{0, std::uint64_t{1} << (cores.size() - 1)};
  }
};

TEST(LanedResidence, RunsUnderAnotherArbiterStayInTheirCallersThreadToo) {
  ThreadBench bench;
  ASSERT_TRUE(bench.fake.device->set_arbiter(std::make_shared<LastCore>()).ok());
  EXPECT_EQ(bench.run(bench.fake.job()).core_bits, 4U);
  EXPECT_TRUE(bench.in_caller);
}

TEST(LanedResidence, WaitingJobsOfTheOwnerTakeItsCoreFirst) {
  FakeDevice fake(3);
  Gate gate;
  fake.state->hold_runs_at(gate);
  const auto residence = fake.executable->make_resident(CoreSet::of({1}), Residency::kExclusive);
  const auto blocker = *fake.queue->submit(fake.job(CoreSet::first(3)));
  gate.await(1);
  const auto waiting = *fake.queue->submit(fake.job());
  gate.open();
  ASSERT_TRUE(blocker->wait() && waiting->wait());
  EXPECT_EQ(waiting->record().core_bits, 2U);
}

TEST(LanedResidence, GivenBackCoresStartWhoWaitsForThem) {
  FakeDevice fake(1);
  Gate gate;
  fake.state->hold_runs_at(gate);
  auto residence = *fake.executable->make_resident(CoreSet::platform(), Residency::kExclusive);
  const auto other = *fake.device->prepare({}, {});
  device::Submission job = fake.job();
  job.executable = other;
  job.bindings = *other->new_bindings();
  EXPECT_EQ(fake.queue->submit(job).error().code(), Code::kOutOfCores);
  residence.reset();
  gate.open();
  EXPECT_TRUE((*fake.queue->submit(job))->wait());
}

/// Devices that take leases in a folder of this test's own.
class LeaseTest : public ::testing::Test {
 protected:
  static constexpr const char* kText = "null:generic:2?lease=1";
  LeaseTest() {
    std::string pattern = ::testing::TempDir() + "corelane-residence-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    setenv("CORELANE_RUN_DIR", folder_.c_str(), 1);
  }
  ~LeaseTest() override {
    unsetenv("CORELANE_RUN_DIR");
    std::filesystem::remove_all(folder_);
  }
  static std::shared_ptr<device::Executable> prepare(const char* text = kText) {
    device::OpenOptions own;
    own.own_instance = true;
    return prepare(*device::open_device(text, own));
  }
  static std::shared_ptr<device::Executable> prepare(
      const std::shared_ptr<device::Device>& device) {
    device::Image image;
    image.kind = "null";
    image.bytes = as_byte_span("input x f32 1,4\n");
    return *device->prepare(image, {});
  }
  /// A process that does `f`, says so, and stays.
  template <class F>
  static pid_t start(F&& f) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      [[maybe_unused]] const auto held = f();
      const char byte = 'y';
      if (write(ready[1], &byte, 1) != 1) _exit(2);
      for (;;) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
  }
  static void end(pid_t child) {
    EXPECT_EQ(kill(child, SIGKILL), 0);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  }
  std::string folder_;
};

TEST_F(LeaseTest, AnotherProcessHasItsCoresUntilItDies) {
  const pid_t child =
      start([] { return *prepare()->make_resident(CoreSet::of({0}), Residency::kExclusive); });
  const auto executable = prepare();
  const auto refused = executable->make_resident(CoreSet::of({0}), Residency::kShared);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kOutOfCores);
  EXPECT_THAT(refused.error().message(), HasSubstr("by process " + std::to_string(child)));
  // "Any" and the platform's choice take what is left.
  auto any = executable->make_resident(CoreSet::any(), Residency::kExclusive);
  ASSERT_TRUE(any.has_value()) << any.error().to_string();
  EXPECT_EQ((*any)->cores(), CoreSet::of({1}));
  any->reset();
  EXPECT_EQ((*executable->make_resident(CoreSet::platform(), Residency::kShared))->cores(),
            CoreSet::of({1}));
  const auto two = executable->make_resident(CoreSet::any(2), Residency::kExclusive);
  ASSERT_FALSE(two.has_value());
  EXPECT_THAT(two.error().message(), HasSubstr("by process " + std::to_string(child)));
  end(child);
  EXPECT_TRUE(executable->make_resident(CoreSet::first(2), Residency::kExclusive).has_value());
}

TEST_F(LeaseTest, ResidencesOfOneDeviceShareTheLeaseOfACore) {
  const auto executable = prepare();
  auto one = executable->make_resident(CoreSet::of({0}), Residency::kShared);
  auto two = executable->make_resident(CoreSet::first(2), Residency::kShared);
  ASSERT_TRUE(one.has_value() && two.has_value());
  // Another instance is another owner, in this process too.
  const auto other = prepare();
  EXPECT_EQ(other->make_resident(CoreSet::of({0}), Residency::kShared).error().code(),
            Code::kOutOfCores);
  two->reset();
  EXPECT_TRUE(other->make_resident(CoreSet::of({1}), Residency::kShared).has_value());
  EXPECT_FALSE(other->make_resident(CoreSet::of({0}), Residency::kShared).has_value());
  one->reset();
  EXPECT_TRUE(other->make_resident(CoreSet::of({0}), Residency::kShared).has_value());
  // Without the option nothing is leased.
  const auto holds = executable->make_resident(CoreSet::first(2), Residency::kExclusive);
  EXPECT_TRUE(prepare("null:generic:2")
                  ->make_resident(CoreSet::first(2), Residency::kExclusive)
                  .has_value());
}

TEST_F(LeaseTest, TheFiguresOfLeasedCoresAreToldToOtherProcesses) {
  const auto clock = std::make_shared<VirtualClock>();
  device::OpenOptions own;
  own.own_instance = true;
  own.clock = clock;
  const auto device = *device::open_device("null:generic:2?lease=1&a=3ms", own);
  const auto executable = prepare(device);
  const auto residence = *executable->make_resident(CoreSet::of({1}), Residency::kExclusive);
  const auto queue = *device->make_queue({});
  const auto told = [&] {
    return device::Lease::holders(device->info().instance, 2).value().at(0).figures;
  };
  const auto submit = [&] {
    device::Submission job;
    job.executable = executable;
    job.bindings = *executable->new_bindings();
    job.cores = CoreSet::of({1});
    return *queue->submit(job);
  };
  clock->advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(told());
  std::vector<std::shared_ptr<device::Completion>> jobs{submit(), submit(), submit()};
  ASSERT_TRUE(told()) << "written by the first submission";
  EXPECT_EQ(told()->jobs, 0U);
  clock->advance(std::chrono::milliseconds(50));
  jobs.push_back(submit());
  EXPECT_EQ(told()->jobs, 0U) << "not before 100 ms are over";
  clock->advance(std::chrono::milliseconds(60));
  jobs.push_back(submit());
  EXPECT_EQ(told()->jobs, 4U);
  EXPECT_EQ(told()->busy, std::chrono::milliseconds(12));
  EXPECT_EQ(told()->waiting, 0U);
  clock->advance(std::chrono::milliseconds(10));
}

/// What a process that holds cores says of itself, in memory that all of them see.
struct Holder {
  std::atomic<bool> holds{false};
  std::atomic<std::uint64_t> jobs{0};
  std::atomic<std::uint64_t> failed{0};
};

/// Takes two of the 16 cores as soon as there are two, and runs jobs on them until it is killed.
[[noreturn]] void hold_and_run(const std::shared_ptr<device::Device>& device,
                               const std::shared_ptr<device::Executable>& executable,
                               Holder& self) {
  auto residence = executable->make_resident(CoreSet::any(2), Residency::kExclusive);
  while (!residence) {
    if (residence.error().code() != Code::kOutOfCores) ++self.failed;
    std::this_thread::yield();
    residence = executable->make_resident(CoreSet::any(2), Residency::kExclusive);
  }
  self.holds = true;
  const auto queue = *device->make_queue({});
  device::Submission job;
  job.executable = executable;
  job.bindings = *executable->new_bindings();
  for (;;) {
    device::JobRecord record;
    const bool fine =
        queue->run(job, &record).ok() && (record.core_bits & ~(*residence)->cores().bits()) == 0;
    ++(fine ? self.jobs : self.failed);
  }
}

TEST_F(LeaseTest, TenProcessesShareSixteenCoresAndAKilledOneLeavesItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends forked children that start threads";
#endif
  constexpr std::size_t kProcesses = 10;
  constexpr const char* kSixteen = "null:generic:16?lease=1";
  void* shared = mmap(nullptr, kProcesses * sizeof(Holder), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const holders = new (shared) Holder[kProcesses];
  std::vector<pid_t> processes;
  for (std::size_t i = 0; i < kProcesses; ++i) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    device::OpenOptions own;
    own.own_instance = true;
    const auto device = *device::open_device(kSixteen, own);
    hold_and_run(device, prepare(device), holders[i]);
  }
  std::vector<std::size_t> alive(kProcesses);
  std::iota(alive.begin(), alive.end(), 0U);
  while (!alive.empty()) {
    const auto holding = [&] {
      return std::ranges::count_if(alive, [&](std::size_t i) { return holders[i].holds.load(); });
    };
    // Eight at most can have two cores each; a process that waits gets those of one that was
    // killed.
    while (holding() < std::min<std::ptrdiff_t>(8, std::ssize(alive))) {
      ASSERT_EQ(waitpid(-1, nullptr, WNOHANG), 0) << "a process ended by itself";
      std::this_thread::yield();
    }
    EXPECT_LE(holding(), 8);
    for (const std::size_t i : alive) {
      const std::uint64_t before = holders[i].jobs;
      while (holders[i].holds && holders[i].jobs < before + 10) std::this_thread::yield();
      EXPECT_EQ(holders[i].failed, 0U) << "process " << i;
    }
    const auto next =
        std::ranges::find_if(alive, [&](std::size_t i) { return holders[i].holds.load(); });
    end(processes[*next]);
    alive.erase(next);
  }
  EXPECT_TRUE(prepare(kSixteen)->make_resident(CoreSet::first(16), Residency::kExclusive));
  munmap(shared, kProcesses * sizeof(Holder));
}

TEST_F(LeaseTest, AForkedChildDoesNotKeepTheCores) {
  auto residence = *prepare()->make_resident(CoreSet::first(2), Residency::kExclusive);
  const pid_t child = start([] { return 0; });
  EXPECT_FALSE(prepare()->make_resident(CoreSet::of({0}), Residency::kExclusive).has_value());
  residence.reset();
  EXPECT_TRUE(prepare()->make_resident(CoreSet::first(2), Residency::kExclusive).has_value());
  end(child);
}

TEST_F(LeaseTest, FailureNamesTheFolder) {
  const auto executable = prepare();
  setenv("CORELANE_RUN_DIR", "/dev/null/nowhere", 1);
  const auto refused = executable->make_resident(CoreSet::any(), Residency::kExclusive);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kIo);
  // Nothing is held of what failed.
  setenv("CORELANE_RUN_DIR", folder_.c_str(), 1);
  EXPECT_TRUE(executable->make_resident(CoreSet::first(2), Residency::kExclusive).has_value());
}

}  // namespace
}  // namespace corelane::lanes
