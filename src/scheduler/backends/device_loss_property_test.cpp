/// A pipeline of a program on a device that crashes and is lost by chance, under random use.
#include <gtest/gtest.h>
// After GoogleTest.
#include <rapidcheck/gtest.h>

#include <atomic>
#include <random>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/scheduler/scheduler.h"
#include "scheduler/backends/testing/weighted_program.h"

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;
using testing::ProgramFiles;
using testing::rows;
using testing::weighted;

/// Of a hundred runs one crashes, and one loses the device for 20 ms, until it is mended.
class ByChance final : public device::FaultPoint {
 public:
  explicit ByChance(std::uint64_t seed) {
    device::FaultPlan plan;
    plan.crash = plan.lost = 0.01;
    plan.seed = seed;
    chance_ = device::planned_faults(plan);
  }
  device::Fault at_run(std::uint64_t job, std::uint64_t core_bits) override {
    return mended ? device::Fault::kNone : chance_->at_run(job, core_bits);
  }
  Duration slow_by() const override { return {}; }
  Duration lost_for() const override { return milliseconds(20); }

  std::atomic<bool> mended{false};

 private:
  std::shared_ptr<device::FaultPoint> chance_;
};

constexpr const char* kNullDevice = "null:generic:2?a=2ms&b=1ms";

/// The pipeline, its clock and its device; what is left in the device at the end is on the clock.
struct Bench {
  explicit Bench(std::uint64_t seed) : faults(std::make_shared<ByChance>(seed)) {
    device::OpenOptions open;
    open.clock = clock;
    open.fault_point = faults;
    open.own_instance = true;
    device = *device::open_device(kNullDevice, open);
    options.clock = clock;
    options.shared = std::make_shared<Dict>(Dict{{std::string("device:") + kNullDevice, device}});
  }
  ~Bench() {
    (void)pipeline.shutdown(Shutdown::kAbort, TimePoint{});
    rest();
    pipeline = {};
    clock->run_all();
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Ticket submit(const RequestOptions& with, std::function<void(const Ticket&)> on_done = {}) const {
    return pipeline.submit({{kData, rows(with.items, 1)}}, with, std::move(on_done));
  }
  /// In small steps: a thread may be about to give the device a job.
  void step() const {
    std::this_thread::yield();
    if (clock->next_timer() != kNever)
      clock->advance_to(std::min(clock->next_timer(), clock->now() + milliseconds(1)));
  }
  void rest() const {
    for (Statistics all = pipeline.statistics();
         all.waiting + all.running + all.running_batches != 0; all = pipeline.statistics())
      step();
  }

  const std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  const std::shared_ptr<ByChance> faults;
  std::shared_ptr<device::Device> device;
  PipelineOptions options;
  Pipeline pipeline;
};

/// All that a failing device may end a request with.
bool expected(Code code) {
  return code == Code::kOk || code == Code::kDeviceLost || code == Code::kDeviceReset ||
         code == Code::kTimeout || code == Code::kCancelled || code == Code::kBusy;
}

void use(std::uint64_t seed, const std::string& model) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  std::atomic<std::uint64_t> callbacks{0};
  std::vector<Ticket> tickets;
  {
    Bench bench(seed);
    const char* batchings[] = {"idle", "full", "learned"};
    auto made = Pipeline::create({{"backend", "TensorrtTensor"},
                                  {"model", model},
                                  {"device", kNullDevice},
                                  {"max", "8"},
                                  {"instance_num", std::to_string(1 + below(3))},
                                  {"isolate", below(2) == 0 ? "true" : "false"},
                                  {"batching", batchings[below(3)]}},
                                 bench.options);
    RC_ASSERT(made.has_value());
    bench.pipeline = std::move(*made);
    for (int i = 0; i < 120; ++i) {
      if (below(3) == 0) bench.step();
      if (below(20) == 0 && !tickets.empty()) (void)tickets[below(tickets.size())].cancel();
      RequestOptions with;
      with.items = 1 + static_cast<std::uint32_t>(below(4) == 0 ? below(4) : 0);
      if (below(6) == 0) with.timeout = milliseconds(1 + below(40));
      tickets.push_back(bench.submit(with, [&](const Ticket&) { ++callbacks; }));
    }
    bench.rest();

    bench.faults->mended = true;
    bench.clock->advance(milliseconds(20));
    tickets.push_back(bench.submit({}, [&](const Ticket&) { ++callbacks; }));
    bench.rest();
    const Statistics all = bench.pipeline.statistics();
    RC_ASSERT(all.submitted == tickets.size());
    RC_ASSERT(all.submitted == all.done + all.failed + all.rejected + all.cancelled + all.expired);
    RC_ASSERT(all.waiting_items == 0U);
    std::uint64_t done = 0;
    for (const Ticket& ticket : tickets) {
      const Status status = ticket.wait();
      if (!expected(status.code())) RC_FAIL(status.to_string());
      RC_ASSERT(status.ok() == (ticket.state() == RequestState::kDone));
      RC_ASSERT(ticket.take()->contains(kResult) == status.ok());
      done += status.ok() ? 1 : 0;
    }
    RC_ASSERT(all.done == done);
    RC_ASSERT(tickets.back().wait().ok());
  }
  RC_ASSERT(callbacks == tickets.size());
}

RC_GTEST_PROP(DeviceLossProperties, EachRequestEndsOnceAndTheDeviceServesAgainWhenItIsBack, ()) {
  static const ProgramFiles files;
  static const std::string model =
      files.write("open.onnx", as_byte_span(weighted(std::string("n"))));
  use(*rc::gen::arbitrary<std::uint64_t>(), model);
}

}  // namespace
}  // namespace corelane::scheduler
