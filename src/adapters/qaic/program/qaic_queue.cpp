#include "adapters/qaic/program/qaic_queue.h"

#include <utility>

#include "adapters/qaic/context/qaic_context.h"
#include "base/reserve.h"
#include "corelane/device/device.h"

namespace corelane::qaic {

QueueObject::QueueObject(std::shared_ptr<ContextObject> context,
                         std::shared_ptr<device::Device> device, bool one_at_a_time)
    : Object(kKind),
      context_(std::move(context)),
      device_(std::move(device)),
      one_at_a_time_(one_at_a_time) {}

QueueObject::~QueueObject() = default;

QueueObject::Turn QueueObject::next() {
  if (!one_at_a_time_) return {};
  Turn turn;
  turn.mine = std::make_shared<device::Fence>(device_->clock());
  const MutexLock lock(mutex_);
  turn.after = std::exchange(last_, turn.mine);
  // Nothing waits for what has ended.
  if (turn.after != nullptr && turn.after->signalled()) turn.after.reset();
  return turn;
}

/// Always signalled as good: the failure of one inference is not that of the next. One that ends
/// before its turn, at its deadline, does not let the next one overtake.
void QueueObject::end(const Turn& turn) {
  if (turn.mine == nullptr) return;
  if (turn.after == nullptr) return turn.mine->signal();
  turn.after->on_signal(
      sure_once<void(const Status&)>([mine = turn.mine](const Status&) { mine->signal(); }));
}

}  // namespace corelane::qaic
