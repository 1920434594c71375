#include "lanes/laned_device.h"

#include "base/guard.h"
#include "base/process/process_end.h"
#include "device/registry/device_wrappers.h"
#include "lanes/lane_scheduler.h"
#include "lanes/laned_executable.h"
#include "lanes/laned_queue.h"

namespace corelane::lanes {
namespace {

class LanedObservation final : public device::Observation {
 public:
  LanedObservation(std::shared_ptr<LanedDevice> device, std::shared_ptr<ObserverRing> ring)
      : device_(std::move(device)), ring_(std::move(ring)) {}
  ~LanedObservation() override { device_->scheduler().remove_observer(ring_); }
  std::uint64_t dropped() const override { return ring_->dropped(); }
  bool flush(TimePoint until) override { return device_->scheduler().flush(ring_, until); }

 private:
  const std::shared_ptr<LanedDevice> device_;
  const std::shared_ptr<ObserverRing> ring_;
};

/// What the engine's library throws is its failure; want of memory is nobody's.
Result<std::shared_ptr<device::LaneProgram>> prepared(device::LaneEngine& engine,
                                                      const device::Image& image,
                                                      const device::PrepareOptions& options) {
  try {
    return engine.prepare(image, options);
  } catch (const std::bad_alloc&) {
    return error(status_of_exception("preparing a network"));
  } catch (...) {
    return error(status_of_exception(fmt::format("the engine, preparing network '{}',", image.name),
                                     Code::kEngineFailed));
  }
}

}  // namespace

LanedDevice::LanedDevice(device::DeviceInfo info, std::shared_ptr<device::LaneEngine> engine,
                         const device::LaneOptions& options)
    : info_(std::move(info)),
      engine_(std::move(engine)),
      scheduler_(std::make_shared<LaneScheduler>(
          info_.cores.size(), options, engine_->event_driven(), info_.capabilities.multi_core_jobs,
          engine_->computes_in_caller())),
      ledger_(info_.instance, info_.memory_limit),
      leases_(options.lease, info_.instance, info_.cores.size(), options.clock) {
  engine_->set_log([weak = std::weak_ptr(scheduler_)](std::string line) {
    if (const auto scheduler = weak.lock()) scheduler->log(std::move(line));
  });
}

LanedDevice::~LanedDevice() { scheduler_->shutdown(); }

Status LanedDevice::device_of_the_parent() const {
  return error(Code::kWrongState,
               "device '{}' is the parent's: it was opened before this process was forked; open "
               "the device here, and prepare on it",
               info_.instance);
}

/// Where memory runs out, they see older ones.
void LanedDevice::publish_shared_figures() const noexcept {
  if (!leases_.publishes(clock()->now())) return;
  static_cast<void>(no_throw("publishing figures", [this]() -> Status {
    leases_.publish(scheduler_->lease_figures());
    return {};
  }));
}

/// Executables are asked without the lock: each asks its driver.
device::MemoryFigures LanedDevice::memory() const {
  device::MemoryFigures sum;
  sum.buffers = buffer_bytes_.load(std::memory_order_relaxed);
  std::vector<std::shared_ptr<const LanedExecutable>> alive;
  {
    const MutexLock lock(executables_mutex_);
    for (const LanedExecutable* executable : executables_)
      if (auto keep = executable->weak_from_this().lock()) alive.push_back(std::move(keep));
  }
  std::set<const SharedProgram*> counted;
  for (const auto& executable : alive) {
    sum.buffers += executable->buffer_bytes.load(std::memory_order_relaxed);
    if (counted.insert(&executable->shared()).second) sum += executable->program().memory();
  }
  return sum;
}

/// The buffer with this device kept alive, and `counted` bytes in the figures while it lives.
std::shared_ptr<device::Buffer> LanedDevice::held(std::shared_ptr<device::Buffer> buffer,
                                                  std::size_t counted) {
  // The pointer owns `keep` and the device: a buffer may outlive all other handles.
  device::Buffer* plain = buffer.get();
  buffer_bytes_ += counted;
  auto give_back = [device = shared_from_this(), keep = std::move(buffer),
                    counted](device::Buffer*) mutable {
    keep.reset();
    device->buffer_bytes_ -= counted;
    device->ledger_.give_back(counted);
  };
  return {plain, std::move(give_back)};
}

Result<std::shared_ptr<device::Buffer>> LanedDevice::create_buffer(
    std::size_t size, const device::BufferOptions& options) {
  CORELANE_TRY(ledger_.take(size, "a buffer"));
  auto buffer = device::create_host_buffer(size, options);
  if (buffer) return held(std::move(*buffer), size);
  ledger_.give_back(size);
  return buffer;
}

Result<std::shared_ptr<device::Buffer>> LanedDevice::import_fd(int fd, std::size_t size,
                                                               std::size_t offset) {
  CORELANE_ASSIGN(std::shared_ptr<device::Buffer> buffer,
                  device::import_fd_buffer(fd, size, offset));
  return held(std::move(buffer), 0);
}

Result<std::shared_ptr<device::Buffer>> LanedDevice::import_user(void* data, std::size_t size) {
  CORELANE_ASSIGN(std::shared_ptr<device::Buffer> buffer, device::import_user_buffer(data, size));
  return held(std::move(buffer), 0);
}

Result<std::shared_ptr<device::LaneProgram>> LanedDevice::prepare_program(
    const device::Image& image, const device::PrepareOptions& options) {
  const EngineVisit visit;
  if (!visit)
    return error(Code::kWrongState,
                 "the process has called exit(), and its engines are being taken apart; network "
                 "'{}' is not prepared",
                 image.name);
  auto program = prepared(*engine_, image, options);
  exit_waits_first();  // An engine loads its libraries when it is needed.
  if (!program || *program != nullptr) return program;
  return error(Code::kEngineFailed,
               "the driver of devices '{}' says that it prepared network '{}' and gave nothing; "
               "install another version of it",
               info_.kind, image.name);
}

/// One that is there already, or a new one. The engine makes it without the lock: where two threads
/// make the same at once, both get the one that is there first.
Result<std::shared_ptr<SharedProgram>> LanedDevice::program_of(
    const device::Image& image, const device::PrepareOptions& options, std::uint64_t generation) {
  std::shared_ptr<SharedProgram> found;
  {
    const MutexLock lock(executables_mutex_);
    found = programs_.find(image, options, generation);
  }
  if (found != nullptr) return found;
  CORELANE_ASSIGN(std::shared_ptr<device::LaneProgram> program, prepare_program(image, options));
  // Only where it is shared must the place in memory stay its own.
  auto made = std::make_shared<SharedProgram>(
      std::move(program), image.immutable ? image.keep_alive : nullptr, ledger_);
  const MutexLock lock(executables_mutex_);
  found = programs_.find(image, options, generation);
  if (found == nullptr) programs_.add(image, options, generation, made);
  return found == nullptr ? made : found;
}

Result<std::shared_ptr<device::Executable>> LanedDevice::prepare(
    const device::Image& image, const device::PrepareOptions& options) {
  // Asked first: a program that was being made when the device was lost must not count as new.
  CORELANE_ASSIGN(const std::uint64_t generation, scheduler_->generation());
  CORELANE_ASSIGN(std::shared_ptr<SharedProgram> program, program_of(image, options, generation));
  auto executable = std::make_shared<LanedExecutable>(shared_from_this(), std::move(program),
                                                      options.profile_layers, generation,
                                                      scheduler_->current_generation(), image.name);
  {
    const MutexLock lock(executables_mutex_);
    // Not owned: the executable owns the device, and removes itself.
    executables_.insert(executable.get());
  }
  // Only now is its size known.
  CORELANE_TRY(executable->recount());
  return executable;
}

Result<std::shared_ptr<device::Queue>> LanedDevice::make_queue(
    const device::QueueOptions& options) {
  return std::make_shared<LanedQueue>(shared_from_this(), scheduler_->make_queue(options));
}

Status LanedDevice::reset(const device::CoreSet& cores) {
  CORELANE_TRY(cores.check(info_.cores.size()));
  if (!cores.is_mask() && cores.kind() != device::CoreSet::Kind::kPlatform)
    return error(Code::kInvalidArgument,
                 "reset of '{}' does not say which cores; name them, such as '0,1', or use "
                 "'platform' for all",
                 cores.to_string());
  scheduler_->reset(cores.is_mask() ? cores.bits()
                                    : device::CoreSet::first(info_.cores.size()).bits());
  return {};
}

Result<std::shared_ptr<device::Observation>> LanedDevice::observe(device::ObserverOptions options) {
  constexpr std::size_t kMostWaiting = std::size_t{1} << 20;
  if (!options.on_event && !options.on_record)
    return error(Code::kInvalidArgument,
                 "an observer of '{}' without on_event and on_record; give one of them",
                 info_.instance);
  if (options.one_in == 0 || options.ring == 0 || options.ring > kMostWaiting)
    return error(Code::kInvalidArgument,
                 "an observer of one in {} with a ring of {}; one_in is at least 1, the ring 1 to "
                 "{}",
                 options.one_in, options.ring, kMostWaiting);
  auto ring = std::make_shared<ObserverRing>(options);
  scheduler_->add_observer(ring);
  return std::make_shared<LanedObservation>(shared_from_this(), std::move(ring));
}

void LanedDevice::remove(const LanedExecutable* executable) {
  const MutexLock lock(executables_mutex_);
  executables_.erase(executable);
}

}  // namespace corelane::lanes

namespace corelane::device {

Result<std::shared_ptr<Device>> make_laned_device(DeviceInfo info,
                                                  std::shared_ptr<LaneEngine> engine,
                                                  const LaneOptions& options) {
  if (info.cores.empty() || info.cores.size() > CoreSet::kMaxCores)
    return error(Code::kInvalidArgument, "a device of {} cores; there can be 1 to {}",
                 info.cores.size(), CoreSet::kMaxCores);
  if (engine == nullptr || options.clock == nullptr)
    return error(Code::kInvalidArgument, "device '{}' needs an engine and a clock", info.instance);
  info.memory_limit = options.memory_limit;
  info.depth_limit = options.depth_limit;
  return std::make_shared<lanes::LanedDevice>(std::move(info), std::move(engine), options);
}

}  // namespace corelane::device
