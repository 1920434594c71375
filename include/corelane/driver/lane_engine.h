/// What a driver of lanes supplies: the part that differs between the virtual NPU, the null device
/// and the next one. The library makes a device of it: queues, order, priorities, deadlines,
/// resets, shadow buffers and traces are done there once. A driver implements these three classes.
///
/// Ownership: the device owns the engine; an executable owns its program and keeps the engine
/// alive; bindings own their requests and keep the program alive. Memory that is bound stays with
/// the caller that bound it, and is valid until it is replaced or the request is destroyed.
///
/// Threads: LaneEngine and LaneProgram are called from any thread, from several at once, while
/// requests run. A LaneRequest is used by one thread at a time, not always the same one, but for
/// abandon(). No lock of the library is held during a call, but of that one. Nothing here throws:
/// exceptions of an engine's library become a Status.
///
/// A job is abandoned at its deadline: run() is asked to end early, goes on in its thread until it
/// does, and its request and memory are kept until it returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/device/fault.h"
#include "corelane/driver/kept_content.h"

namespace corelane::device {

/// Tensors bound on the engine for one width (number of cores).
class LaneRequest {
 public:
  virtual ~LaneRequest() = default;
  /// The memory that runs read from now on: plain layout, the program's dtype, a static shape that
  /// the description accepts, and at least its bytes (the caller has checked all this, and the
  /// index here and below). Not copied. For an input that the program keeps (keeps_input) also an
  /// empty reference: release the memory and the form made of it; another is set before the next
  /// run. Fails with kUnsupported or kOutOfMemory where the engine cannot take it.
  virtual Status set_input(std::size_t index, const TensorRef& tensor) = 0;
  /// The memory that runs write. For an output with an open shape `tensor` may have the size the
  /// caller guessed, or be empty: the engine's own memory. Fails like set_input().
  virtual Status set_output(std::size_t index, const TensorRef& tensor) = 0;
  /// Samples in the runs to come, for engines whose time depends on it. Called when it changes; it
  /// is 1 before.
  virtual void set_batch(std::uint32_t /*batch*/) {}
  /// What the runs to come ask for, of which `core_bits` are the grant: for engines whose library
  /// chooses cores itself. It is the grant where the others are not to be chosen: while a program
  /// holds cores exclusively, and where the device's text says lease=1. Called when it changes; it
  /// is "any" before.
  virtual void set_cores(const CoreSet& /*asked*/) {}
  /// True when the next run(), with what is set now, is certain to end within some microseconds: it
  /// waits for nothing and calls no library. Such a job may run in the thread of a caller who waits
  /// for it, though it has a deadline. Called by the thread that would run it.
  virtual bool is_brief() const noexcept { return false; }
  /// Runs and blocks. `core_bits` are the cores granted, as many as the request's width. Fails with
  /// kEngineFailed, kShapeMismatch (an open output that does not fit; nothing is written past the
  /// end), kOutOfMemory, or the code of a host operator. The code alone resets nothing: lost() says
  /// whether the request, and with it the core, must be made anew.
  virtual Status run(std::uint64_t core_bits) = 0;
  /// While run() is in the engine: nobody wants its result any more, so it should end soon, with
  /// any status. Must only set a flag: it is called from another thread, with a lock of the library
  /// held. The next run() is not abandoned.
  virtual void abandon() noexcept {}
  /// Event-driven engines only: starts the job and calls `done` once, now or later from the clock,
  /// with what run() would return; not at all where it throws. Since `ready` the job has waited for
  /// cores: an engine that plays a device with a line of its own lets it begin then, where its
  /// cores were free.
  virtual void start(std::uint64_t core_bits, TimePoint /*ready*/,
                     // NOLINTNEXTLINE(performance-unnecessary-value-param): an override keeps it.
                     std::function<void(Status)> done) {
    done(run(core_bits));
  }
  /// When the last start() began and ended on the device that the engine plays, which its records
  /// then say; nothing where that is when the caller saw it.
  virtual std::optional<RunSpan> span() const { return std::nullopt; }
  /// The result of the last run with its actual shape. Valid until the next run or set_output().
  virtual Result<TensorRef> output(std::size_t index) = 0;
  /// The layer times of the last run. kUnsupported unless prepared with profile_layers.
  virtual Result<std::vector<LayerTime>> layer_times() const = 0;
  /// After a run that failed: true when what held this request is gone, such as a process that
  /// ended, so that another request may succeed. The job then goes back into the line, once, and
  /// runs on a new request; this one is not used any more.
  virtual bool lost() const noexcept { return false; }
};

/// An image, ready to run. Immutable.
class LaneProgram {
 public:
  virtual ~LaneProgram() = default;
  /// In the order of the image; the same objects at each call.
  virtual const std::vector<TensorDesc>& inputs() const noexcept = 0;
  /// Declared outputs, then the exposed values; the same objects at each call.
  virtual const std::vector<TensorDesc>& outputs() const noexcept = 0;
  /// Whether each core has constants of its own.
  virtual Placement placement() const noexcept = 0;
  /// True when prepare() took Image::precompiled.
  virtual bool from_precompiled() const noexcept { return false; }
  /// The engine that computes it, where the driver has several.
  virtual EngineChoice engine() const { return {}; }
  /// Bytes of this program and its live requests, without what was bound.
  virtual MemoryFigures memory() const = 0;
  /// True for an input of which the program keeps a form of its own between runs. Its content is
  /// copied to a shadow only when it is new, and setting the same memory again is not left out.
  virtual bool keeps_input(std::size_t /*index*/) const noexcept { return false; }
  /// The content that such an input has in this memory. Bindings hold it while they use the memory,
  /// and renew it when the memory is set, and once more when the fences that the first job after
  /// that waits for are signalled. kUnsupported for an input that is not kept.
  virtual Result<std::shared_ptr<KeptContent>> kept_content(std::size_t /*index*/,
                                                            const TensorRef& /*tensor*/) {
    return error(Code::kUnsupported, "this program keeps no input");
  }
  /// A request that runs on `width` cores at once; with width 1 and replicated placement, on the
  /// copy of core `core`. May compile (a copy for that width or core) at its first use.
  /// kOutOfMemory or kEngineFailed.
  virtual Result<std::unique_ptr<LaneRequest>> new_request(std::size_t width, std::size_t core) = 0;
  /// Makes now what `requests` jobs of `width` cores each need to run at once, so that no job has
  /// to. Fails like new_request().
  virtual Status reserve(std::size_t /*width*/, std::size_t /*requests*/) { return {}; }
  /// A form that prepares faster, and its tag; kUnsupported when there is none.
  virtual Result<Executable::Precompiled> export_precompiled() const = 0;
};

/// What prepares images. One for each device.
class LaneEngine {
 public:
  virtual ~LaneEngine() = default;
  /// Keeps image.keep_alive while it uses the bytes. kForeignImage (a kind that the engine does not
  /// take, with those it does), kMalformed (the bytes), kUnsupportedModel or kUnsupported (an
  /// operator or option), kShapeMismatch (input_shapes), kNotFound (an exposed value),
  /// kOutOfMemory, kEngineFailed.
  virtual Result<std::shared_ptr<LaneProgram>> prepare(const Image& image,
                                                       const PrepareOptions& options) = 0;
  /// Where the engine's own log lines go, as events of the device (EventKind::kLog). Called once,
  /// before all else; the function may be called from any thread, in runs too.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): an override keeps it.
  virtual void set_log(std::function<void(std::string)> /*log*/) {}
  /// True: jobs take no thread; LaneRequest::start is called and completes on the clock. Constant.
  virtual bool event_driven() const noexcept { return false; }
  /// True: LaneRequest::run() computes in the thread that calls it, so that jobs on two cores need
  /// two CPUs. Constant.
  virtual bool computes_in_caller() const noexcept { return false; }
};

}  // namespace corelane::device
