// Capture of device logs: statement 11, in virtual time.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "adapters/qaic/api/qaic_test_support.h"

namespace corelane::qaic {
namespace {

using namespace test;
using std::chrono::milliseconds;

/// Lines in the order of their delivery.
struct Delivered {
  static void log(QLogLevel, const char* message, void* data) {
    auto& to = *static_cast<Delivered*>(data);
    const std::lock_guard lock(to.mutex);
    to.lines.emplace_back(message);
  }
  std::mutex mutex;
  std::vector<std::string> lines;
};

/// Jobs of one device that follow each other, and the lines that it writes.
class Work {
 public:
  explicit Work(device::Device& device) : device_(device) {
    device::ObserverOptions watch;
    watch.on_event = [this](const device::Event& event) {
      const std::lock_guard lock(mutex_);
      stamps_[device_.info().instance + ": " + event.text] = event.stamp;
    };
    observation_ = device.observe(std::move(watch)).value();
    queue_ = device.make_queue({}).value();
    device::Image image;
    image.kind = "null";
    image.bytes = as_byte_span("input x f32 1,4\noutput y f32 1,4\n");
    job_.executable = device.prepare(image, {}).value();
  }
  void submit() {
    job_.bindings = job_.executable->new_bindings().value();
    (void)queue_->submit(job_).value();
  }
  /// Each device's thread has called the log once it has called this later observer.
  void settle() { ASSERT_TRUE(observation_->flush()); }
  std::map<std::string, TimePoint> stamps() {
    const std::lock_guard lock(mutex_);
    return stamps_;
  }

 private:
  device::Device& device_;
  std::mutex mutex_;
  std::map<std::string, TimePoint> stamps_;
  std::shared_ptr<device::Observation> observation_;
  std::shared_ptr<device::Queue> queue_;
  device::Submission job_;
};

/// Two contexts of three devices, one of them in both.
TEST(QaicCapture, LinesOfHostAndDevicesComeInTheOrderOfTime) {
  const OwnDevices devices({"null:generic:1?a=3ms&log=1&name=a",
                            "null:generic:2?a=5ms&log=1&name=b",
                            "null:generic:3?a=700us&log=2&name=c"});
  constexpr auto kLogs = QAIC_CONTEXT_COLLECT_DEVICE_LOGS;
  Delivered delivered[2];
  const OwnContext first({0, 1}, kLogs, Delivered::log, &delivered[0]);
  const OwnContext second({1, 2}, kLogs, Delivered::log, &delivered[1]);
  ASSERT_EQ(qaicSetLogLevel(first, QL_DEBUG), QS_SUCCESS);
  ASSERT_EQ(qaicSetLogLevel(second, QL_DEBUG), QS_SUCCESS);
  std::vector<std::unique_ptr<Work>> work;
  for (const auto& device : devices.devices) work.push_back(std::make_unique<Work>(*device));
  std::map<std::string, TimePoint> written[2];
  std::mt19937 random(7);
  for (int step = 0; step < 300; ++step) {
    for (const auto& device : work) device->submit();
    devices.clock->advance(std::chrono::microseconds(random() % 4000));
    for (const auto& device : work) device->settle();
    for (int i = 0; i < 2; ++i) {
      if (random() % 2 == 0) continue;
      const std::string line = "host line " + std::to_string(step);
      ASSERT_EQ(qaicContextLog(i == 0 ? first : second, QL_INFO, line.c_str()), QS_SUCCESS);
      written[i][line] = devices.clock->now();
    }
  }
  // Their jobs end in steps that are shorter than the window.
  for (int step = 0; step < 100; ++step) {
    devices.clock->advance(milliseconds(10));
    for (const auto& device : work) device->settle();
  }
  // The end of a context delivers what waits.
  ASSERT_EQ(qaicReleaseContext(first), QS_SUCCESS);
  ASSERT_EQ(qaicReleaseContext(second), QS_SUCCESS);
  const_cast<OwnContext&>(first).gone();
  const_cast<OwnContext&>(second).gone();
  for (int i = 0; i < 2; ++i) {
    std::map<std::string, TimePoint> stamps = written[i];
    for (const std::size_t device : {i, i + 1}) stamps.merge(work[device]->stamps());
    EXPECT_GT(stamps.size(), written[i].size() + 100);
    std::vector<TimePoint> order;
    for (const std::string& line : delivered[i].lines) {
      ASSERT_TRUE(stamps.contains(line)) << line;
      order.push_back(stamps[line]);
    }
    EXPECT_EQ(order.size(), stamps.size()) << "each once";
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "context " << i;
  }
}

TEST(QaicCapture, LinesWaitForEarlierOnesAsLongAsTheWindow) {
  const OwnDevices devices({"null:generic:1"});
  Delivered delivered;
  const OwnContext context({0}, QAIC_CONTEXT_COLLECT_DEVICE_LOGS, Delivered::log, &delivered);
  ASSERT_EQ(qaicContextLog(context, QL_ERROR, "line"), QS_SUCCESS);
  devices.clock->advance(milliseconds(1999));
  EXPECT_TRUE(delivered.lines.empty());
  EXPECT_EQ(devices.clock->next_timer(), TimePoint(milliseconds(2000)));
}

/// The other thread holds the log for a moment, so that its end came after the release.
TEST(QaicCapture, WhatWaitsIsDeliveredByTheReleaseThoughAnotherThreadLogs) {
  const OwnDevices devices({"null:generic:1"});
  for (int round = 0; round < 50; ++round) {
    Delivered delivered;
    OwnContext context({0}, QAIC_CONTEXT_COLLECT_DEVICE_LOGS, Delivered::log, &delivered);
    QAicContext* const handle = context;
    ASSERT_EQ(qaicContextLog(handle, QL_ERROR, "early"), QS_SUCCESS);
    std::atomic<bool> writes{false};
    std::thread other([&] {
      while (qaicContextLog(handle, QL_ERROR, "more") == QS_SUCCESS) writes = true;
    });
    while (!writes) std::this_thread::yield();
    EXPECT_EQ(qaicReleaseContext(handle), QS_SUCCESS);
    context.gone();
    const auto lines = [&] {
      const std::lock_guard lock(delivered.mutex);
      return delivered.lines;
    };
    const std::vector<std::string> then = lines();
    other.join();
    ASSERT_EQ(std::ranges::count(then, "early"), 1) << round;
    EXPECT_EQ(lines().size(), then.size()) << "nothing comes after the release";
  }
}

TEST(QaicCapture, WithoutThePropertyNoLineOfADeviceComes) {
  const OwnDevices devices({"null:generic:1?log=1"});
  Delivered delivered;
  const OwnContext context({0}, 0, Delivered::log, &delivered);
  ASSERT_EQ(qaicSetLogLevel(context, QL_DEBUG), QS_SUCCESS);
  Work work(*devices.devices[0]);
  work.submit();
  devices.clock->run_all();
  work.settle();
  EXPECT_EQ(work.stamps().size(), 1U);
  EXPECT_TRUE(delivered.lines.empty());
}

}  // namespace
}  // namespace corelane::qaic
