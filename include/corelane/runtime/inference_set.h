/// A set of inferences of one program: handles that are acquired, submitted, collected and released
/// by any threads, and that run on when one of them fails.
///
///     auto set = corelane::InferenceSet::create(program, {.size = 8}).value();
///     auto handle = set.acquire().value();              // available -> held
///     handle.context().bind_input(0, pixels);
///     Status sent = set.submit(handle, frame_number);   // held -> in flight
///     auto done = set.collect().value();                // completed -> held
///     if (done.status().ok()) use(done.context().output(0).value());
///     sent = set.release(done);                         // held -> available
///
/// Each handle is available, held by a user, in flight, or completed, and the four counts always
/// add up to all of them. A failed inference is collected like any other; its status says why.
///
/// The set has no queue of its own, and no thread unless it is observed: what is submitted waits in
/// the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"
#include "corelane/device/observer.h"
#include "corelane/runtime/activation.h"
#include "corelane/runtime/context.h"
#include "corelane/runtime/set_record.h"
#include "corelane/tensor/desc.h"

namespace corelane {

class Program;

namespace runtime {
class SetCore;
}

/// How a set is made.
struct SetOptions {
  /// Handles of each activation; a context and its memory each.
  std::size_t size = 10;
  /// Copies of the program that may run at the same time; they share its constants.
  std::size_t activations = 1;
  /// With it, each of the activations holds cores of its own, or takes turns, and runs the
  /// inferences of its handles there: handle i is of activation i % activations. Without, they
  /// share the device with everybody.
  std::optional<ActivateOptions> activate;
  /// The cores of each inference; "any": those that the program asks for.
  device::CoreSet cores;
  std::int32_t priority = 0;  ///< -128 to 127, higher first.
  /// How long one attempt may take from its submission; then it is abandoned with kTimeout. 0 lets
  /// no attempt begin. None: no limit.
  std::optional<Duration> attempt_time;
  /// Attempts after the first, at most 100, where one timed out or its core was reset. The failure
  /// says what became of each.
  std::uint32_t retries = 0;
  /// How long a submission waits for room where the device's line is full, before it fails with
  /// kBusy (RunOptions::room_until). Not for a set that submits in callbacks.
  Duration room_time{0};
  /// An inference that ends because the device is lost waits until it is back, and runs again, at
  /// most 8 times; none of `retries` is used up. While the device is away no time limit runs;
  /// cancel() and shutdown() end the wait. False: it completes with kDeviceLost.
  bool replay = false;
  /// Completed handles are collected, and callbacks called, in the order of submission.
  bool in_order = false;
  /// Called once for each inference that failed for good, with the failure, in the thread that
  /// completes it: before it can be collected, and with no lock held. Not for what the end of the
  /// set cancels, nor for a submission that is refused. It returns soon, and does not call the set.
  std::function<void(const Status&)> on_failure;
  /// Inputs that may be given in part, or be left out: the rest of such an input is what the
  /// handle's own memory held before (zeros at first).
  std::vector<std::string> partial_inputs;
};

/// How many handles are in which state.
struct SetFigures {
  std::size_t available = 0, in_flight = 0, completed = 0, held = 0;
};

/// The tensors of one inference, by position. A view without data leaves an output in the handle's
/// own memory, and an input out (SetOptions::partial_inputs). Fewer views than tensors: the others
/// have no data.
struct SetTensors {
  std::vector<TensorView> inputs;
  std::vector<MutableTensorView> outputs;
};

/// One handle of a set: a cheap value that keeps the set's memory alive, not its work. Its results
/// belong to the thread that holds the handle; while it is in flight, its context refuses calls
/// (kBusy).
class CORELANE_API SetHandle {
 public:
  /// A handle of no set: kWrongState where it is used.
  SetHandle() = default;
  /// Tensors and results of its inferences. Used while the handle is held. Any thread.
  Context context() const;
  /// Its place in the set, from 0. Any thread.
  std::size_t index() const noexcept { return index_; }
  /// The id of its last submission; 0 before one. Any thread.
  std::uint64_t id() const;
  /// What became of its last inference: ok, or the failure with the log of its attempts;
  /// kWrongState before one has ended. Any thread.
  Status status() const;
  /// Attempts of its last inference. Any thread.
  std::uint32_t attempts() const;
  /// Keeps `owner`, of memory that is bound, until another one is kept (null: none), or the set has
  /// ended and none of its inferences runs. While the handle is held. The last owner may go in a
  /// thread of the device.
  void keep(std::shared_ptr<const void> owner) const;

 private:
  friend class InferenceSet;
  friend class runtime::SetCore;
  SetHandle(std::shared_ptr<runtime::SetCore> core, std::size_t index)
      : core_(std::move(core)), index_(index) {}
  std::shared_ptr<runtime::SetCore> core_;
  std::size_t index_ = 0;
};

/// Takes a completed handle and holds it until it is released. Called in the thread that completes
/// the inference, or, in order, another one; may call any function. What it throws is logged.
using SetCallback = std::function<void(SetHandle)>;

/// A cheap handle; copies stand for the same set, which ends with the last of them. Any thread.
///
/// While the device is lost, submissions fail at once with kDeviceLost. Once it is back, the next
/// one prepares the program again, in its thread; with SetOptions::replay a thread of the device
/// may.
///
/// Times are points of the device's clock. A set that was shut down refuses every call with
/// kCancelled but collect(), which gives what has completed, and release(). In a forked child all
/// calls are kWrongState.
class CORELANE_API InferenceSet {
 public:
  /// Stands for no set: kWrongState where it is used.
  InferenceSet() = default;
  /// `size` x `activations` handles. kInvalidArgument (no handles, more than 65536, a negative
  /// time, an unknown input, a core set that the device does not have), kOutOfMemory, and those of
  /// Activation::create.
  static Result<InferenceSet> create(const Program& program, const SetOptions& options = {});

  /// An available handle, held from now on; waits for one. kTimeout when `until` came first.
  /// kWrongState where it would wait forever: no time is given, nothing is in flight, and for two
  /// seconds no other thread than this one has used the set.
  Result<SetHandle> acquire(TimePoint until = kNever);
  /// Submits a handle that is held, or available (a user may keep one). Waits for nothing but room
  /// (SetOptions::room_time). `id`: any
  /// number; of several in flight with one id, the first is collected first. A failure leaves the
  /// handle as it was, held or available: kInvalidArgument (of another set), kBusy (in flight),
  /// kWrongState (completed and not collected), and those of Context::submit.
  Status submit(const SetHandle& handle, std::uint64_t id = 0);
  /// The same; the handle is not collected but given to `done`.
  Status submit(const SetHandle& handle, std::uint64_t id, SetCallback done);
  /// The same; the handle is given to the future. Waiting for it in a callback would deadlock.
  Result<std::future<SetHandle>> submit_future(const SetHandle& handle, std::uint64_t id = 0);
  /// acquire(until), bind, submit. The memory stays the caller's until the handle is collected.
  /// Fails like the three; nothing is held then.
  Result<SetHandle> submit(const SetTensors& tensors, std::uint64_t id = 0,
                           TimePoint until = kNever);

  /// A completed handle, held from now on; waits for one. kTimeout when `until` came first.
  Result<SetHandle> collect(TimePoint until = kNever);
  /// The same for a caller who waits for what was submitted: kNotFound as soon as nothing is in
  /// flight or completed.
  Result<SetHandle> collect_in_flight(TimePoint until = kNever);
  /// Collects the handle with this id. kNotFound where none with it is in flight or completed.
  Result<SetHandle> collect_id(std::uint64_t id, TimePoint until = kNever);
  /// Held to available. kInvalidArgument (of another set), kWrongState (not held).
  Status release(const SetHandle& handle);
  /// A descriptor that polls readable while collect() would return at once. It belongs to the set,
  /// is the same at each call, and is not to be read. kIo when the system gives none.
  Result<int> fd();

  /// Cancels the first inference with this id that is in flight: true where it had not started; it
  /// completes with kCancelled. One that runs goes on, and makes no further attempt. One whose
  /// submit() waits for room waits no more: true, and submit() fails with kCancelled, unless room
  /// came first.
  bool cancel(std::uint64_t id);
  /// Waits until nothing is in flight; false when `until` came first.
  bool drain(TimePoint until = kNever);
  /// Waits until everything is done that was submitted before, whatever others submit meanwhile.
  /// kTimeout when `until` came first, kCancelled as soon as the set is shut down.
  Status wait_idle(TimePoint until = kNever);
  /// Ends the set: what has not started is cancelled, every call that waits returns. Inferences
  /// that run go on; drain() waits for them. The last copy of the set does the same when it goes.
  void shutdown();
  /// A snapshot.
  SetFigures figures() const;
  /// Reports each inference that is collected or completes, until the subscription is destroyed.
  /// Any number of observers; none takes anything from another. It may outlive the set.
  /// kInvalidArgument (no function, one_in, ring), kIo where the system gives no thread.
  Result<std::shared_ptr<device::Observation>> observe(SetObserverOptions options);

 private:
  struct Owner;
  explicit InferenceSet(std::shared_ptr<Owner> owner) : owner_(std::move(owner)) {}
  std::shared_ptr<Owner> owner_;
};

}  // namespace corelane
