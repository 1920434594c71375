#include "dispatch/delivery_thread.h"

#include "base/later.h"
#include "corelane/base/log.h"

namespace corelane::dispatch {

Status DeliveryThread::start() {
  CallbackThread::Job nothing = [] {};
  return thread_->post(nothing);
}

void DeliveryThread::arrange(const Ring& ring, Delivery when) {
  constexpr Duration kSoon = std::chrono::milliseconds(5);
  if (when == Delivery::kNone) return;
  if (when == Delivery::kNow || clock_->is_virtual()) return deliver_now(ring);
  clock_->call_at(later(clock_->now(), kSoon), [weak = weak_from_this(), ring] {
    if (const auto alive = weak.lock()) alive->deliver_now(ring);
  });
}

void DeliveryThread::deliver_now(const Ring& ring) {
  CallbackThread::Job job = [ring] { ring->deliver(); };
  if (const Status posted = thread_->post(job); !posted.ok()) {
    ring->not_arranged();
    log::error(log_part_, "observers wait for a thread: {}", posted.to_string());
  }
}

bool DeliveryThread::flush(const Ring& ring, TimePoint until) {
  if (is_current()) return false;
  deliver_now(ring);
  return ring->flush(*clock_, until);
}

}  // namespace corelane::dispatch
