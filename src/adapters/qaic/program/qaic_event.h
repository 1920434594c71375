/// An event: signalled by inferences that complete.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <vector>

#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/context/qaic_callback_gate.h"
#include "base/sync.h"
#include "corelane/base/clock.h"

namespace corelane::qaic {

class ContextObject;

/// Signalled while inferences that it was enqueued with have completed and none is in flight. All
/// functions from any thread; callbacks are called in a thread of the context, with no lock held.
class EventObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kEvent;
  using Handle = QAicEvent;

  EventObject(std::shared_ptr<ContextObject> context, std::shared_ptr<Clock> clock);
  ~EventObject() override;
  /// What callbacks get; set once, before the event is used.
  void set_handle(Handle* handle) noexcept { handle_ = handle; }

  /// An inference is enqueued with it: not signalled.
  void begin();
  /// It was refused after all.
  void refuse();
  /// It has ended.
  void complete(const Status& status);

  /// kBusy while something is in flight.
  Status clear();
  void add_callback(QAicEventCallback callback, void* data);
  /// All of its data. Calls that are due are made and have ended then, as CallbackGate::close()
  /// says. kNotFound where it was not added.
  Status remove_callback(QAicEventCallback callback);
  /// Waits until it is signalled: the outcome of the inference that completed last. kWrongState
  /// where nothing would signal it, kCancelled when its handle ends.
  Status wait();
  /// The handle ends, and all callbacks are removed.
  void close();

 private:
  struct Callback {
    Callback(QAicEventCallback called, void* with) : function(called), data(with) {}
    const QAicEventCallback function;
    void* const data;
    CallbackGate gate;
  };
  using Callbacks = std::vector<std::shared_ptr<Callback>>;

  const std::shared_ptr<ContextObject> context_;
  const std::shared_ptr<Clock> clock_;
  Handle* handle_ = nullptr;
  Mutex mutex_{LockRank::kDoorWait};
  std::condition_variable changed_;
  std::size_t in_flight_ CORELANE_GUARDED_BY(mutex_) = 0;
  bool completed_ CORELANE_GUARDED_BY(mutex_) = false;  ///< One has, since it was cleared.
  bool closed_ CORELANE_GUARDED_BY(mutex_) = false;
  Status outcome_ CORELANE_GUARDED_BY(mutex_);
  Callbacks callbacks_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::qaic
