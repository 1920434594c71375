/// An engine for tests: y = 2 x on f32 [1, n], which a test can hold at a gate.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "corelane/driver/lane_engine.h"
#include "device/registry/device_wrappers.h"

namespace corelane::lanes {

/// Holds the threads that pass through it until it is opened; counts them.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    while (!open_) changed_.wait(lock);
    --inside_;
    changed_.notify_all();
  }
  void open() {
    std::lock_guard guard(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void close() {
    std::lock_guard guard(mutex_);
    open_ = false;
  }
  /// Waits until `n` threads are held; 0: until those that were have gone on.
  void await(int n) {
    std::unique_lock lock(mutex_);
    while (inside_ != n) changed_.wait(lock);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int inside_ = 0;
};

struct FakeEngineState {
  /// Called in each run before the result is computed; its failure is the run's.
  std::function<Status(std::uint64_t core_bits)> before_run;
  /// Each run waits at the gate, which must outlive it.
  void hold_runs_at(Gate& gate) {
    before_run = [&gate](std::uint64_t) {
      gate.pass();
      return Status();
    };
  }
  std::atomic<int> runs{0};
  std::atomic<int> abandoned{0};  ///< Runs that were asked to end.
  std::atomic<int> lose{0};       ///< So many runs are lost with their request.
  std::atomic<int> requests{0};   ///< Made so far.
  std::atomic<int> binds{0};
  std::atomic<bool> brief{false};        ///< What requests say of their next run.
  bool counts_copies = false;            ///< reserve() makes copies, up to three.
  std::atomic<std::size_t> copies{1};    ///< Made so far.
  std::atomic<bool> keeps_input{false};  ///< Read when bindings are made.
  std::atomic<int> renewed{0};           ///< Calls of KeptContent::renew.
  std::function<void()> on_renew;        ///< In each of them.
  std::atomic<int> let_go{0};            ///< Inputs set to null.
  bool event_driven = false;             ///< Runs start and end in the thread that submits.
  std::atomic<int> on_core[64] = {};
  std::atomic<bool> overlap{false};                      ///< Two runs were on one core at once.
  std::function<void(const device::CoreSet&)> on_cores;  ///< With what a request is told.
  std::function<void()> on_prepare;                      ///< In each preparation.
  bool no_program = false;                               ///< prepare() succeeds with null.
  bool no_request = false;                               ///< new_request() succeeds with null.
  std::function<void()> on_end;                          ///< A program or a request is destroyed.
};

class FakeRequest final : public device::LaneRequest {
 public:
  explicit FakeRequest(std::shared_ptr<FakeEngineState> state) : state_(std::move(state)) {
    ++state_->requests;
  }
  ~FakeRequest() override {
    if (state_->on_end) state_->on_end();
  }
  Status set_input(std::size_t, const device::TensorRef& tensor) override {
    ++(tensor.data == nullptr ? state_->let_go : state_->binds);
    input_ = tensor;
    return {};
  }
  Status set_output(std::size_t, const device::TensorRef& tensor) override {
    ++state_->binds;
    output_ = tensor;
    return {};
  }
  void set_cores(const device::CoreSet& asked) override {
    if (state_->on_cores) state_->on_cores(asked);
  }
  bool is_brief() const noexcept override { return state_->brief; }
  Status run(std::uint64_t core_bits) override {
    ++state_->runs;
    lost_ = state_->lose > 0;
    if (lost_) {
      --state_->lose;
      return error(Code::kDeviceLost, "the engine's process ended");
    }
    enter(core_bits, 1);
    Status status = state_->before_run ? state_->before_run(core_bits) : Status();
    if (status.ok()) {
      const auto* x = static_cast<const float*>(input_.data);
      auto* y = static_cast<float*>(output_.data);
      const std::size_t n = output_.shape.elements().value_or(0);
      for (std::size_t i = 0; i < n; ++i) y[i] = 2 * x[i];
    }
    enter(core_bits, -1);
    return status;
  }
  void abandon() noexcept override { ++state_->abandoned; }
  bool lost() const noexcept override { return lost_; }
  Result<device::TensorRef> output(std::size_t) override { return output_; }
  Result<std::vector<device::LayerTime>> layer_times() const override {
    return error(Code::kUnsupported, "no layers");
  }

 private:
  void enter(std::uint64_t core_bits, int step) {
    for (std::size_t core = 0; core < 64; ++core) {
      if (((core_bits >> core) & 1U) == 0) continue;
      const int runs = state_->on_core[core] += step;
      if (runs > 1) state_->overlap = true;
    }
  }
  const std::shared_ptr<FakeEngineState> state_;
  device::TensorRef input_;
  device::TensorRef output_;
  bool lost_ = false;
};

class FakeContent final : public device::KeptContent {
 public:
  explicit FakeContent(std::shared_ptr<FakeEngineState> state) : state_(std::move(state)) {}
  void renew() noexcept override {
    ++state_->renewed;
    if (state_->on_renew) state_->on_renew();
    ++stamp_;
  }
  std::uint64_t stamp() const noexcept override { return stamp_; }

 private:
  const std::shared_ptr<FakeEngineState> state_;
  std::atomic<std::uint64_t> stamp_{1};
};

class FakeProgram final : public device::LaneProgram {
 public:
  FakeProgram(std::shared_ptr<FakeEngineState> state, Shape shape) : state_(std::move(state)) {
    TensorDesc desc;
    desc.name = "x";
    desc.dtype = DType::kF32;
    desc.shape = std::move(shape);
    inputs_ = {desc};
    desc.name = "y";
    outputs_ = {desc};
  }
  ~FakeProgram() override {
    if (state_->on_end) state_->on_end();
  }
  const std::vector<TensorDesc>& inputs() const noexcept override { return inputs_; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return outputs_; }
  device::Placement placement() const noexcept override { return device::Placement::kReplicated; }
  /// Each copy that was reserved has constants of its own.
  device::MemoryFigures memory() const override { return {1000 * state_->copies, 10, 0}; }
  Status reserve(std::size_t, std::size_t requests) override {
    if (state_->counts_copies)
      state_->copies = std::max<std::size_t>(state_->copies, std::min<std::size_t>(requests, 3));
    return {};
  }
  bool keeps_input(std::size_t) const noexcept override { return state_->keeps_input; }
  Result<std::shared_ptr<device::KeptContent>> kept_content(std::size_t,
                                                            const device::TensorRef&) override {
    return std::make_shared<FakeContent>(state_);
  }
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t, std::size_t) override {
    if (state_->no_request) return std::unique_ptr<device::LaneRequest>();
    return std::make_unique<FakeRequest>(state_);
  }
  Result<device::Executable::Precompiled> export_precompiled() const override {
    return error(Code::kUnsupported, "no pre-compiled form");
  }

 private:
  const std::shared_ptr<FakeEngineState> state_;
  std::vector<TensorDesc> inputs_;
  std::vector<TensorDesc> outputs_;
};

class FakeEngine final : public device::LaneEngine {
 public:
  explicit FakeEngine(std::shared_ptr<FakeEngineState> state) : state_(std::move(state)) {}
  Result<std::shared_ptr<device::LaneProgram>> prepare(
      const device::Image&, const device::PrepareOptions& options) override {
    if (state_->on_prepare) state_->on_prepare();
    if (state_->no_program) return std::shared_ptr<device::LaneProgram>();
    return std::make_shared<FakeProgram>(
        state_, options.input_shapes.empty() ? Shape{1, 4} : options.input_shapes.front());
  }
  bool event_driven() const noexcept override { return state_->event_driven; }
  bool computes_in_caller() const noexcept override { return true; }

 private:
  const std::shared_ptr<FakeEngineState> state_;
};

inline device::LaneOptions on_virtual_clock(std::shared_ptr<VirtualClock> clock,
                                            std::shared_ptr<device::FaultPoint> faults = nullptr) {
  device::LaneOptions options;
  options.clock = std::move(clock);
  options.fault_point = std::move(faults);
  return options;
}

/// A device over the fake engine with one executable and one queue.
struct FakeDevice {
  explicit FakeDevice(std::size_t cores = 3, const device::LaneOptions& options = {},
                      bool event_driven = false) {
    state->event_driven = event_driven;
    device::DeviceInfo info;
    info.kind = "fake";
    info.instance = "fake:" + std::to_string(cores);
    info.capabilities.multi_core_jobs = true;
    for (std::size_t i = 0; i < cores; ++i) info.cores.push_back({"core" + std::to_string(i), 0});
    device = *device::make_laned_device(info, std::make_shared<FakeEngine>(state), options);
    executable = *device->prepare({}, {});
    queue = *device->make_queue({});
  }
  /// A submission on bindings of its own, input values all `x`.
  device::Submission job(device::CoreSet cores = {}, float x = 1) const {
    device::Submission submission;
    submission.executable = executable;
    submission.bindings = *executable->new_bindings();
    submission.cores = cores;
    auto* values = static_cast<float*>(submission.bindings->input(0)->data);
    for (int i = 0; i < 4; ++i) values[i] = x;
    return submission;
  }
  static float result(const device::Submission& submission) {
    return static_cast<const float*>(submission.bindings->output(0)->data)[3];
  }

  std::shared_ptr<FakeEngineState> state = std::make_shared<FakeEngineState>();
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Executable> executable;
  std::shared_ptr<device::Queue> queue;
};

}  // namespace corelane::lanes
