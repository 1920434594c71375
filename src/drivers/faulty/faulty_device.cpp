#include <algorithm>
#include <memory>
#include <random>
#include <typeinfo>

#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/device/fault.h"
#include "corelane/driver/forwarding_device.h"
#include "device/registry/device_wrappers.h"

namespace corelane::drivers::faulty {
namespace {

using namespace device;  // A wrapper speaks of the contract alone.

/// What strikes one job's result.
enum class ResultFault : std::uint8_t { kNone, kShort, kFlip };

/// Draws faults of a plan, reproducibly by order of calls. Any thread.
class FaultDice {
 public:
  explicit FaultDice(const FaultPlan& plan) : plan_(plan), random_(plan.seed + 1) {}

  /// One number for both faults, so that they exclude each other; none where none can strike.
  ResultFault for_job() {
    if (!strikes_results()) return ResultFault::kNone;
    const double x = draw();
    if (x < plan_.short_result) return ResultFault::kShort;
    return x < plan_.short_result + plan_.flip ? ResultFault::kFlip : ResultFault::kNone;
  }

  bool for_allocation() { return plan_.oom > 0 && draw() < plan_.oom; }

  std::uint64_t number() {
    const MutexLock lock(mutex_);
    return random_();
  }

  bool strikes_results() const noexcept { return plan_.short_result + plan_.flip > 0; }

 private:
  /// 53 random bits, from 0 to below 1.
  double draw() {
    const MutexLock lock(mutex_);
    return static_cast<double>(random_() >> 11) * 0x1p-53;
  }

  const FaultPlan plan_;
  Mutex mutex_{LockRank::kLeaf};
  std::mt19937_64 random_ CORELANE_GUARDED_BY(mutex_);
};

/// Passes on to the bindings of the device below.
class FaultyBindings final : public Bindings {
 public:
  FaultyBindings(std::shared_ptr<Bindings> bindings, std::shared_ptr<const Executable> owner)
      : inner(std::move(bindings)), executable(std::move(owner)) {}

  Status set_input(std::size_t index, const TensorRef& tensor) override {
    return inner->set_input(index, tensor);
  }
  Status set_output(std::size_t index, const TensorRef& tensor) override {
    return inner->set_output(index, tensor);
  }
  Result<TensorRef> input(std::size_t index) override { return inner->input(index); }

  Result<TensorRef> output(std::size_t index) override { return inner->output(index); }
  Result<std::vector<LayerTime>> layer_times() const override { return inner->layer_times(); }

  /// Inverts one bit of the results.
  void flip(std::uint64_t random) {
    const std::size_t count = executable->outputs().size();
    for (std::size_t i = 0; i < count; ++i) {
      // From a random one on, the first that has bytes.
      const auto tensor = inner->output((random + i) % count);
      if (!tensor || tensor->size == 0) continue;
      const std::size_t bit = random % (tensor->size * 8);
      static_cast<unsigned char*>(tensor->data)[bit / 8] ^=
          static_cast<unsigned char>(1U << bit % 8);
      return;
    }
  }

  const std::shared_ptr<Bindings> inner;
  const std::shared_ptr<const Executable> executable;
};

/// Passes on to the residence below, which knows its own executables alone.
class FaultyResidence final : public Residence {
 public:
  FaultyResidence(std::shared_ptr<Residence> below, const void* device)
      : inner_(std::move(below)), owner_(device) {}

  CoreSet cores() const noexcept override { return inner_->cores(); }
  Residency residency() const noexcept override { return inner_->residency(); }
  Status add(const std::shared_ptr<Executable>& executable) override;

 private:
  const std::shared_ptr<Residence> inner_;
  const void* const owner_;
};

/// Passes on to the executable below; its bindings and residences are wrapped.
class FaultyExecutable final : public Executable,
                               public std::enable_shared_from_this<FaultyExecutable> {
 public:
  FaultyExecutable(std::shared_ptr<Executable> executable, std::shared_ptr<FaultDice> dice,
                   const void* device)
      : inner(std::move(executable)), owner(device), dice_(std::move(dice)) {}

  const std::vector<TensorDesc>& inputs() const noexcept override { return inner->inputs(); }
  const std::vector<TensorDesc>& outputs() const noexcept override { return inner->outputs(); }
  Placement placement() const noexcept override { return inner->placement(); }
  bool from_precompiled() const noexcept override { return inner->from_precompiled(); }
  device::EngineChoice engine() const override { return inner->engine(); }
  bool lost() const noexcept override { return inner->lost(); }
  MemoryFigures memory() const override { return inner->memory(); }

  Result<std::shared_ptr<Bindings>> new_bindings() override {
    if (dice_->for_allocation())
      return error(Code::kOutOfMemory, "no memory for bindings (injected fault 'oom')");
    CORELANE_ASSIGN(std::shared_ptr<Bindings> bindings, inner->new_bindings());
    return std::make_shared<FaultyBindings>(std::move(bindings), shared_from_this());
  }

  Result<std::shared_ptr<Residence>> make_resident(const CoreSet& cores,
                                                   Residency residency) override {
    CORELANE_ASSIGN(std::shared_ptr<Residence> below, inner->make_resident(cores, residency));
    return std::make_shared<FaultyResidence>(std::move(below), owner);
  }
  Result<Precompiled> export_precompiled() const override { return inner->export_precompiled(); }

  const std::shared_ptr<Executable> inner;
  const void* const owner;  ///< The device below, for recognition.

 private:
  const std::shared_ptr<FaultDice> dice_;
};

Status FaultyResidence::add(const std::shared_ptr<Executable>& executable) {
  const Executable* given = executable.get();
  const bool known = given != nullptr && typeid(*given) == typeid(FaultyExecutable) &&
                     static_cast<const FaultyExecutable*>(given)->owner == owner_;
  return inner_->add(known ? static_cast<const FaultyExecutable*>(given)->inner : executable);
}

/// The completion of a struck job: done once the fault was applied to the result.
class FaultyCompletion final : public Completion,
                               public std::enable_shared_from_this<FaultyCompletion> {
 public:
  FaultyCompletion(std::shared_ptr<FaultyBindings> bindings, std::shared_ptr<Clock> clock,
                   std::vector<std::shared_ptr<Fence>> signals)
      : bindings_(std::move(bindings)),
        signals_(std::move(signals)),
        done_(std::make_shared<Fence>(std::move(clock))) {}

  /// Attaches to the job below, which applies `fault` when it succeeded.
  void watch(std::shared_ptr<Completion> inner, ResultFault fault, std::uint64_t random) {
    inner_ = std::move(inner);
    inner_->on_done(sure_once<void(Completion&)>([self = shared_from_this(), fault,
                                                  random](Completion& done) {
      Status status = done.status();
      if (status.ok() && fault == ResultFault::kFlip) self->bindings_->flip(random);
      // As a driver that counts the bytes of its results.
      if (status.ok() && fault == ResultFault::kShort)
        status = error(Code::kBadResult, "the result of job {} is short (injected fault 'short')",
                       done.record().id);
      // Before the fence: who is woken reads it without a lock.
      self->status_ = status;
      self->done_->signal();
      for (const auto& fence : self->signals_) fence->signal(status);
    }));
  }

  /// Signalled when the job is done.
  const std::shared_ptr<Fence>& end() const noexcept { return done_; }

  bool done() const noexcept override { return done_->signalled(); }
  bool released() const noexcept override { return done() && inner_->released(); }
  bool wait(TimePoint until) override { return inner_->wait(until) && done_->wait(until); }
  bool wait_released(TimePoint until) override {
    return wait(until) && inner_->wait_released(until);
  }

  Status status() const override {
    if (done()) return status_;  // Written before.
    return error(Code::kWrongState,
                 "the job is not done; wait for it before asking for its status");
  }

  JobRecord record() const override {
    if (!done()) return {};
    JobRecord record = inner_->record();
    record.code = status_.code();
    return record;
  }
  bool cancel() override { return inner_->cancel(); }

  void on_done(std::function<void(Completion&)> f) override {
    done_->on_signal(sure_once<void(const Status&)>(
        [self = shared_from_this(), f = std::move(f)](const Status&) { f(*self); }));
  }

 private:
  const std::shared_ptr<FaultyBindings> bindings_;
  const std::vector<std::shared_ptr<Fence>> signals_;
  std::shared_ptr<Completion> inner_;
  Status status_;
  const std::shared_ptr<Fence> done_;
};

/// Strikes jobs on their way; what it passes on belongs to the device below.
class FaultyQueue final : public ForwardingQueue {
 public:
  FaultyQueue(std::shared_ptr<Queue> below, std::shared_ptr<Device> device,
              std::shared_ptr<FaultDice> dice)
      : ForwardingQueue(std::move(below), std::move(device)), dice_(std::move(dice)) {}

  Result<std::shared_ptr<Completion>> submit(const Submission& job) override {
    CORELANE_ASSIGN(Submission below, unwrapped(job));
    const ResultFault fault = dice_->for_job();
    if (fault == ResultFault::kNone) return inner().submit(below);
    return submit_struck(job, std::move(below), fault);
  }

  Status run(const Submission& job, JobRecord* record) override {
    CORELANE_ASSIGN(Submission below, unwrapped(job));
    const ResultFault fault = dice_->for_job();
    // A job that nothing strikes runs as without this wrapper, in the caller's thread where it can.
    if (fault == ResultFault::kNone) return inner().run(below, record);
    CORELANE_ASSIGN(const std::shared_ptr<Completion> completion,
                    submit_struck(job, std::move(below), fault));
    completion->wait(kNever);
    // An abandoned job may still use the caller's memory, which the device shields under a deadline
    // alone.
    if (job.deadline == kNever || job.direct_user_memory) completion->wait_released(kNever);
    if (record != nullptr) *record = completion->record();
    return completion->status();
  }

  /// A struck job is done later than the one below.
  std::size_t depth() const override {
    const std::size_t below = inner().depth();
    const MutexLock lock(mutex_);
    const auto struck = std::count_if(ends_.begin(), ends_.end(),
                                      [](const auto& end) { return !end->signalled(); });
    return std::max(below, static_cast<std::size_t>(struck));
  }
  bool drain(TimePoint until) override {
    if (!inner().drain(until)) return false;
    SureVector<std::shared_ptr<Fence>> ends;
    {
      const MutexLock lock(mutex_);
      ends = ends_;
    }
    return std::all_of(ends.begin(), ends.end(), [&](const auto& end) { return end->wait(until); });
  }

 private:
  /// Objects of another device would be cast to what they are not.
  Result<Submission> unwrapped(const Submission& job) const {
    const Executable* executable = job.executable.get();
    const Bindings* bindings = job.bindings.get();
    const bool known = executable != nullptr && bindings != nullptr &&
                       typeid(*executable) == typeid(FaultyExecutable) &&
                       typeid(*bindings) == typeid(FaultyBindings) &&
                       static_cast<const FaultyExecutable*>(executable)->owner == &device() &&
                       static_cast<const FaultyBindings*>(bindings)->executable == job.executable;
    if (!known)
      return error(Code::kInvalidArgument,
                   "executable and bindings of a submission must both be made by the device '{}'",
                   device().info().instance);
    Submission below = job;
    below.executable = static_cast<FaultyExecutable&>(*job.executable).inner;
    below.bindings = static_cast<FaultyBindings&>(*job.bindings).inner;
    below.here_if_brief = false;  // Every job goes the way on which faults strike.
    return below;
  }

  /// The job's fences are taken over: they are signalled when the fault is in the result.
  Result<std::shared_ptr<Completion>> submit_struck(const Submission& job, Submission below,
                                                    ResultFault fault) {
    auto bindings = std::static_pointer_cast<FaultyBindings>(job.bindings);
    auto struck = std::make_shared<FaultyCompletion>(bindings, device().clock(),
                                                     std::exchange(below.signal, {}));
    CORELANE_ASSIGN(std::shared_ptr<Completion> inner, inner().submit(below));
    {
      const MutexLock lock(mutex_);
      // Forgotten here, since a job does not know its queue when it ends.
      std::erase_if(ends_, [](const auto& end) { return end->signalled(); });
      ends_.push_back(struck->end());
    }
    struck->watch(std::move(inner), fault, dice_->number());
    return struck;
  }

  const std::shared_ptr<FaultDice> dice_;
  mutable Mutex mutex_{LockRank::kLeaf};
  /// The ends of struck jobs: of all that are not done, and of some that are.
  SureVector<std::shared_ptr<Fence>> ends_ CORELANE_GUARDED_BY(mutex_);
};

class FaultyDevice final : public ForwardingDevice {
 public:
  FaultyDevice(std::shared_ptr<Device> below, const FaultPlan& plan)
      : ForwardingDevice(std::move(below)), dice_(std::make_shared<FaultDice>(plan)) {}

  Result<std::shared_ptr<Buffer>> create_buffer(std::size_t size,
                                                const BufferOptions& options) override {
    if (dice_->for_allocation())
      return error(Code::kOutOfMemory, "no memory for {} bytes (injected fault 'oom')", size);
    return inner()->create_buffer(size, options);
  }
  Result<std::shared_ptr<Executable>> prepare(const Image& image,
                                              const PrepareOptions& options) override {
    CORELANE_ASSIGN(std::shared_ptr<Executable> executable, inner()->prepare(image, options));
    return std::make_shared<FaultyExecutable>(std::move(executable), dice_, inner().get());
  }
  Result<std::shared_ptr<Queue>> make_queue(const QueueOptions& options) override {
    CORELANE_ASSIGN(std::shared_ptr<Queue> queue, inner()->make_queue(options));
    return std::make_shared<FaultyQueue>(std::move(queue), inner(), dice_);
  }

 private:
  const std::shared_ptr<FaultDice> dice_;
};

}  // namespace
}  // namespace corelane::drivers::faulty

namespace corelane::device {

std::shared_ptr<Device> wrap_faulty(std::shared_ptr<Device> inner, const FaultPlan& plan) {
  return std::make_shared<drivers::faulty::FaultyDevice>(std::move(inner), plan);
}

}  // namespace corelane::device
