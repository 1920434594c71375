#include <typeinfo>

#include "device/registry/device_wrappers.h"
#include "drivers/faulty/faulty_objects.h"

namespace corelane::device {
namespace {

class FaultyQueue final : public Queue {
 public:
  FaultyQueue(std::shared_ptr<Queue> inner, std::shared_ptr<Device> device,
              std::shared_ptr<FaultDice> dice)
      : inner_(std::move(inner)), device_(std::move(device)), dice_(std::move(dice)) {}

  Result<std::shared_ptr<Completion>> submit(const Submission& job) override {
    CORELANE_ASSIGN(Submission below, unwrapped(job));
    const ResultFault fault = dice_->for_job();
    if (fault == ResultFault::kNone) {
      CORELANE_ASSIGN(std::shared_ptr<Completion> completion, inner_->submit(below));
      static_cast<FaultyBindings&>(*job.bindings).is_short = false;
      return completion;
    }
    return submit_struck(job, std::move(below), fault);
  }

  Status run(const Submission& job, JobRecord* record) override {
    CORELANE_ASSIGN(Submission below, unwrapped(job));
    const ResultFault fault = dice_->for_job();
    auto& bindings = static_cast<FaultyBindings&>(*job.bindings);
    if (fault == ResultFault::kNone) {
      Status status = inner_->run(below, record);
      if (status.code() != Code::kBusy) bindings.is_short = false;
      return status;
    }
    CORELANE_ASSIGN(const std::shared_ptr<Completion> completion,
                    submit_struck(job, std::move(below), fault));
    completion->wait(kNever);
    if (job.deadline == kNever || job.direct_user_memory) completion->wait_released(kNever);
    if (record != nullptr) *record = completion->record();
    return completion->status();
  }

  std::size_t depth() const override { return inner_->depth(); }
  bool drain(TimePoint until) override { return inner_->drain(until); }

 private:
  Result<Submission> unwrapped(const Submission& job) const {
    const Executable* executable = job.executable.get();
    const Bindings* bindings = job.bindings.get();
    const bool known = executable != nullptr && bindings != nullptr &&
                       typeid(*executable) == typeid(FaultyExecutable) &&
                       typeid(*bindings) == typeid(FaultyBindings) &&
                       static_cast<const FaultyExecutable*>(executable)->owner == device_.get() &&
                       static_cast<const FaultyBindings*>(bindings)->executable == job.executable;
    if (!known)
      return error(Code::kInvalidArgument,
                   "executable and bindings of a submission must both be made by the device '{}'",
                   device_->info().instance);
    Submission below = job;
    below.executable = static_cast<FaultyExecutable&>(*job.executable).inner;
    below.bindings = static_cast<FaultyBindings&>(*job.bindings).inner;
    return below;
  }

  Result<std::shared_ptr<Completion>> submit_struck(const Submission& job, Submission below,
                                                    ResultFault fault) {
    auto bindings = std::static_pointer_cast<FaultyBindings>(job.bindings);
    auto struck = std::make_shared<FaultyCompletion>(bindings, device_->clock(),
                                                     std::exchange(below.signal, {}));
    CORELANE_ASSIGN(std::shared_ptr<Completion> inner, inner_->submit(below));
    bindings->is_short = false;
    struck->watch(std::move(inner), fault, dice_->number());
    return struck;
  }

  const std::shared_ptr<Queue> inner_;
  const std::shared_ptr<Device> device_;
  const std::shared_ptr<FaultDice> dice_;
};

class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::shared_ptr<Device> inner, const FaultPlan& plan)
      : inner_(std::move(inner)), dice_(std::make_shared<FaultDice>(plan)) {}

  const DeviceInfo& info() const noexcept override { return inner_->info(); }
  Health health() const noexcept override { return inner_->health(); }
  const std::shared_ptr<Clock>& clock() const noexcept override { return inner_->clock(); }
  MemoryFigures memory() const override { return inner_->memory(); }
  DeviceCounters counters() const override { return inner_->counters(); }

  Result<std::shared_ptr<Buffer>> create_buffer(std::size_t size,
                                                const BufferOptions& options) override {
    if (dice_->for_allocation())
      return error(Code::kOutOfMemory, "no memory for {} bytes (injected fault 'oom')", size);
    return inner_->create_buffer(size, options);
  }
  Result<std::shared_ptr<Buffer>> import_fd(int fd, std::size_t size, std::size_t offset) override {
    return inner_->import_fd(fd, size, offset);
  }
  Result<std::shared_ptr<Buffer>> import_user(void* data, std::size_t size) override {
    return inner_->import_user(data, size);
  }
  Result<std::shared_ptr<Executable>> prepare(const Image& image,
                                              const PrepareOptions& options) override {
    CORELANE_ASSIGN(std::shared_ptr<Executable> executable, inner_->prepare(image, options));
    return std::make_shared<FaultyExecutable>(std::move(executable), dice_, inner_.get());
  }
  Result<std::shared_ptr<Queue>> make_queue(const QueueOptions& options) override {
    CORELANE_ASSIGN(std::shared_ptr<Queue> queue, inner_->make_queue(options));
    return std::make_shared<FaultyQueue>(std::move(queue), inner_, dice_);
  }
  Status reset(const CoreSet& cores) override { return inner_->reset(cores); }
  Status set_arbiter(std::shared_ptr<const Arbiter> arbiter) override {
    return inner_->set_arbiter(std::move(arbiter));
  }
  Status set_event_sink(EventSink sink) override { return inner_->set_event_sink(std::move(sink)); }
  Status set_trace(std::size_t records_per_core) override {
    return inner_->set_trace(records_per_core);
  }
  Result<std::vector<JobRecord>> read_trace() const override { return inner_->read_trace(); }

 private:
  const std::shared_ptr<Device> inner_;
  const std::shared_ptr<FaultDice> dice_;
};

}  // namespace

std::shared_ptr<Device> wrap_faulty(std::shared_ptr<Device> inner, const FaultPlan& plan) {
  return std::make_shared<FaultyDevice>(std::move(inner), plan);
}

}  // namespace corelane::device
