/// What a driver of "lanes" supplies: the part that differs between the virtual NPU, the null
/// device and the next one. Queues, order, priorities, deadlines, reset, shadow buffers and traces
/// are done once, in LanedDevice; a driver implements these three classes and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/device/fault.h"
#include "corelane/driver/kept_content.h"

namespace corelane::device {

/// Tensors bound for one width (number of cores) on the engine. Used by one job at a time.
class LaneRequest {
 public:
  virtual ~LaneRequest() = default;
  /// Plain layout, executable's dtype, checked by the caller. Kept until changed. For an input that
  /// the program keeps also a null reference: let go of the memory and of the form of it; another
  /// is set before the next run.
  virtual Status set_input(std::size_t index, const TensorRef& tensor) = 0;
  virtual Status set_output(std::size_t index, const TensorRef& tensor) = 0;
  /// Samples in the runs to come, for engines that script their time; called when it changes
  /// from 1.
  virtual void set_batch(std::uint32_t /*batch*/) {}
  /// Runs and blocks. `core_bits` are the granted ones. Never throws.
  virtual Status run(std::uint64_t core_bits) = 0;
  /// Event-driven engines only: starts the job and calls `done` later from the clock.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): an override keeps it.
  virtual void start(std::uint64_t core_bits, std::function<void(Status)> done) {
    done(run(core_bits));
  }
  /// The result with its actual shape. Valid until the next run or set_output.
  virtual Result<TensorRef> output(std::size_t index) = 0;
  virtual Result<std::vector<LayerTime>> layer_times() const = 0;
};

class LaneProgram {
 public:
  virtual ~LaneProgram() = default;
  virtual const std::vector<TensorDesc>& inputs() const noexcept = 0;
  virtual const std::vector<TensorDesc>& outputs() const noexcept = 0;
  virtual Placement placement() const noexcept = 0;
  /// True when prepare() took Image::precompiled.
  virtual bool from_precompiled() const noexcept { return false; }
  virtual MemoryFigures memory() const = 0;
  /// True for an input of which the program keeps a form of its own between runs. Its content is
  /// copied to a shadow only when it is new, and setting the same memory again is not left out.
  virtual bool keeps_input(std::size_t /*index*/) const noexcept { return false; }
  /// Of such an input, the content of this memory. Any thread. Bindings hold it while they use the
  /// memory, and renew it when the memory is set, and once more when fences that the first job
  /// after that waits for are signalled.
  virtual Result<std::shared_ptr<KeptContent>> kept_content(std::size_t /*index*/,
                                                            const TensorRef& /*tensor*/) {
    return error(Code::kUnsupported, "this program keeps no input");
  }
  /// A request that runs on `width` cores at once; with width 1 and replicated placement, on the
  /// copy of core `core`. May compile (a copy for that width or core) at its first use.
  virtual Result<std::unique_ptr<LaneRequest>> new_request(std::size_t width, std::size_t core) = 0;
  /// Makes now what `requests` jobs of `width` cores each need to run at once, so that no job has
  /// to.
  virtual Status reserve(std::size_t /*width*/, std::size_t /*requests*/) { return {}; }
  virtual Result<Executable::Precompiled> export_precompiled() const = 0;
};

class LaneEngine {
 public:
  virtual ~LaneEngine() = default;
  virtual Result<std::shared_ptr<LaneProgram>> prepare(const Image& image,
                                                       const PrepareOptions& options) = 0;
  /// True: jobs take no thread; LaneRequest::start is called and completes on the clock.
  virtual bool event_driven() const noexcept { return false; }
};

struct LaneOptions {
  std::shared_ptr<Clock> clock = real_clock();
  std::shared_ptr<FaultPoint> fault_point;  ///< May be null.
  /// How long an idle lane's thread spins for the next job before it sleeps. At most one lane
  /// spins at a time, none on a machine with one CPU.
  Duration spin = std::chrono::microseconds(30);
};

/// A device of info.cores.size() lanes over the engine.
Result<std::shared_ptr<Device>> make_laned_device(DeviceInfo info,
                                                  std::shared_ptr<LaneEngine> engine,
                                                  const LaneOptions& options);

}  // namespace corelane::device
