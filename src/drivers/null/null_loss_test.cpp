// Loss of the device and its log, exact under a virtual clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "device/registry/testing/listed_faults.h"

namespace corelane::drivers::null {
namespace {

using device::EventKind;
using device::Fault;
using device::Submission;
using std::chrono::milliseconds;
using testing::HasSubstr;

TimePoint at(int ms) { return TimePoint{} + milliseconds(ms); }

struct LossBench {
  explicit LossBench(const std::string& text, std::vector<Fault> faults = {}) {
    device::OpenOptions options;
    options.clock = clock;
    options.fault_point = std::make_shared<device::ListedFaults>(std::move(faults));
    device = *device::open_device(text, options);
    queue = *device->make_queue({});
    executable = *prepare();
    EXPECT_TRUE(events.watch(*device).ok());
  }
  Result<std::shared_ptr<device::Executable>> prepare() const {
    device::Image image;
    image.kind = "null";
    image.bytes = as_byte_span("input x f32 1,4\noutput y f32 1,4\n");
    return device->prepare(image, {});
  }
  Submission job() const {
    Submission submission;
    submission.executable = executable;
    submission.bindings = *executable->new_bindings();
    return submission;
  }
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Queue> queue;
  std::shared_ptr<device::Executable> executable;
  device::EventLog events;
};

TEST(NullLoss, EndsAllJobsAndIsBackAfterItsTime) {
  // The third run, on the one core that is left at 10 ms, strikes.
  LossBench bench("null:generic:2?a=10ms&core1=3", {Fault::kNone, Fault::kNone, Fault::kLost});
  const auto done = *bench.queue->submit(bench.job());
  const auto running = *bench.queue->submit(bench.job());
  const auto struck = *bench.queue->submit(bench.job());
  const auto waiting = *bench.queue->submit(bench.job());
  bench.clock->advance_to(at(10));
  EXPECT_TRUE(done->status().ok());
  for (const auto& job : {running, struck, waiting}) {
    ASSERT_TRUE(job->done());
    EXPECT_EQ(job->status().code(), Code::kDeviceLost);
    EXPECT_EQ(job->record().ended, at(10));
  }
  // The engine has one of them still.
  EXPECT_FALSE(running->released());
  EXPECT_TRUE(struck->released() && waiting->released());
  EXPECT_EQ(bench.device->health(), device::Health::kLost);
  EXPECT_EQ(bench.queue->submit(bench.job()).error().code(), Code::kDeviceLost);
  EXPECT_EQ(bench.prepare().error().code(), Code::kDeviceLost);
  bench.clock->advance_to(at(39));
  EXPECT_EQ(bench.device->health(), device::Health::kLost);
  EXPECT_TRUE(running->released());
  bench.clock->advance_to(at(40));
  EXPECT_EQ(bench.device->health(), device::Health::kGood);
  const auto old = bench.queue->run(bench.job());
  EXPECT_EQ(old.code(), Code::kDeviceLost);
  EXPECT_THAT(old.message(), HasSubstr("prepare again"));
  EXPECT_EQ(bench.executable->make_resident({}, device::Residency::kShared).error().code(),
            Code::kDeviceLost);
  bench.executable = *bench.prepare();
  const auto again = *bench.queue->submit(bench.job());
  bench.clock->run_all();
  EXPECT_TRUE(again->status().ok());
  const auto events = bench.events.all();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, EventKind::kLost);
  EXPECT_EQ(events[0].stamp, at(10));
  EXPECT_EQ(events[1].kind, EventKind::kBack);
  EXPECT_EQ(events[1].stamp, at(40));
}

TEST(NullLoss, LinesOfTheLogHaveTheirStamps) {
  LossBench bench("null:rk3566?a=10ms&log=2&depth=1");
  std::vector<std::shared_ptr<device::Completion>> jobs;
  jobs.push_back(*bench.queue->submit(bench.job()));
  jobs.push_back(*bench.queue->submit(bench.job()));
  EXPECT_EQ(bench.queue->submit(bench.job()).error().code(), Code::kBusy);
  bench.clock->advance_to(at(20));
  ASSERT_TRUE(bench.device->reset(device::CoreSet::of({0})).ok());
  const auto lines = bench.events.lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0].text, HasSubstr("a job was refused: the device's line is full"));
  EXPECT_EQ(lines[0].stamp, at(0));
  EXPECT_THAT(lines[1].text, HasSubstr("run 2 of the null device"));
  EXPECT_EQ(lines[1].stamp, at(20));
  EXPECT_THAT(lines[2].text, HasSubstr("cores '0' were reset"));
}

}  // namespace
}  // namespace corelane::drivers::null
