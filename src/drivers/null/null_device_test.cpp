#include <gtest/gtest.h>

#include <cstring>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"

namespace corelane::drivers::null {
namespace {

using device::Completion;
using device::CoreSet;
using device::Submission;
using std::chrono::milliseconds;

constexpr std::string_view kOneToOne = "input x f32 1,4\noutput y f32 1,4\n";

/// The null device on a virtual clock, with one image.
struct Bench {
  explicit Bench(const std::string& text, std::string_view image_text = kOneToOne,
                 const std::shared_ptr<Clock>& on = nullptr) {
    device::OpenOptions options;
    options.clock = on != nullptr ? on : clock;
    device = *device::open_device(text, options);
    device::Image image;
    image.kind = "null";
    image.bytes = as_byte_span(image_text);
    executable = *device->prepare(image, {});
    queue = *device->make_queue({});
  }
  Submission job(CoreSet cores = {}, std::uint32_t batch = 1) const {
    Submission submission;
    submission.executable = executable;
    submission.bindings = *executable->new_bindings();
    submission.cores = cores;
    submission.batch = batch;
    return submission;
  }
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Executable> executable;
  std::shared_ptr<device::Queue> queue;
};

/// Calls each timer late, as a busy host does.
class LateClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return inner->now(); }
  bool is_virtual() const noexcept override { return true; }
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  TimePoint until) override {
    return inner->wait_until(lock, cv, until);
  }
  TimerId call_at(TimePoint when, std::function<void()> f) override {
    return inner->call_at(when + late, std::move(f));
  }
  bool cancel(TimerId id) override { return inner->cancel(id); }

  const std::shared_ptr<VirtualClock> inner = std::make_shared<VirtualClock>();
  Duration late{};
};

TEST(NullDevice, JobsInItsLineFollowEachOtherThoughTheClockCallsLate) {
  const auto late = std::make_shared<LateClock>();
  late->late = std::chrono::microseconds(300);
  Bench bench("null:generic:1?a=1ms", kOneToOne, late);
  std::vector<std::shared_ptr<Completion>> jobs;
  for (int i = 0; i < 10; ++i) jobs.push_back(*bench.queue->submit(bench.job()));
  late->inner->run_all();
  EXPECT_EQ(jobs.back()->record().ended, TimePoint{} + milliseconds(10));
  for (std::size_t i = 1; i < jobs.size(); ++i)
    EXPECT_EQ(jobs[i]->record().started, jobs[i - 1]->record().ended);
  // Nothing waited: the core begins when the job comes.
  const TimePoint idle = late->now();
  const auto alone = *bench.queue->submit(bench.job());
  late->inner->run_all();
  EXPECT_EQ(alone->record().ended, idle + milliseconds(1));
}

TEST(NullDevice, AJobThatCameAfterTheEndBeginsWhenItCame) {
  const auto late = std::make_shared<LateClock>();
  late->late = std::chrono::microseconds(300);
  Bench bench("null:generic:1?a=1ms", kOneToOne, late);
  const auto first = *bench.queue->submit(bench.job());
  late->inner->advance(std::chrono::microseconds(1200));  // Its core is free; nobody knows yet.
  const auto second = *bench.queue->submit(bench.job());
  late->inner->run_all();
  EXPECT_EQ(second->record().ended, TimePoint{} + std::chrono::microseconds(2200));
}

TEST(NullDevice, ScheduleIsThatOfTheScript) {
  Bench bench("null:rk3588?a=10ms&b=1ms&core1=3");
  std::vector<std::shared_ptr<Completion>> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(*bench.queue->submit(bench.job({}, 10)));
  bench.clock->run_all();
  const auto ends_at = [&](int i, int ms, std::uint64_t core_bits) {
    EXPECT_EQ(jobs[i]->record().ended, TimePoint{} + milliseconds(ms)) << i;
    EXPECT_EQ(jobs[i]->record().core_bits, core_bits) << i;
  };
  ends_at(0, 20, 1);
  ends_at(1, 60, 2);
  ends_at(2, 20, 4);
  ends_at(3, 40, 1);
  ends_at(4, 40, 4);
  EXPECT_EQ(jobs[3]->record().started, TimePoint{} + milliseconds(20));
  EXPECT_EQ(jobs[3]->record().queue_depth, 0U);
  EXPECT_EQ(jobs[4]->record().queue_depth, 1U);
  EXPECT_EQ(bench.device->counters().busy[1], milliseconds(60));
}

TEST(NullDevice, ACoreThatChangesItsProgramBeginsLater) {
  Bench bench("null:generic:2?a=1ms&switch=200us");
  device::Image image;
  image.kind = "null";
  image.bytes = as_byte_span("input x f32 1,4\noutput other f32 1,4\n");
  const auto other = *bench.device->prepare(image, {});
  const auto of = [&](const std::shared_ptr<device::Executable>& executable, CoreSet cores) {
    Submission job = bench.job(cores);
    job.executable = executable;
    job.bindings = *executable->new_bindings();
    return *bench.queue->submit(job);
  };
  const std::vector jobs{of(bench.executable, CoreSet::of({0})), of(other, CoreSet::of({0})),
                         of(other, CoreSet::of({0})), of(other, CoreSet::of({1})),
                         of(bench.executable, CoreSet::of({0, 1}))};
  bench.clock->run_all();
  const std::vector<int> began_us{0, 1200, 2200, 0, 3400};
  for (std::size_t i = 0; i < jobs.size(); ++i)
    EXPECT_EQ(jobs[i]->record().started, TimePoint{} + std::chrono::microseconds(began_us[i])) << i;
  EXPECT_EQ(jobs[4]->record().ended, TimePoint{} + std::chrono::microseconds(3900));
  EXPECT_EQ(bench.device->counters().busy[0], std::chrono::microseconds(3500)) << "without changes";
}

TEST(NullDevice, DeadlinesAreExactOnTheClock) {
  Bench bench("null:rk3566?a=10ms");
  Submission job = bench.job();
  job.deadline = TimePoint{} + milliseconds(4);
  auto late = *bench.queue->submit(job);
  auto next = *bench.queue->submit(bench.job());
  bench.clock->advance_to(TimePoint{} + milliseconds(4));
  EXPECT_EQ(late->status().code(), Code::kTimeout);
  EXPECT_EQ(late->record().ended, job.deadline);
  EXPECT_FALSE(late->released());
  bench.clock->advance_to(TimePoint{} + milliseconds(10));
  EXPECT_TRUE(late->released());
  EXPECT_FALSE(next->done());
  bench.clock->advance_to(TimePoint{} + milliseconds(14));
  EXPECT_TRUE(next->status().ok());
  EXPECT_EQ(next->record().started, TimePoint{} + milliseconds(4));
}

TEST(NullDevice, ScriptedFailureStrikesEveryNthRun) {
  Bench bench("null:rk3566?fail=3");
  for (int i = 1; i <= 9; ++i)
    EXPECT_EQ(bench.queue->run(bench.job()).code(), i % 3 == 0 ? Code::kEngineFailed : Code::kOk);
}

TEST(NullDevice, OutputIsACopyOrZeros) {
  Bench bench("null:rk3566", "input x f32 1,2\noutput same f32 2\noutput other u8 ?,3\n");
  Submission job = bench.job();
  const float x[2] = {1.5F, -2};
  std::memcpy(job.bindings->input(0)->data, x, sizeof(x));
  ASSERT_TRUE(bench.queue->run(job).ok());
  EXPECT_EQ(std::memcmp(job.bindings->output(0)->data, x, sizeof(x)), 0);
  const auto other = *job.bindings->output(1);
  EXPECT_EQ(other.shape, (Shape{1, 3}));
  EXPECT_EQ(other.size, 3U);
}

TEST(NullDevice, ConstantsOfAnImageAreInTheFigures) {
  Bench bench("null:rk3566", "input x f32 1,2\nconstants 64k\n");
  EXPECT_EQ(bench.executable->memory().weights, 65536U);
  EXPECT_EQ(bench.device->memory().weights, 65536U);
}

TEST(NullDevice, LongChainOfInstantJobsDoesNotRecurse) {
  Bench bench("null:rk3566?a=1ns");
  auto instant = *device::open_device("null:rk3566?name=chain");
  auto queue = *instant->make_queue({});
  device::Image image;
  image.kind = "null";
  image.bytes = as_byte_span("input x f32 1,4\n");
  auto executable = *instant->prepare(image, {});
  auto gate = std::make_shared<device::Fence>();
  std::vector<std::shared_ptr<Completion>> jobs;
  for (int i = 0; i < 20000; ++i) {
    Submission job;
    job.executable = executable;
    job.bindings = *executable->new_bindings();
    if (i == 0) job.wait = {gate};
    job.cores = CoreSet::of({0});
    jobs.push_back(*queue->submit(job));
  }
  gate->signal();
  ASSERT_TRUE(queue->drain());
  for (const auto& job : jobs) ASSERT_TRUE(job->status().ok());
}

TEST(NullDevice, CallbackMayRunAnotherJobAtOnce) {
  Bench bench("null:rk3566");
  bool inner = false;
  Submission first = bench.job();
  auto gate = std::make_shared<device::Fence>();
  first.wait = {gate};
  auto completion = *bench.queue->submit(first);
  completion->on_done([&](Completion&) { inner = bench.queue->run(bench.job()).ok(); });
  gate->signal();
  EXPECT_TRUE(inner);
}

TEST(NullDevice, UnknownRequestsAreErrors) {
  Bench bench("null:rk3566");
  device::Image image;
  image.kind = "onnx";
  image.bytes = as_byte_span("anything");
  device::PrepareOptions options;
  options.input_shapes = {{1, 3}, {2}};
  auto executable = *bench.device->prepare(image, options);
  EXPECT_EQ(executable->inputs().size(), 2U);
  EXPECT_EQ(executable->outputs().front().shape, (Shape{1, 3}));
  options.profile_layers = true;
  EXPECT_EQ(bench.device->prepare(image, options).error().code(), Code::kUnsupported);
  image.kind = "null";
  for (const char* text :
       {"input x", "input x f31 1", "input x f32 a", "nonsense", "time soon", "constants many"}) {
    image.bytes = as_byte_span(text);
    EXPECT_EQ(bench.device->prepare(image, {}).error().code(), Code::kMalformed) << text;
  }
}

}  // namespace
}  // namespace corelane::drivers::null
