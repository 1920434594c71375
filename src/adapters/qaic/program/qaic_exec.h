/// An execution object: the buffers of one inference at a time, and its runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <span>

#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/program/qaic_bound_buffers.h"
#include "adapters/qaic/program/qaic_one_user.h"
#include "adapters/qaic/program/qaic_program.h"
#include "adapters/qaic/program/qaic_slicing.h"
#include "adapters/qaic/program/qaic_states.h"
#include "base/sync.h"
#include "corelane/base/clock.h"
#include "corelane/runtime/context.h"

namespace corelane::qaic {

class BufferOwner;
class EventObject;
class QueueObject;
struct Ending;

/// One inference, for those who wait for it. All functions from any thread.
class Flight {
 public:
  /// `outputs` of check::outputs_begin(). `told`: its user may learn of its end without a wait.
  Flight(std::shared_ptr<Clock> clock, std::uint64_t outputs, bool told)
      : clock_(std::move(clock)), outputs_(outputs), told_(told) {}
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;
  bool done() const;
  /// What it writes is written. Before anybody can learn of its end.
  void outputs_there();
  void finish(const Status& status);
  /// Its execution object is released: nobody waits any more.
  void close();
  /// The outcome; kTimeout when `until` came first, kCancelled once it is closed.
  Status wait(TimePoint until);

 private:
  const std::shared_ptr<Clock> clock_;
  const std::uint64_t outputs_;
  const bool told_;
  mutable Mutex mutex_{LockRank::kDoorWait};
  std::condition_variable changed_;
  bool done_ CORELANE_GUARDED_BY(mutex_) = false;
  bool closed_ CORELANE_GUARDED_BY(mutex_) = false;
  Status outcome_ CORELANE_GUARDED_BY(mutex_);
};

/// Has one user at a time: a second one gets kBusy. Those who wait may be many.
class ExecObjObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kExecObj;
  using Handle = QAicExecObj;

  /// kInvalidArgument (an undefined bit), kOutOfMemory.
  static Result<std::shared_ptr<ExecObjObject>> create(std::shared_ptr<ProgramObject> program,
                                                       QAicExecObjProperties_t properties);
  ~ExecObjObject() override;

  /// `owner` (may be null) is kept while these are set, and until each inference with them has
  /// ended.
  Outcome set_data(std::size_t count, const QBuffer* buffers, const QBufferDimensions* dims,
                   std::shared_ptr<const BufferOwner> owner = nullptr);
  /// Some of them, of which `spec` (null: none) says which are slices. See
  /// BoundBuffers::set_some().
  Outcome set_slices(SomeBuffers some, const SlicingObject* spec,
                     const SlicingObject::Values& values);
  /// See BoundBuffers.
  Outcome set_covering(bool on);
  Result<std::uint32_t> specialization();
  /// `queue` and `event` may be null.
  Outcome enqueue(QueueObject* queue, const std::shared_ptr<EventObject>& event);
  /// Waits for the inference enqueued last; `us` 0: without a limit. kWrongState if there is none.
  Status wait(std::uint64_t us) const;
  /// Until they are set anew. For a user who asks for them.
  Result<std::span<QBuffer>> io_buffers();
  /// `use` gets the state of the activation's context. kBusy while an inference is in flight, and
  /// as active() of the program.
  template <class Use>
  Outcome with_states(const Use& use) {
    const OneUser call(in_call_);
    CORELANE_TRY(ready_for_states(call));
    StateCalls states(context_, *program_->plan());
    return use(states);
  }
  /// Whether an inference is in flight, whether or not a thread waits for it.
  bool in_flight() const;
  QAicExecObjID id() const noexcept { return id_; }
  /// The handle ends, once.
  void close();

 private:
  ExecObjObject(std::shared_ptr<ProgramObject> program, QAicExecObjProperties_t properties);
  Status busy() const;
  Status ready_for_states(const OneUser& call);
  std::shared_ptr<Flight> flight() const;
  /// A context of the program's activation, with the buffers bound.
  Status renew();
  /// enqueue() by the one user, and after what it checks of the program's group.
  Outcome begin(QueueObject* queue, const std::shared_ptr<EventObject>& event, OneUser& call);
  /// Why work on the activation with the number `generation` was refused.
  Status refusal(const Status& said, std::uint64_t generation) const;
  /// What the inference reads, and the fence that it waits for.
  Status give_inputs(Ending& ending, RunOptions& options);
  /// Gives `call` up once it has submitted.
  Outcome submit(QueueObject* queue, const std::shared_ptr<EventObject>& event,
                 const std::shared_ptr<Flight>& flight, OneUser& call);

  const std::shared_ptr<ProgramObject> program_;
  const bool automatic_;
  const QAicExecObjID id_;
  std::atomic<bool> in_call_{false};
  /// Once it is released; a submission waits for room no more.
  const std::shared_ptr<std::atomic<bool>> closed_ = std::make_shared<std::atomic<bool>>(false);
  mutable Mutex mutex_{LockRank::kLeaf};
  std::shared_ptr<Flight> flight_ CORELANE_GUARDED_BY(mutex_);  ///< The last; null before one.

  // Of the call that holds `in_call_`.
  BoundBuffers buffers_;
  std::shared_ptr<const BufferOwner> owner_;  ///< Of the buffers; may be null.
  Context context_;
  std::uint64_t generation_ = 0;  ///< Of the activation that `context_` is of; 0: of none.
};

}  // namespace corelane::qaic
