#include "dispatch/delivery_thread.h"

#include "base/later.h"
#include "corelane/base/log.h"

namespace corelane::dispatch {

Status DeliveryThread::start() {
  CallbackThread::Job nothing = [] {};
  return thread_->post(nothing);
}

void DeliveryThread::arrange(const Ring& ring, Delivery when) noexcept {
  constexpr Duration kSoon = std::chrono::milliseconds(5);
  if (when == Delivery::kNone) return;
  if (when == Delivery::kNow || clock_->is_virtual()) return deliver_now(ring);
  try {
    clock_->call_at(later(clock_->now(), kSoon), [weak = weak_from_this(), ring] {
      if (const auto alive = weak.lock()) alive->deliver_now(ring);
    });
  } catch (...) {
    deliver_now(ring);  // There is no memory for a timer.
  }
}

void DeliveryThread::deliver_now(const Ring& ring) noexcept {
  CallbackThread::Job job = sure_once<void()>([ring] { ring->deliver(); });
  if (const Status posted = thread_->post(job); !posted.ok()) {
    ring->not_arranged();
    log::error(log_part_, "observers wait for a thread: {}", posted.message());
  }
}

bool DeliveryThread::flush(const Ring& ring, TimePoint until) {
  if (is_current()) return false;
  deliver_now(ring);
  return ring->flush(*clock_, until);
}

}  // namespace corelane::dispatch
