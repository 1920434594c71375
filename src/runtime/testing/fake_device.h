/// A device for the tests of the runtime: computes y = 2 x + 1 per element in the calling thread or
/// when the test says so, remembers what it was asked, refuses what it is told to refuse.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/device/soonest_engine.h"

namespace corelane::testing {

struct FakeConfig {
  std::vector<TensorDesc> inputs;   ///< Open dimensions allowed.
  std::vector<TensorDesc> outputs;  ///< f32; open dimensions take those of input 0.
  bool dynamic_shapes = true;
  bool refuse_open = false;        ///< prepare() fails where a shape is open.
  bool refuse_open_batch = false;  ///< prepare() fails where a first dimension is open.
  std::vector<std::string> image_kinds = {"onnx"};
  std::string kind = "fake";
  std::string engine = "fake 1";
  std::vector<std::string> engines;  ///< As DeviceInfo::engines.
  std::string soonest;  ///< Of `engines`, without pre-compiled forms; empty: the first one, which
                        ///< is not named.
  bool precompiled = true;
  bool hold = false;  ///< Submitted jobs wait for FakeDevice::finish_next().
  std::size_t cores = 3;
  bool multi_core_jobs = true;
  bool wide_jobs_wait = false;                  ///< Submitted jobs on several cores never get them.
  device::MemoryFigures figures{1000, 300, 0};  ///< Of each executable.
};

class FakeCompletion final : public device::Completion {
 public:
  bool done() const noexcept override { return locked(done_); }
  bool released() const noexcept override { return locked(released_); }
  bool wait(TimePoint until) override {
    if (waits_for_cores && until != kNever) return done();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
    return true;
  }
  bool wait_released(TimePoint) override {
    if (awaited) std::exchange(awaited, nullptr)();
    return released();
  }
  Status status() const override { return locked(status_); }
  device::JobRecord record() const override { return locked(record_); }
  bool cancel() override { return waits_for_cores; }
  void on_done(std::function<void(device::Completion&)> f) override {
    {
      const std::lock_guard lock(mutex_);
      if (!done_) {
        callbacks_.push_back(std::move(f));
        return;
      }
    }
    f(*this);
  }
  void complete(Status status, const device::JobRecord& record, bool released) {
    std::vector<std::function<void(device::Completion&)>> callbacks;
    {
      const std::lock_guard lock(mutex_);
      status_ = std::move(status);
      record_ = record;
      done_ = true;
      released_ = released;
      callbacks.swap(callbacks_);
      changed_.notify_all();
    }
    for (const auto& f : callbacks) f(*this);
  }
  bool waits_for_cores = false;
  std::function<void()> awaited;  ///< Called by the first wait_released().
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
  }

 private:
  template <class T>
  T locked(const T& member) const {
    const std::lock_guard lock(mutex_);
    return member;
  }
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  bool released_ = false;
  Status status_;
  device::JobRecord record_;
  std::vector<std::function<void(device::Completion&)>> callbacks_;
};

class FakeBindings final : public device::Bindings {
 public:
  FakeBindings(std::vector<TensorDesc> inputs, std::vector<TensorDesc> outputs)
      : in_desc(std::move(inputs)),
        out_desc(std::move(outputs)),
        in(in_desc.size()),
        out(out_desc.size()),
        in_own(in.size()),
        out_own(out.size()),
        result(out.size()) {}

  Status set_input(std::size_t i, const device::TensorRef& t) override {
    if (t.data != nullptr && !in_desc[i].shape.accepts(t.shape))
      return error(Code::kShapeMismatch, "fake input {}", t.shape.to_string());
    in[i] = t;
    ++sets;
    return {};
  }
  Status set_output(std::size_t i, const device::TensorRef& t) override {
    if (t.data != nullptr && !out_desc[i].shape.accepts(t.shape))
      return error(Code::kShapeMismatch, "fake output {}", t.shape.to_string());
    out[i] = t;
    ++sets;
    return {};
  }
  Result<device::TensorRef> input(std::size_t i) override {
    if (in[i].data != nullptr) return in[i];
    return own(in_own[i], in_desc[i].shape);
  }
  Result<device::TensorRef> output(std::size_t i) override { return result[i]; }
  Result<std::vector<device::LayerTime>> layer_times() const override {
    return error(Code::kUnsupported, "fake");
  }

  Status compute() {
    CORELANE_ASSIGN(const device::TensorRef x, input(0));
    for (std::size_t o = 0; o < out.size(); ++o) {
      Shape shape = out_desc[o].shape;
      for (std::size_t d = 0; d < shape.rank(); ++d)
        if (shape[d] == Shape::kOpen) shape[d] = x.shape[d];
      device::TensorRef y = out[o];
      if (y.data == nullptr) {
        // The macro is two statements.
        CORELANE_ASSIGN(y, own(out_own[o], shape));
      }
      const std::size_t count = std::min(*shape.elements(), *x.shape.elements());
      const auto* from = static_cast<const float*>(x.data);
      auto* to = static_cast<float*>(y.data);
      for (std::size_t k = 0; k < count; ++k) to[k] = 2 * from[k] + 1;
      y.shape = shape;
      y.size = *shape.elements() * sizeof(float);
      result[o] = y;
      result[o].keep_alive = nullptr;
    }
    return {};
  }

  std::vector<TensorDesc> in_desc, out_desc;
  std::vector<device::TensorRef> in, out;
  std::vector<std::vector<float>> in_own, out_own;
  std::vector<device::TensorRef> result;
  int sets = 0;

 private:
  static Result<device::TensorRef> own(std::vector<float>& memory, const Shape& shape) {
    memory.resize(shape.elements().value());
    return device::TensorRef{memory.data(), memory.size() * sizeof(float), shape, nullptr};
  }
};

class FakeExecutable final : public device::Executable {
 public:
  std::vector<TensorDesc> in, out;
  bool precompiled = false;
  std::string engine_name;                         ///< It was prepared for that.
  std::string without_forms;                       ///< An engine that exports none.
  std::shared_ptr<const std::atomic<int>> losses;  ///< Of the device.
  int lost_at = 0;                                 ///< Which of them is its end.
  device::MemoryFigures figures;
  /// FakeDevice::on_bindings.
  std::shared_ptr<const std::function<Status(const std::string&)>> on_bindings;

  bool lost() const noexcept override { return *losses >= lost_at; }
  const std::vector<TensorDesc>& inputs() const noexcept override { return in; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return out; }
  device::Placement placement() const noexcept override { return device::Placement::kShared; }
  bool from_precompiled() const noexcept override { return precompiled; }
  device::EngineChoice engine() const override { return {engine_name, {}}; }
  device::MemoryFigures memory() const override { return figures; }
  Result<std::shared_ptr<device::Bindings>> new_bindings() override {
    if (*on_bindings) CORELANE_TRY((*on_bindings)(engine_name));
    return std::make_shared<FakeBindings>(in, out);
  }
  Result<std::shared_ptr<device::Residence>> make_resident(const device::CoreSet&,
                                                           device::Residency) override {
    return error(Code::kUnsupported, "fake: no residences");
  }
  Result<Precompiled> export_precompiled() const override {
    if (!engine_name.empty() && engine_name == without_forms)
      return error(Code::kUnsupported, "engine '{}' has no forms", engine_name);
    return Precompiled{ByteVector(16, std::byte{7}), "fake-tag"};
  }
};

class FakeDevice final : public device::Device, public std::enable_shared_from_this<FakeDevice> {
 public:
  explicit FakeDevice(FakeConfig c) : config(std::move(c)) {
    info_.kind = config.kind;
    info_.profile = "test";
    info_.instance = config.kind + ":test#0";
    info_.engine = config.engine;
    info_.engines = config.engines;
    info_.isa = "none";
    for (std::size_t i = 0; i < config.cores; ++i)
      info_.cores.push_back({"core" + std::to_string(i), 0});
    info_.capabilities = {
        config.multi_core_jobs, config.dynamic_shapes, true, true, true, config.precompiled, false,
        config.image_kinds};
  }

  FakeConfig config;
  std::shared_ptr<VirtualClock> time = std::make_shared<VirtualClock>();
  std::vector<device::PrepareOptions> prepared;  ///< Arguments of every prepare().
  std::vector<device::Image> images;
  /// Called first by every prepare(), in its thread; a failure is its result.
  std::function<Status(const device::PrepareOptions&)> on_prepare;
  /// Called first by every new_bindings(), with the engine's name; a failure is its result.
  std::shared_ptr<std::function<Status(const std::string&)>> on_bindings =
      std::make_shared<std::function<Status(const std::string&)>>();
  /// What a job takes on the engine that its executable was prepared for; 5 us where it is not
  /// here.
  std::map<std::string, Duration> run_times;
  /// The same for jobs on several cores, where these are to be told apart.
  std::map<std::string, Duration> wide_run_times;
  /// The same for jobs on one core that are submitted, as those are that run at the same time.
  std::map<std::string, Duration> run_times_at_once;
  std::uint64_t busy_cores = 0;       ///< By its counters.
  std::function<void()> on_submit;    ///< Called first by every submit(); may throw.
  bool refuses_second = false;        ///< A job is kBusy while one is in `not_awaited`.
  std::function<void()> on_counters;  ///< Called first by counters().
  /// Submitted jobs whose release nobody has waited for, and the most of them.
  std::shared_ptr<std::atomic<int>> not_awaited = std::make_shared<std::atomic<int>>(0);
  int most_not_awaited = 0;
  /// The same for executables with open dimensions, where these are to be told apart.
  std::map<std::string, Duration> open_run_times;
  std::optional<Duration> open_run_time;  ///< On any engine that is not in open_run_times.
  std::vector<std::weak_ptr<device::Executable>> made;
  /// How often it was lost: each time, what was prepared before is.
  std::shared_ptr<std::atomic<int>> losses = std::make_shared<std::atomic<int>>(0);
  device::Submission last;  ///< The last job submitted or run.
  std::deque<std::pair<device::Submission, std::shared_ptr<FakeCompletion>>> held;
  /// Held by each run() and submit(), for tests whose programs are timed meanwhile. Callbacks of a
  /// job may submit another one.
  std::recursive_mutex run_mutex;
  Status next_status;  ///< What the next job ends with; nothing is computed when it is a failure.

  /// Ends the oldest held job; `released` false leaves its memory in use, as an abandoned job does.
  std::shared_ptr<FakeCompletion> finish_next(Status status = {}, bool released = true) {
    auto [job, completion] = held.front();
    held.pop_front();
    if (status.ok()) status = compute(job);
    completion->complete(status, record(job, status, run_times_at_once), released);
    return completion;
  }

  const device::DeviceInfo& info() const noexcept override { return info_; }
  device::Health health() const noexcept override { return device::Health::kGood; }
  const std::shared_ptr<Clock>& clock() const noexcept override { return clock_; }
  device::MemoryFigures memory() const override { return {0, 0, 0, used_}; }
  device::DeviceCounters counters() const override {
    if (on_counters) on_counters();
    return {.busy_cores = busy_cores};
  }
  Result<std::shared_ptr<device::Buffer>> create_buffer(
      std::size_t size, const device::BufferOptions& options) override {
    return device::create_host_buffer(size, options);
  }
  Result<std::shared_ptr<device::Buffer>> import_fd(int fd, std::size_t size,
                                                    std::size_t offset) override {
    return device::import_fd_buffer(fd, size, offset);
  }
  Result<std::shared_ptr<device::Buffer>> import_user(void* data, std::size_t size) override {
    return device::import_user_buffer(data, size);
  }
  Result<std::shared_ptr<device::Executable>> prepare(
      const device::Image& image, const device::PrepareOptions& given) override {
    device::PrepareOptions options = given;
    options.engine = device::engine_of_wish(given.engine);
    if (on_prepare) CORELANE_TRY(on_prepare(options));
    {
      const std::lock_guard lock(prepared_mutex_);
      prepared.push_back(options);
      images.push_back(image);
    }
    auto executable = std::make_shared<FakeExecutable>();
    {
      const std::lock_guard lock(prepared_mutex_);
      made.push_back(executable);
    }
    executable->engine_name =
        options.engine == device::kSoonestEngine ? config.soonest : options.engine;
    executable->without_forms = config.soonest;
    executable->losses = losses;
    executable->on_bindings = on_bindings;
    executable->figures = config.figures;
    executable->lost_at = *losses + 1;
    executable->in = config.inputs;
    executable->out = config.outputs;
    for (std::size_t i = 0; i < options.input_shapes.size(); ++i) {
      const Shape& shape = options.input_shapes[i];
      if (config.refuse_open && !shape.is_static())
        return error(Code::kUnsupportedModel, "fake: open dimensions");
      if (config.refuse_open_batch && shape[0] == Shape::kOpen)
        return error(Code::kUnsupportedModel, "fake: open batch");
      executable->in[i].shape = shape;
    }
    for (TensorDesc& out : executable->out) {
      for (std::size_t d = 0; d < out.shape.rank() && !executable->in.empty(); ++d)
        if (out.shape[d] == Shape::kOpen) out.shape[d] = executable->in[0].shape[d];
    }
    for (const std::string& name : options.exposed_values) {
      executable->out.push_back(executable->out.front());
      executable->out.back().name = name;
    }
    executable->precompiled = image.precompiled_tag == "fake-tag";
    return executable;
  }
  Result<std::shared_ptr<device::Queue>> make_queue(const device::QueueOptions&) override;
  Status reset(const device::CoreSet&) override { return {}; }
  Status set_arbiter(std::shared_ptr<const device::Arbiter>) override { return {}; }
  Result<std::shared_ptr<device::Observation>> observe(device::ObserverOptions) override {
    return error(Code::kUnsupported, "fake: no observers");
  }
  Status set_trace(std::size_t) override { return {}; }
  Result<std::vector<device::JobRecord>> read_trace() const override {
    return error(Code::kWrongState, "fake");
  }

  Status compute(const device::Submission& job) {
    if (!next_status.ok()) return std::exchange(next_status, Status());
    return static_cast<FakeBindings&>(*job.bindings).compute();
  }
  device::JobRecord record(const device::Submission& job, const Status& status,
                           const std::map<std::string, Duration>& times = {}) {
    device::JobRecord r;
    r.id = ++jobs_;
    r.tag = job.tag;
    r.core_bits = 1;
    r.code = status.code();
    r.queued = TimePoint(std::chrono::microseconds(10));
    r.started = TimePoint(std::chrono::microseconds(12));
    const auto known = is_wide(job) ? times.end() : times.find(job.executable->engine().engine);
    r.ended = r.started + (known == times.end() ? run_time(job) : known->second);
    return r;
  }
  static bool is_wide(const device::Submission& job) {
    return job.cores.kind() == device::CoreSet::Kind::kPlatform || job.cores.count() > 1;
  }
  Duration run_time(const device::Submission& job) const {
    const device::Executable& executable = *job.executable;
    const std::string engine = executable.engine().engine;
    if (const auto wide = wide_run_times.find(engine); is_wide(job) && wide != wide_run_times.end())
      return wide->second;
    const auto is_open = [](const TensorDesc& x) { return !x.shape.is_static(); };
    if (std::ranges::any_of(executable.inputs(), is_open)) {
      const auto open = open_run_times.find(engine);
      if (open != open_run_times.end()) return open->second;
      if (open_run_time) return *open_run_time;
    }
    const auto scripted = run_times.find(engine);
    return scripted == run_times.end() ? std::chrono::microseconds(5) : scripted->second;
  }
  /// What its info and its figures say from now on.
  void set_memory_limit(std::size_t limit, std::size_t used) {
    info_.memory_limit = limit;
    used_ = used;
  }

 private:
  std::mutex prepared_mutex_;  ///< Guards `prepared` and `images` while threads prepare.
  device::DeviceInfo info_;
  std::shared_ptr<Clock> clock_ = time;
  std::uint64_t jobs_ = 0;
  std::size_t used_ = 0;  ///< Bytes that memory() reports.
};

class FakeQueue final : public device::Queue {
 public:
  explicit FakeQueue(std::shared_ptr<FakeDevice> device) : device_(std::move(device)) {}
  Result<std::shared_ptr<device::Completion>> submit(const device::Submission& job) override {
    const std::lock_guard lock(device_->run_mutex);
    if (device_->on_submit) device_->on_submit();
    if (device_->refuses_second && *device_->not_awaited > 0) return error(Code::kBusy, "fake");
    device_->last = job;
    auto completion = std::make_shared<FakeCompletion>();
    completion->awaited = [count = device_->not_awaited] { --*count; };
    device_->most_not_awaited = std::max(device_->most_not_awaited, ++*device_->not_awaited);
    if (device_->config.wide_jobs_wait && FakeDevice::is_wide(job)) {
      completion->waits_for_cores = true;
      return completion;
    }
    device_->held.emplace_back(job, completion);
    if (!device_->config.hold) device_->finish_next();
    return completion;
  }
  Status run(const device::Submission& job, device::JobRecord* record) override {
    const std::lock_guard lock(device_->run_mutex);
    device_->last = job;
    Status status = device_->compute(job);
    if (record != nullptr) *record = device_->record(job, status);
    return status;
  }
  std::size_t depth() const override { return device_->held.size(); }
  bool drain(TimePoint) override { return device_->held.empty(); }

 private:
  std::shared_ptr<FakeDevice> device_;
};

inline Result<std::shared_ptr<device::Queue>> FakeDevice::make_queue(const device::QueueOptions&) {
  return std::make_shared<FakeQueue>(shared_from_this());
}

inline TensorDesc f32_desc(std::string name, Shape shape) {
  TensorDesc desc;
  desc.name = std::move(name);
  desc.dtype = DType::kF32;
  desc.shape = std::move(shape);
  return desc;
}

}  // namespace corelane::testing
