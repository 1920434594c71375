/// The device contract: what a driver presents and every upper floor builds on.
///
/// Includes only base and tensor. Asking a device for what it cannot do is an error (kUnsupported),
/// never an empty success. All methods from any thread. Objects made by a device keep it alive.
/// How to write a driver: CONTRIBUTING.md; its template is src/drivers/null.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/arbiter.h"
#include "corelane/device/buffer.h"
#include "corelane/device/completion.h"
#include "corelane/device/core_set.h"
#include "corelane/device/executable.h"
#include "corelane/device/fence.h"
#include "corelane/device/observer.h"

namespace corelane::device {

/// What a device can do beyond running jobs on single cores.
struct Capabilities {
  bool multi_core_jobs = false;          ///< One job on several cores.
  bool dynamic_shapes = false;           ///< Open dimensions in PrepareOptions::input_shapes.
  bool exposed_values = false;           ///< PrepareOptions::exposed_values.
  bool host_operators = false;           ///< Custom operators.
  bool layer_times = false;              ///< PrepareOptions::profile_layers.
  bool precompiled = false;              ///< export_precompiled().
  bool bounded_jobs = false;             ///< Jobs end once they are computed; nothing may hang.
  std::vector<std::string> image_kinds;  ///< "onnx", "rknn", ...
};

/// One core.
struct CoreInfo {
  std::string name;            ///< "core0".
  std::uint64_t clock_hz = 0;  ///< 0 when unknown.
};

/// What a device is. Does not change while it is open.
struct DeviceInfo {
  std::string kind;      ///< Driver: "virtual", "null", "rknn".
  std::string profile;   ///< "rk3588", "generic:4".
  std::string instance;  ///< Names this instance in leases and traces, "virtual:rk3588#0".
  std::string engine;    ///< "OpenVINO 2026.4.1", "none".
  std::string isa;       ///< Instruction set the engine uses, as the engine reports it.
  /// If the device has several engines: their names for PrepareOptions::engine, `engine` first.
  std::vector<std::string> engines;
  std::vector<CoreInfo> cores;
  Capabilities capabilities;
  /// Bytes that its objects may hold together (option memory); 0: no limit. Device::memory() says
  /// how many are in use.
  std::size_t memory_limit = 0;
  /// Jobs that may wait at a time, for cores or fences (option depth); 0: no limit.
  std::size_t depth_limit = 0;
};

/// kDegraded: abandoned jobs are still in the engine; their cores run others. kLost: no job can run
/// until the device is back.
///
/// When a device is lost (EventKind::kLost), every job ends with kDeviceLost, and residences hold
/// nothing any more; leases of their cores (option lease) stay with this process until the
/// residence objects go. Bindings of jobs that ran stay in use until the engine returns. Meanwhile
/// submissions and preparations fail at once with kDeviceLost. When it is back (kBack), executables
/// made before still fail: prepare again. Buffers and queues stay good.
enum class Health : std::uint8_t { kGood, kDegraded, kLost };

/// One job. Members left alone mean: any core, no deadline, priority 0, no fences.
struct Submission {
  std::shared_ptr<Executable> executable;
  std::shared_ptr<Bindings> bindings;  ///< Made by that executable.
  CoreSet cores;
  TimePoint deadline = kNever;  ///< When it passes the job is abandoned with kTimeout.
  /// Where it would wait and DeviceInfo::depth_limit jobs do, its submission waits for room until
  /// then, or the deadline; a time that has passed: not at all.
  TimePoint room_until{};
  std::int32_t priority = 0;                   ///< Higher first; -128 to 127.
  std::vector<std::shared_ptr<Fence>> wait;    ///< All must be signalled ok before it starts.
  std::vector<std::shared_ptr<Fence>> signal;  ///< Signalled with its status when done.
  std::uint64_t tag = 0;                       ///< Copied to the record.
  std::uint32_t batch = 1;                     ///< Samples in it, for the record and the engine.
  /// With a deadline, bound user memory is reached through device buffers, so that an abandoned
  /// job never touches memory its caller has freed. True lets the job use it directly; the caller
  /// then keeps it until the completion is released; Queue::run() waits for that. Memory that a
  /// TensorRef keeps alive is always used directly.
  bool direct_user_memory = false;
  /// The caller waits for the job next. Where it is certain to end within some microseconds and its
  /// core is idle, it runs in the calling thread, also with a deadline, and submit() returns it
  /// done. It then uses bound memory directly. A deadline that passes meanwhile does not end it.
  bool here_if_brief = false;
  /// The caller is a callback of a job of this device that returns soon and waits for nothing: the
  /// thread that calls it may run this job next, so that no other one has to be woken.
  bool from_callback = false;
  /// What its completion calls, of callbacks and of fences in `signal`, and the end of what those
  /// hold, returns soon and waits for no job: the thread that calls may run the next job after
  /// that, so that no other one has to be woken.
  bool brief_callbacks = false;
  /// A submission that waits for room fails with kBusy within 50 ms of this becoming true. Null: it
  /// waits until `room_until`.
  std::shared_ptr<const std::atomic<bool>> give_up;
};

/// How a queue is made.
struct QueueOptions {
  std::string name;           ///< For messages of its jobs; may be empty.
  std::int32_t priority = 0;  ///< Added to that of each submission.
  /// What users set to give its jobs a deadline; the line about a job without one that runs for
  /// long names it. Empty: the line asks for a deadline.
  std::string timeout_option;
  /// Its part of the device's time beside other queues under fair_arbiter(): above 0, at most 1e6.
  double weight = 1;
  /// How much of the time of all cores its jobs may have, above 0 and up to 1, under any arbiter;
  /// 0: no cap. What it does not use it may have later, but no more than that of `cap_window`: over
  /// any time T it has at most its part of T + cap_window, and the end of the jobs that run.
  double time_cap = 0;
  Duration cap_window = std::chrono::milliseconds(100);  ///< Above 0.
};

/// A stream of submissions. Jobs of one queue start in order only where the arbiter, cores and
/// fences require it. Destruction does not cancel its jobs.
class CORELANE_API Queue {
 public:
  virtual ~Queue() = default;
  /// Its number on its device, from 1: JobRecord::queue. 0 where the device has none.
  virtual std::uint64_t id() const noexcept { return 0; }
  /// Enqueues. A failure here means nothing was enqueued, the bindings are free and no fence is
  /// signalled: kInvalidArgument (core set, foreign bindings), kBusy (bindings in use, or the job
  /// would wait and DeviceInfo::depth_limit jobs do, up to Submission::room_until), kOutOfCores
  /// (cores held exclusively), kOutOfMemory, kDeviceLost, kWrongState (a forked child).
  virtual Result<std::shared_ptr<Completion>> submit(const Submission& job) = 0;
  /// Enqueues and waits for the result, in the calling thread where the core is idle and there is
  /// no deadline, or Submission::here_if_brief holds: no hand-off, and no place in the line.
  /// `record` may be null. Fails as submit(), or with the job's status.
  virtual Status run(const Submission& job, JobRecord* record = nullptr) = 0;
  /// Jobs submitted here that are not done.
  virtual std::size_t depth() const = 0;
  /// Waits until depth is 0; false when `until` came first.
  virtual bool drain(TimePoint until = kNever) = 0;
};

/// Counters since the device was opened.
struct DeviceCounters {
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;  ///< With any status.
  std::uint64_t failed = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t resets = 0;
  std::uint64_t losses = 0;      ///< Of the whole device: see Health.
  std::uint64_t busy_cores = 0;  ///< Bit i: core i has a job now. 0 where the device does not say.
  std::vector<Duration> busy;    ///< Per core.
};

/// A device that is open. Shared by shared_ptr; closed with the last one, after the jobs and the
/// objects that it made. All methods from any thread. Its threads are those of the process that
/// opened it: a forked child opens a device of its own. Jobs for the parent's are kWrongState there
/// on devices of lanes, and a wait for a job from before the fork does not end.
class CORELANE_API Device {
 public:
  virtual ~Device() = default;
  /// What it is and what it can do. The same object at each call.
  virtual const DeviceInfo& info() const noexcept = 0;
  /// Whether jobs can run on it now.
  virtual Health health() const noexcept = 0;
  /// The clock of all its deadlines and stamps; never null.
  virtual const std::shared_ptr<Clock>& clock() const noexcept = 0;
  /// What all living objects of this device hold, in bytes.
  virtual MemoryFigures memory() const = 0;
  /// What happened since it was opened.
  virtual DeviceCounters counters() const = 0;
  /// The residences on it, in the order in which they were made; none where it has no residences.
  /// What other processes hold by leases is Lease::holders().
  virtual std::vector<Holding> holdings() const { return {}; }

  /// New zeroed memory of the device. kInvalidArgument (size 0, alignment), kOutOfMemory.
  virtual Result<std::shared_ptr<Buffer>> create_buffer(std::size_t size,
                                                        const BufferOptions& options) = 0;
  /// Maps `size` bytes at `offset` of a descriptor, which is duplicated. kInvalidArgument (the
  /// descriptor, size 0), kOutOfRange (the block is shorter), kIo, kUnsupported where the device
  /// cannot reach such memory.
  virtual Result<std::shared_ptr<Buffer>> import_fd(int fd, std::size_t size,
                                                    std::size_t offset) = 0;
  /// Wraps memory of the caller, which must stay valid while the buffer or a job with it lives.
  /// kInvalidArgument (null, size 0), kUnsupported.
  virtual Result<std::shared_ptr<Buffer>> import_user(void* data, std::size_t size) = 0;

  /// kDeviceLost while the device is lost, kForeignImage when the kind is not taken,
  /// kUnsupportedModel when the engine refuses the network (with operator and node where it names
  /// them), kUnsupported for an option that the capabilities exclude, kMalformed, kInvalidArgument,
  /// kOutOfMemory.
  virtual Result<std::shared_ptr<Executable>> prepare(const Image& image,
                                                      const PrepareOptions& options) = 0;
  /// A queue of its own. kInvalidArgument when the priority is not from -128 to 127, or the weight
  /// or the cap are not as QueueOptions has them.
  virtual Result<std::shared_ptr<Queue>> make_queue(const QueueOptions& options) = 0;

  /// Abandons what runs on these cores (kDeviceReset) and makes them new. Others go on. "Any" cores
  /// and cores that do not exist are kInvalidArgument.
  virtual Status reset(const CoreSet& cores) = 0;
  /// Replaces the arbiter; null restores fifo_arbiter(). kUnsupported where the device decides
  /// itself.
  virtual Status set_arbiter(std::shared_ptr<const Arbiter> arbiter) = 0;
  /// Tells of events, records or both until the subscription goes. Without one, and without a
  /// trace, a job pays one branch. kInvalidArgument (no function, one_in, ring), kUnsupported where
  /// the device has neither.
  virtual Result<std::shared_ptr<Observation>> observe(ObserverOptions options) = 0;

  /// Starts recording the last `records_per_core` jobs of each core anew; 0 stops and drops the
  /// records. Off by default, at the cost of a branch. kInvalidArgument for more than 2^20.
  virtual Status set_trace(std::size_t records_per_core) = 0;
  /// The records so far, in order of start; kWrongState when tracing was never on.
  virtual Result<std::vector<JobRecord>> read_trace() const = 0;
};

}  // namespace corelane::device
