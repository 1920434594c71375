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

#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/runtime/inference_set.h"
#include "corelane/runtime/program.h"
#include "device/unique_fd.h"
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
  /// `done` is empty for one that is collected.
  Status submit(const SetHandle& handle, std::uint64_t id, SetCallback done);
  Result<SetHandle> submit(const SetTensors& tensors, std::uint64_t id, TimePoint until);
  /// `in_flight`: kNotFound where nothing is in flight or completed.
  Result<SetHandle> collect(std::optional<std::uint64_t> id, TimePoint until,
                            bool in_flight = false);
  Status release(const SetHandle& handle);
  Result<int> fd();
  bool cancel(std::uint64_t id);
  /// Another thread than the ones seen so far may use the set.
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
    std::uint32_t retries = 0;  ///< Further attempts that were none of the losses'.
    bool parked = false;        ///< Waits until the device is back.
    bool cancelled = false;
    bool submitting = false;  ///< Its first attempt has no inference yet; it may wait for room.
    /// Its submission no longer waits for room. Null: none waits.
    std::shared_ptr<std::atomic<bool>> given_up;
    SetCallback done;
    Status status;
    bool has_status = false;  ///< Not before its first inference has ended, nor in flight.
    bool observed = false;    ///< Since its submission.
    SetRecord record;         ///< Where it is observed.
    std::shared_ptr<const void> owner;  ///< Of memory that is bound; as long as the core lives.
  };
  using Delivery = std::pair<SetCallback, SetHandle>;
  /// A thread in wait_idle(): the last submission before it, and how many up to that are in flight.
  struct IdleWait {
    std::uint64_t last = 0;
    std::size_t left = 0;
  };

  SetCore(const Program& program, SetOptions options);
  /// Frees one: in another thread where a job may wait for the calling thread.
  static void end(SetCore* core) noexcept;

  /// Runs one of those in flight, or the one of this id, where no thread of the device has begun
  /// to.
  bool run_one(std::optional<std::uint64_t> id);
  /// For a moment, while something is in flight: to wake a thread that sleeps costs more than a
  /// short inference. At most one thread of a set spins.
  void spin_for_completion();
  /// kWrongState in a forked child and for a handle of no set; kInvalidArgument for one of another.
  Status check(const SetHandle& handle) const;
  Status check_process() const;
  Status ended() const;
  /// Of a submission that found no room: cancelled where that ended its wait.
  Status why_no_room(const Item& item, Status busy) const CORELANE_REQUIRES(mutex_);
  /// The next attempt, which waits for room until `room_until`. A failure: the device has not taken
  /// it.
  Status start(std::size_t index, TimePoint room_until);
  void finished(std::size_t index, const Status& status) noexcept;
  /// A further attempt. Where the device refuses it, the inference ends, or is parked: false where
  /// a replay found no room.
  bool start_again(std::size_t index, bool replayed) noexcept;
  bool may_retry(const Item& item, const Status& status) const CORELANE_REQUIRES(mutex_);
  /// Parks an inference that a loss of the device ended, where it may run again.
  bool park(Item& item, const Status& status) CORELANE_REQUIRES(mutex_);
  /// Starts what is parked, once the device is back.
  void replay() noexcept;
  /// The same, after some time.
  void replay_later() noexcept;
  /// Takes an inference that is parked, which its caller concludes.
  bool unpark(Item& item, Status status) CORELANE_REQUIRES(mutex_);
  bool tells_failure(const Status& status) const CORELANE_REQUIRES(mutex_);
  /// After each end of a submission: threads for which it was the last one wake up.
  void note_ended(std::size_t index) CORELANE_REQUIRES(mutex_);
  /// The end of an inference: collectable, or given to its callback.
  void conclude(std::size_t index, const Status& status) noexcept;
  Status summary(const Item& item) const noexcept CORELANE_REQUIRES(mutex_);
  /// In flight to completed at `now`. What its callback gets, where it has one and the order does
  /// not count: the caller delivers it without the lock.
  Delivery complete(std::size_t index, const Status& status, TimePoint now)
      CORELANE_REQUIRES(mutex_);
  /// Completed to held by its callback.
  Delivery take(std::size_t index) CORELANE_REQUIRES(mutex_);
  /// In order: what has completed and goes to callbacks.
  void queue_deliveries() CORELANE_REQUIRES(mutex_);
  /// Calls back `one`, where there is one, and in order what is due, one thread at a time.
  void deliver(Delivery one) noexcept;
  /// Its record, where it is observed, goes to the observers that want it then.
  void note_completed(std::size_t index, TimePoint now) CORELANE_REQUIRES(mutex_);
  void note_collected(std::size_t index) CORELANE_REQUIRES(mutex_);
  /// After each change of what can be collected.
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
  std::condition_variable available_;  ///< A handle is, or the set has ended.
  std::condition_variable completed_;  ///< A handle is, or its id is gone, or the set has ended.
  std::condition_variable idle_;       ///< Nothing is in flight, or nothing a thread waits for.
  SetTable table_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Item> items_;
  std::vector<Activation> activations_;        ///< Made by create(); released by shutdown().
  std::atomic<std::uint64_t> completions_{0};  ///< How often one has completed.
  std::atomic<bool> spinning_{false};
  std::atomic<std::size_t> calling_{0};  ///< Callbacks that run, and may release handles.
  SureVector<IdleWait*> idle_waits_ CORELANE_GUARDED_BY(mutex_);
  bool ended_ CORELANE_GUARDED_BY(mutex_) = false;
  SureDeque<Delivery> deliveries_ CORELANE_GUARDED_BY(mutex_);
  bool delivering_ CORELANE_GUARDED_BY(mutex_) = false;
  device::UniqueFd fd_ CORELANE_GUARDED_BY(mutex_);
  bool readable_ CORELANE_GUARDED_BY(mutex_) = false;
  std::atomic<std::size_t> parked_{0};
  std::shared_ptr<device::Observation> observation_;  ///< Of the device's return; null: no replay.
  std::thread::id user_ CORELANE_GUARDED_BY(mutex_);
  bool many_users_ CORELANE_GUARDED_BY(mutex_) = false;
};

}  // namespace corelane::runtime
