// Shares of the device's time, exact under a virtual clock.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"

namespace corelane::drivers::null {
namespace {

using device::Completion;
using device::QueueOptions;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A null device on a virtual clock that shares by weight.
struct SharesBench {
  explicit SharesBench(
      const std::string& text,
      const std::shared_ptr<const device::Arbiter>& arbiter = device::fair_arbiter()) {
    device::OpenOptions options;
    options.clock = clock;
    device = *device::open_device(text, options);
    EXPECT_TRUE(device->set_arbiter(arbiter).ok());
  }
  ~SharesBench() { clock->run_all(); }
  SharesBench(const SharesBench&) = delete;
  SharesBench& operator=(const SharesBench&) = delete;
  void run_until(Duration end) const {
    while (clock->next_timer() <= TimePoint{} + end) clock->advance_to(clock->next_timer());
  }
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  std::shared_ptr<device::Device> device;
};

/// Keeps so many jobs on a queue of its own, each of `time` on one core.
class Stream {
 public:
  Stream(const SharesBench& bench, const QueueOptions& options, Duration time) {
    state_->queue = *bench.device->make_queue(options);
    const std::string text =
        fmt::format("input x f32 1\ntime {}us\n", time / std::chrono::microseconds(1));
    device::Image image;
    image.kind = "null";
    image.bytes = as_byte_span(text);
    state_->executable = *bench.device->prepare(image, {});
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { state_->stopped = true; }
  void start(int jobs) const {
    for (int i = 0; i < jobs; ++i) submit(state_);
  }
  Duration served() const { return state_->served; }
  Duration longest_wait() const { return state_->longest_wait; }
  int ended() const { return state_->ended; }

 private:
  /// Outlives the stream: its last jobs end when the clock is run out.
  struct State {
    std::shared_ptr<device::Queue> queue;
    std::shared_ptr<device::Executable> executable;
    Duration served{};
    Duration longest_wait{};
    int ended = 0;
    bool stopped = false;
  };
  static void submit(const std::shared_ptr<State>& state) {
    device::Submission job;
    job.executable = state->executable;
    job.bindings = *state->executable->new_bindings();
    auto completion = state->queue->submit(job);
    ASSERT_TRUE(completion.has_value());
    (*completion)->on_done([state](Completion& done) {
      const device::JobRecord record = done.record();
      state->served += record.ended - record.started;
      state->longest_wait = std::max(state->longest_wait, record.started - record.queued);
      ++state->ended;
      if (!state->stopped) submit(state);
    });
  }
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

QueueOptions weight(double value) {
  QueueOptions options;
  options.weight = value;
  return options;
}
QueueOptions priority(int value) {
  QueueOptions options;
  options.priority = value;
  return options;
}
double ratio(const Stream& a, const Stream& b) {
  return static_cast<double>(a.served().count()) / static_cast<double>(b.served().count());
}

TEST(NullShares, WeightsShareTheDevicesTime) {
  struct Case {
    const char* device;
    Duration light;
    Duration heavy;
  };
  const Case cases[] = {
      {"null:rk3566", milliseconds(7), milliseconds(7)},
      {"null:rk3566", milliseconds(20), milliseconds(3)},
      {"null:rk3566", milliseconds(2), milliseconds(90)},
      {"null:rk3588", milliseconds(7), milliseconds(7)},
      {"null:aic100", milliseconds(5), milliseconds(11)},
  };
  for (const Case& c : cases) {
    SharesBench bench(c.device);
    Stream light(bench, weight(1), c.light);
    Stream heavy(bench, weight(3), c.heavy);
    light.start(40);
    heavy.start(40);
    bench.run_until(seconds(10));
    EXPECT_NEAR(ratio(heavy, light), 3, 0.15) << c.device << " " << c.light.count();
  }
}

TEST(NullShares, WhoComesLateSavedNothingUp) {
  SharesBench bench("null:rk3566");
  Stream early(bench, weight(1), milliseconds(5));
  Stream late(bench, weight(1), milliseconds(5));
  early.start(8);
  bench.run_until(seconds(5));
  const Duration before = early.served();
  late.start(8);
  bench.run_until(seconds(10));
  const auto share = static_cast<double>((early.served() - before).count()) /
                     static_cast<double>(late.served().count());
  EXPECT_NEAR(share, 1, 0.05);
}

TEST(NullShares, LowPriorityWaitsNoLongerThanItsBound) {
  constexpr int kSteps = 8;
  constexpr Duration kJob = milliseconds(10);
  SharesBench bench("null:rk3566");
  Stream high(bench, priority(kSteps), kJob);
  Stream low(bench, priority(0), kJob);
  high.start(16);
  low.start(1);
  bench.run_until(seconds(10));
  EXPECT_LE(low.longest_wait(), kSteps * device::kAgeingStep + kJob);
  EXPECT_GE(low.ended(), 20);
  // It is low all the same.
  EXPECT_GE(low.longest_wait(), kSteps * device::kAgeingStep);
  EXPECT_GT(ratio(high, low), 20);
}

TEST(NullShares, FirstInFirstOutStarvesThem) {
  SharesBench bench("null:rk3566", device::fifo_arbiter());
  Stream high(bench, priority(1), milliseconds(10));
  Stream low(bench, priority(0), milliseconds(10));
  high.start(2);
  low.start(1);
  bench.run_until(seconds(10));
  EXPECT_EQ(low.ended(), 0);
}

TEST(NullShares, ACapHoldsAlsoWhenNobodyElseWaits) {
  for (const auto& arbiter : {device::fifo_arbiter(), device::fair_arbiter()}) {
    SharesBench bench("null:generic:2", arbiter);
    QueueOptions options;
    options.time_cap = 0.25;
    Stream capped(bench, options, milliseconds(10));
    capped.start(4);
    bench.run_until(seconds(10));
    // A quarter of two cores, the window of 100 ms, and what runs.
    EXPECT_LE(capped.served(), milliseconds(5000 + 50 + 20));
    EXPECT_GE(capped.served(), milliseconds(4950));
  }
}

TEST(NullShares, WhatACapLeavesIsForOthers) {
  SharesBench bench("null:rk3566", device::fifo_arbiter());
  QueueOptions options;
  options.time_cap = 0.2;
  options.priority = 10;
  Stream capped(bench, options, milliseconds(10));
  Stream other(bench, {}, milliseconds(10));
  capped.start(4);
  other.start(4);
  bench.run_until(seconds(10));
  EXPECT_LE(capped.served(), milliseconds(2000 + 20 + 10));
  EXPECT_GE(capped.served() + other.served(), milliseconds(9980));
}

}  // namespace
}  // namespace corelane::drivers::null
