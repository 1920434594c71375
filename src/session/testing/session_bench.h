/// Sessions on the null device under a virtual clock: y is a copy of x, times come from the script.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/session/session.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::testing {

using std::chrono::microseconds;
using std::chrono::milliseconds;

inline FeedItem item(std::string_view name, const std::vector<float>& v, Shape shape) {
  return {name,
          TensorView{v.data(), v.size() * sizeof(float), DType::kF32, std::move(shape), {}, {}},
          nullptr};
}
inline Feed feed_of(const std::vector<float>& v) {
  return {item("x", v, Shape{1, static_cast<std::int64_t>(v.size())})};
}
inline std::vector<float> floats_of(const Tensor& t) {
  const auto* first = static_cast<const float*>(t.data.get());
  return {first, first + t.shape.elements().value_or(0)};
}
inline std::shared_ptr<device::Device> open(const std::string& text,
                                            std::shared_ptr<Clock> clock = nullptr,
                                            std::shared_ptr<device::FaultPoint> faults = nullptr) {
  device::OpenOptions options;
  options.clock = std::move(clock);
  options.fault_point = std::move(faults);
  options.own_instance = true;
  auto opened = device::open_device(text, options);
  EXPECT_TRUE(opened) << opened.error().to_string();
  return opened ? *opened : nullptr;
}
inline Session make_session(const std::string& onnx, const SessionOptions& options) {
  auto session = Session::create(as_byte_span(onnx), options);
  EXPECT_TRUE(session) << session.error().to_string();
  return session ? *session : Session();
}

/// One device with its clock, and sessions of x: f32 [1, 4] -> y on it.
struct SessionBench {
  explicit SessionBench(const std::string& text, bool virtual_time = true,
                        std::shared_ptr<device::FaultPoint> faults = nullptr)
      : clock(virtual_time ? std::make_shared<VirtualClock>() : nullptr),
        device(open(text, clock, std::move(faults))) {}

  SessionOptions options() const {
    SessionOptions options;
    options.load.on = device;
    options.load.cache = false;
    options.print_perf = false;
    return options;
  }
  Session session(const SessionOptions& options) const {
    return make_session(relu_model({std::int64_t{1}, std::int64_t{4}}), options);
  }
  /// Moves to the next timer and waits until all that became due has been called back.
  bool step(Session& session) const {
    session.wait_callbacks();
    const TimePoint next = clock->next_timer();
    if (next == kNever) return false;
    clock->advance_to(next);
    session.wait_callbacks();
    return true;
  }
  /// Until no task is left. The timer that looks for runs of 30 s may be left: nobody waits for it.
  void run_out(Session& session) const {
    while (busy(session) && step(session)) {
    }
    session.wait_callbacks();
  }
  bool busy(const Session& session) const {
    const SessionStatistics tasks = session.statistics();
    const device::DeviceCounters jobs = device->counters();
    return tasks.waiting + tasks.running > 0 || jobs.submitted > jobs.completed;
  }
  /// At most three weeks.
  int now_ms() const {
    return static_cast<int>((clock->now().time_since_epoch()).count() / 1'000'000);
  }

  std::shared_ptr<VirtualClock> clock;
  std::shared_ptr<device::Device> device;
  std::vector<float> x = {1, 2, 3, 4};
};

/// What was called back, in order. Any thread.
struct CallbackLog {
  struct Entry {
    std::uint64_t task;
    int at_ms;
    Status status;
  };
  RunCallback callback(const SessionBench& bench) {
    return [this, &bench](std::uint64_t task, const Result<Outputs>& outputs) {
      const std::lock_guard lock(mutex);
      entries.push_back(
          {task, bench.clock ? bench.now_ms() : 0, outputs ? Status() : outputs.error()});
    };
  }
  std::vector<std::uint64_t> tasks() {
    const std::lock_guard lock(mutex);
    std::vector<std::uint64_t> ids;
    for (const Entry& e : entries) ids.push_back(e.task);
    return ids;
  }
  std::vector<int> times() {
    const std::lock_guard lock(mutex);
    std::vector<int> at;
    for (const Entry& e : entries) at.push_back(e.at_ms);
    return at;
  }
  std::mutex mutex;
  std::vector<Entry> entries;
};

}  // namespace corelane::testing
