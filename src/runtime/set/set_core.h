/// The working part of an InferenceSet: its handles, what they run, and the threads that wait for
/// them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/process/unique_fd.h"
#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/runtime/inference_set.h"
#include "corelane/runtime/program.h"
#include "runtime/set/set_records.h"
#include "runtime/set/set_table.h"

namespace corelane::device {
class Observation;
}

namespace corelane::runtime {

/// All methods from any thread. Nothing is submitted, bound or called back under the lock.
class SetCore final : public std::enable_shared_from_this<SetCore> {
 public:
  static Result<std::shared_ptr<SetCore>> create(const Program& program, const SetOptions& options);

  Result<SetHandle> acquire(TimePoint until);
  /// An empty `done`: the handle is collected, not given to a callback.
  Status submit(const SetHandle& handle, std::uint64_t id, SetCallback done);
  Result<SetHandle> submit(const SetTensors& tensors, std::uint64_t id, TimePoint until);
  /// `in_flight`: kNotFound where nothing is in flight or completed.
  Result<SetHandle> collect(std::optional<std::uint64_t> id, TimePoint until,
                            bool in_flight = false);
  Status release(const SetHandle& handle);
  Result<int> fd();
  bool cancel(std::uint64_t id);
  /// From now on threads that the set has not seen yet may use it: acquire() may wait for them.
  void expect_other_users();
  bool drain(TimePoint until);
  Status wait_idle(TimePoint until);
  void shutdown();
  SetFigures figures() const;
  Result<std::shared_ptr<device::Observation>> observe(SetObserverOptions options);

  Context context(std::size_t index) const { return items_[index].context; }
  std::uint64_t id(std::size_t index) const;
  Status status(std::size_t index) const;
  std::uint32_t attempts(std::size_t index) const;
  void keep(std::size_t index, std::shared_ptr<const void> owner);

 private:
  /// The inference that a handle runs, or has run. Guarded by the lock, but for the context, which
  /// never changes.
  struct Item {
    Context context;
    std::uint64_t id = 0;
    Inference inference;  ///< The attempt in flight.
    SureVector<Status> failures;
    std::uint32_t attempts = 0;
    std::uint32_t losses = 0;   ///< How often a loss of the device ended it.
    std::uint32_t retries = 0;  ///< Further attempts, not counting those after a loss.
    bool parked = false;        ///< Waits until the device is back.
    bool cancelled = false;
    bool submitting = false;  ///< Its first attempt has no inference yet; it may wait for room.
    /// Set to end the submission's wait for room. Null: submissions do not wait for room.
    std::shared_ptr<std::atomic<bool>> given_up;
    SetCallback done;
    Status status;
    bool has_status = false;  ///< False before the first inference has ended, and in flight.
    bool observed = false;    ///< Since its submission.
    SetRecord record;         ///< Filled only while the inference is observed.
    std::shared_ptr<const void> owner;  ///< Keeps bound memory alive as long as the core lives.
  };
  using Delivery = std::pair<SetCallback, SetHandle>;
  /// A thread in wait_idle(): the last submission before it, and how many up to that are in flight.
  struct IdleWait {
    std::uint64_t last = 0;
    std::size_t left = 0;
  };

  SetCore(const Program& program, SetOptions options);
  /// Frees `core`, in another thread where a job may wait for the calling thread.
  static void end(SetCore* core) noexcept;

  /// Runs an inference in flight, the one with this id if one is given, in the calling thread,
  /// unless a thread of the device has begun to run it.
  bool run_one(std::optional<std::uint64_t> id);
  /// For a moment, while something is in flight: to wake a thread that sleeps costs more than a
  /// short inference. At most one thread of a set spins.
  void spin_for_completion();
  /// kWrongState in a forked child and for an empty handle; kInvalidArgument for another set's.
  Status check(const SetHandle& handle) const;
  Status check_process() const;
  Status ended() const;
  /// The failure of a submission that found no room; kCancelled if cancel() ended its wait.
  Status why_no_room(const Item& item, Status busy) const CORELANE_REQUIRES(mutex_);
  /// Submits the next attempt, which waits for room until `room_until`. Fails when the device has
  /// not accepted it.
  Status start(std::size_t index, TimePoint room_until);
  void finished(std::size_t index, const Status& status) noexcept;
  /// Submits a further attempt. If the device refuses it, the inference ends or is parked. False
  /// when a replay found no room.
  bool start_again(std::size_t index, bool replayed) noexcept;
  bool may_retry(const Item& item, const Status& status) const CORELANE_REQUIRES(mutex_);
  /// Parks an inference that a loss of the device ended, where it may run again.
  bool park(Item& item, const Status& status) CORELANE_REQUIRES(mutex_);
  /// Starts what is parked, once the device is back.
  void replay() noexcept;
  /// Calls replay() after a short time.
  void replay_later() noexcept;
  /// Ends the parking of an inference, which the caller then concludes; false: it is not parked.
  bool unpark(Item& item, Status status) CORELANE_REQUIRES(mutex_);
  bool tells_failure(const Status& status) const CORELANE_REQUIRES(mutex_);
  /// Called at each end of a submission: wakes the threads in wait_idle() that waited for it last.
  void note_ended(std::size_t index) CORELANE_REQUIRES(mutex_);
  /// Ends an inference: from here on it can be collected, or its callback gets it.
  void conclude(std::size_t index, const Status& status) noexcept;
  Status summary(const Item& item) const noexcept CORELANE_REQUIRES(mutex_);
  /// Moves a handle from in flight to completed at `now`. Returns what its callback gets, if it has
  /// one and the order does not count: the caller delivers it without the lock.
  Delivery complete(std::size_t index, const Status& status, TimePoint now)
      CORELANE_REQUIRES(mutex_);
  /// Moves a completed handle to its callback, which holds it.
  Delivery take(std::size_t index) CORELANE_REQUIRES(mutex_);
  /// Queues in their order the completed handles that callbacks get.
  void queue_deliveries() CORELANE_REQUIRES(mutex_);
  /// Calls the callback of `one`, if there is one, and those queued, one thread at a time.
  void deliver(Delivery one) noexcept;
  /// Gives the record of an observed inference to the observers that want it at completion.
  void note_completed(std::size_t index, TimePoint now) CORELANE_REQUIRES(mutex_);
  void note_collected(std::size_t index) CORELANE_REQUIRES(mutex_);
  /// Called after each change of what can be collected.
  void update_fd() CORELANE_REQUIRES(mutex_);
  void note_user() CORELANE_REQUIRES(mutex_);
  bool nobody_else_acts() const CORELANE_REQUIRES(mutex_);
  Status bind(Context& context, const SetTensors& tensors) const;
  Status bind_input(Context& context, std::size_t index, const TensorView& view) const;

  const Program program_;
  const SetOptions options_;
  const std::shared_ptr<Clock> clock_;
  const std::uint64_t process_;
  const std::shared_ptr<SetRecords> records_;
  mutable Mutex mutex_{LockRank::kInferenceSet};
  std::condition_variable available_;  ///< A handle has become so, or the set has ended.
  std::condition_variable completed_;  ///< A handle has, or an id is gone, or the set has ended.
  std::condition_variable idle_;       ///< Nothing is in flight, or nothing a thread waits for.
  SetTable table_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Item> items_;
  std::vector<Activation> activations_;        ///< Made by create(); released by shutdown().
  std::atomic<std::uint64_t> completions_{0};  ///< Inferences that have completed so far.
  std::atomic<bool> spinning_{false};
  std::atomic<std::size_t> calling_{0};  ///< Callbacks that run, and may release handles.
  SureVector<IdleWait*> idle_waits_ CORELANE_GUARDED_BY(mutex_);
  bool ended_ CORELANE_GUARDED_BY(mutex_) = false;
  SureDeque<Delivery> deliveries_ CORELANE_GUARDED_BY(mutex_);
  bool delivering_ CORELANE_GUARDED_BY(mutex_) = false;
  UniqueFd fd_ CORELANE_GUARDED_BY(mutex_);
  bool readable_ CORELANE_GUARDED_BY(mutex_) = false;
  std::atomic<std::size_t> parked_{0};
  std::shared_ptr<device::Observation> observation_;  ///< Reports the device's return.
  std::thread::id user_ CORELANE_GUARDED_BY(mutex_);
  bool many_users_ CORELANE_GUARDED_BY(mutex_) = false;
};

}  // namespace corelane::runtime
