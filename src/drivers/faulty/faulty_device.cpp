#include <typeinfo>

#include "corelane/driver/forwarding_device.h"
#include "device/registry/device_wrappers.h"
#include "drivers/faulty/faulty_objects.h"

namespace corelane::drivers::faulty {
namespace {

using device::Device;
using device::Queue;
using device::Submission;

class FaultyQueue final : public device::ForwardingQueue {
 public:
  FaultyQueue(std::shared_ptr<Queue> below, std::shared_ptr<Device> device,
              std::shared_ptr<FaultDice> dice)
      : ForwardingQueue(std::move(below), std::move(device)), dice_(std::move(dice)) {}

  Result<std::shared_ptr<Completion>> submit(const Submission& job) override {
    CORELANE_ASSIGN(Submission below, unwrapped(job));
    const ResultFault fault = dice_->for_job();
    if (fault == ResultFault::kNone) {
      CORELANE_ASSIGN(std::shared_ptr<Completion> completion, inner().submit(below));
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
      Status status = inner().run(below, record);
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

 private:
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
    return below;
  }

  Result<std::shared_ptr<Completion>> submit_struck(const Submission& job, Submission below,
                                                    ResultFault fault) {
    auto bindings = std::static_pointer_cast<FaultyBindings>(job.bindings);
    auto struck = std::make_shared<FaultyCompletion>(bindings, device().clock(),
                                                     std::exchange(below.signal, {}));
    CORELANE_ASSIGN(std::shared_ptr<Completion> inner, inner().submit(below));
    bindings->is_short = false;
    struck->watch(std::move(inner), fault, dice_->number());
    return struck;
  }

  const std::shared_ptr<FaultDice> dice_;
};

class FaultyDevice final : public device::ForwardingDevice {
 public:
  FaultyDevice(std::shared_ptr<Device> below, const FaultPlan& plan)
      : ForwardingDevice(std::move(below)), dice_(std::make_shared<FaultDice>(plan)) {}

  Result<std::shared_ptr<device::Buffer>> create_buffer(
      std::size_t size, const device::BufferOptions& options) override {
    if (dice_->for_allocation())
      return error(Code::kOutOfMemory, "no memory for {} bytes (injected fault 'oom')", size);
    return inner()->create_buffer(size, options);
  }
  Result<std::shared_ptr<Executable>> prepare(const device::Image& image,
                                              const device::PrepareOptions& options) override {
    CORELANE_ASSIGN(std::shared_ptr<Executable> executable, inner()->prepare(image, options));
    return std::make_shared<FaultyExecutable>(std::move(executable), dice_, inner().get());
  }
  Result<std::shared_ptr<Queue>> make_queue(const device::QueueOptions& options) override {
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
