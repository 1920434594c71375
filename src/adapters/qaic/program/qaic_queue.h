/// A queue: where execution objects are enqueued. What waits, waits in the device.
#pragma once

#include <memory>

#include "adapters/qaic/api/qaic_handle.h"
#include "base/sync.h"

namespace corelane::device {
class Device;
class Fence;
}  // namespace corelane::device

namespace corelane::qaic {

class ContextObject;

/// All functions from any thread.
class QueueObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kQueue;
  using Handle = QAicQueue;

  /// `one_at_a_time`: an inference starts once the one before it has ended.
  QueueObject(std::shared_ptr<ContextObject> context, std::shared_ptr<device::Device> device,
              bool one_at_a_time);
  ~QueueObject() override;

  const std::shared_ptr<device::Device>& device() const noexcept { return device_; }
  const std::shared_ptr<ContextObject>& context() const noexcept { return context_; }
  bool one_at_a_time() const noexcept { return one_at_a_time_; }

  /// The place of one inference in the order; both are null where there is none.
  struct Turn {
    std::shared_ptr<device::Fence> after;  ///< Signalled when it may start; null: at once.
    std::shared_ptr<device::Fence> mine;
  };
  Turn next();
  /// The inference has ended, or was refused: the next one may start once those before have ended.
  static void end(const Turn& turn);

 private:
  const std::shared_ptr<ContextObject> context_;
  const std::shared_ptr<device::Device> device_;
  const bool one_at_a_time_;
  Mutex mutex_{LockRank::kLeaf};
  std::shared_ptr<device::Fence> last_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::qaic
