/// Queue: where execution objects are enqueued. All methods from any thread.
#pragma once

#include <memory>
#include <utility>

#include "QAicApiExecObj.hpp"

namespace qaic::rt {

class Queue : public Logger {
 public:
  /// A queue of a device of the context. Null `properties`: the defaults. Throws CoreExceptionInit:
  /// QS_INVAL, QS_NODEV.
  static shQueue Factory(const shContext& context, QID dev,
                         const QAicQueueProperties* properties = nullptr) {
    detail::checkGiven("Queue", context != nullptr, "context");
    return shQueue(new Queue(context, dev, properties));
  }
  ~Queue() override {
    if (group_ == nullptr) static_cast<void>(library().qaicReleaseQueue(queue_));
  }

  /// Begins an inference with the object's buffers. Waits while the device's queue is full, at most
  /// 6.375 s. QS_BUSY (still full, or the object is in flight), QS_INVAL (no buffers, another
  /// device, null), QS_DEV_ERROR; after a failure nothing is enqueued.
  QStatus enqueue(const shExecObj& execObj) { return enqueue(execObj, nullptr); }
  /// The same with an event of qaicCreateEvent, which the completion signals.
  QStatus enqueue(const shExecObj& execObj, QAicEvent* event) {
    if (execObj == nullptr) return refuse(QS_INVAL, "the ExecObj is null");
    return library().qaicEnqueueExecObj(queue_, execObj->get(), event);
  }
  /// For the C functions.
  QAicQueue* get() const noexcept { return queue_; }

  /// Fills in the defaults: multi-threaded, 4 threads per queue. (No thread is made for a queue.)
  static void initProperties(QAicQueueProperties& properties) noexcept {
    properties = QAicQueueProperties{};
  }

 private:
  friend class ProgramGroup;
  /// One that ends with `group`, which it keeps.
  Queue(const shContext& context, QAicQueue* queue, std::shared_ptr<void> group)
      : Logger(context, "Queue"), context_(context), queue_(queue), group_(std::move(group)) {}
  Queue(const shContext& context, QID device, const QAicQueueProperties* properties)
      : Logger(context, "Queue"), context_(context) {
    detail::checkInit("Queue",
                      library().qaicCreateQueue(context->get(), &queue_, properties, device));
  }

  shContext context_;
  QAicQueue* queue_ = nullptr;
  std::shared_ptr<void> group_;  ///< That releases it; null: it does so itself.
};

}  // namespace qaic::rt
