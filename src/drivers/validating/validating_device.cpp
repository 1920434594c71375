#include <fmt/ranges.h>

#include <algorithm>

#include "corelane/device/soonest_engine.h"
#include "corelane/driver/forwarding_device.h"
#include "device/fence_list.h"
#include "device/registry/device_wrappers.h"

namespace corelane::drivers::validating {
namespace {

using namespace device;  // A wrapper speaks of the contract alone.

/// Records a core, which a device allocates at once.
constexpr std::size_t kMaxTrace = std::size_t{1} << 20;

bool is_priority(std::int32_t priority) noexcept { return priority >= -128 && priority <= 127; }

Status check_priority(std::string_view what, std::int32_t priority) {
  if (is_priority(priority)) return {};
  return error(Code::kInvalidArgument, "{} {} is not from -128 to 127", what, priority);
}

/// What no driver can make sense of; the bytes are the driver's to judge.
Status check_image(const Image& image) {
  if (image.kind.empty())
    return error(Code::kInvalidArgument, "the image has no kind; set it, such as \"onnx\"");
  if (image.bytes.empty())
    return error(Code::kInvalidArgument, "the image of kind '{}' is empty", image.kind);
  if (!image.precompiled.empty() && image.precompiled_tag.empty())
    return error(Code::kInvalidArgument,
                 "the image has a pre-compiled form without its tag; set precompiled_tag");
  return {};
}

Status check_options(const PrepareOptions& options) {
  for (std::size_t i = 0; i < options.input_shapes.size(); ++i)
    for (const std::int64_t dim : options.input_shapes[i].dims())
      if (dim < 0 && dim != Shape::kOpen)
        return error(Code::kInvalidArgument,
                     "input shape {} is {}; dimensions are 0 or more, or open", i,
                     options.input_shapes[i].to_string());
  for (const std::string& name : options.exposed_values)
    if (name.empty()) return error(Code::kInvalidArgument, "a value to expose has an empty name");
  for (const auto& op : options.custom_operators)
    if (op.type.empty())
      return error(Code::kInvalidArgument, "a custom operator has an empty type");
  if (!options.custom_operators.empty() && options.host_operators == nullptr)
    return error(Code::kInvalidArgument,
                 "custom operator '{}' is declared without a table of host operators; set "
                 "PrepareOptions::host_operators",
                 options.custom_operators.front().type);
  return {};
}

/// A device with one engine has no names for it.
Status check_engine(const std::string& wish, const DeviceInfo& info) {
  const std::vector<std::string>& names = info.engines;
  // An empty wish is the device's own choice.
  if (wish.empty() || (wish == kSoonestEngine && !names.empty())) return {};
  if (std::ranges::find(names, engine_of_wish(wish)) != names.end()) return {};
  if (names.empty())
    return error(Code::kUnsupported,
                 "engine '{}': device '{}' has one engine alone; leave the engine out", wish,
                 info.instance);
  return error(Code::kUnsupported, "engine '{}': device '{}' has {}", wish, info.instance,
               fmt::join(names, ", "));
}

/// Leaves to the device what only it knows: whether executable and bindings are its own.
class ValidatingQueue final : public ForwardingQueue {
 public:
  ValidatingQueue(std::shared_ptr<Queue> inner, const std::shared_ptr<Device>& device)
      : ForwardingQueue(std::move(inner), device), cores_(device->info().cores.size()) {}

  Result<std::shared_ptr<Completion>> submit(const Submission& job) override {
    if (!is_sound(job)) CORELANE_TRY(check(job));
    return inner().submit(job);
  }

  Status run(const Submission& job, JobRecord* record) override {
    if (!is_sound(job)) CORELANE_TRY(check(job));
    return inner().run(job, record);
  }

 private:
  static bool is_complete(const Submission& job) noexcept {
    return job.executable != nullptr && job.bindings != nullptr;
  }
  /// True for most that pass check(), without a failure to be made: each run asks.
  bool is_sound(const Submission& job) const noexcept {
    return is_complete(job) && job.cores.fits(cores_) && is_priority(job.priority) &&
           job.batch != 0 && job.wait.empty() && job.signal.empty();
  }
  Status check(const Submission& job) const {
    if (!is_complete(job))
      return error(Code::kInvalidArgument, "a submission needs {}; set it before submitting",
                   job.executable == nullptr ? "an executable" : "bindings");
    CORELANE_TRY(job.cores.check(cores_));
    CORELANE_TRY(check_priority("priority", job.priority));
    if (job.batch == 0)
      return error(Code::kInvalidArgument, "a job of 0 samples; batch is 1 or more");
    CORELANE_TRY(check_fences(job.wait, "wait"));
    return check_fences(job.signal, "signal");
  }

  const std::size_t cores_;
};

/// Written so that a NaN is refused.
Status check_share(const QueueOptions& options) {
  constexpr double kMostWeight = 1e6;
  if (!(options.weight > 0 && options.weight <= kMostWeight))
    return error(Code::kInvalidArgument,
                 "queue '{}' has the weight {}; above 0 and up to {} is allowed", options.name,
                 options.weight, kMostWeight);
  if (!(options.time_cap >= 0 && options.time_cap <= 1))
    return error(Code::kInvalidArgument,
                 "queue '{}' is capped at {} of the device's time; above 0 and up to 1 is allowed, "
                 "and 0 for no cap",
                 options.name, options.time_cap);
  if (options.cap_window <= Duration{})
    return error(Code::kInvalidArgument,
                 "the window of queue '{}''s cap is {} ns; above 0 is allowed", options.name,
                 options.cap_window.count());
  return {};
}

/// Checks what the contract asks of callers, so that no driver has to.
class ValidatingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  Result<std::shared_ptr<Buffer>> create_buffer(std::size_t size,
                                                const BufferOptions& options) override {
    if (size == 0)
      return error(Code::kInvalidArgument, "a buffer of 0 bytes; ask for at least 1 byte");
    return inner()->create_buffer(size, options);
  }
  Result<std::shared_ptr<Buffer>> import_fd(int fd, std::size_t size, std::size_t offset) override {
    if (fd < 0 || size == 0)
      return error(Code::kInvalidArgument,
                   "import of {} bytes of descriptor {}; pass an open descriptor and a size", size,
                   fd);
    return inner()->import_fd(fd, size, offset);
  }
  Result<std::shared_ptr<Buffer>> import_user(void* data, std::size_t size) override {
    if (data == nullptr || size == 0)
      return error(Code::kInvalidArgument,
                   "import of {} bytes of user memory at {}; pass an address and a size", size,
                   data);
    return inner()->import_user(data, size);
  }
  Result<std::shared_ptr<Executable>> prepare(const Image& image,
                                              const PrepareOptions& options) override {
    CORELANE_TRY(check_image(image));
    CORELANE_TRY(check_options(options));
    CORELANE_TRY(check_engine(options.engine, info()));
    return inner()->prepare(image, options);
  }
  Result<std::shared_ptr<Queue>> make_queue(const QueueOptions& options) override {
    CORELANE_TRY(check_priority("queue priority", options.priority));
    CORELANE_TRY(check_share(options));
    CORELANE_ASSIGN(std::shared_ptr<Queue> queue, inner()->make_queue(options));
    return std::make_shared<ValidatingQueue>(std::move(queue), inner());
  }
  Status reset(const CoreSet& cores) override {
    CORELANE_TRY(cores.check(info().cores.size()));
    return inner()->reset(cores);
  }
  Status set_trace(std::size_t records_per_core) override {
    if (records_per_core > kMaxTrace)
      return error(Code::kInvalidArgument, "a trace of {} records per core; at most {}",
                   records_per_core, kMaxTrace);
    return inner()->set_trace(records_per_core);
  }
};

}  // namespace
}  // namespace corelane::drivers::validating

namespace corelane::device {

std::shared_ptr<Device> wrap_validating(std::shared_ptr<Device> inner) {
  return std::make_shared<drivers::validating::ValidatingDevice>(std::move(inner));
}

}  // namespace corelane::device
