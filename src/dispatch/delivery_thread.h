/// The thread that calls observers, and when it does.
#pragma once

#include <memory>
#include <utility>

#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "dispatch/callback_thread.h"
#include "dispatch/delivery_ring.h"

namespace corelane::dispatch {

/// Delivers rings one at a time, in a thread that starts with the first of them. Any thread.
class DeliveryThread final : public std::enable_shared_from_this<DeliveryThread> {
 public:
  using Ring = std::shared_ptr<Deliverable>;

  /// See CallbackThread.
  DeliveryThread(std::shared_ptr<Clock> clock, const char* name, const char* log_part)
      : clock_(std::move(clock)),
        log_part_(log_part),
        thread_(std::make_shared<CallbackThread>(clock_, name, log_part)) {}

  /// Starts the thread, if it does not run: arrange() cannot fail then. kIo.
  Status start();
  /// What add() of the ring asked for. kSoon waits 5 ms for others on a real clock: a thread is
  /// woken for many items. Writes to the log where the system gives no thread, so not under a lock
  /// unless start() has succeeded.
  void arrange(const Ring& ring, Delivery when) noexcept;
  /// Delivers now what the ring holds; see Deliverable::flush. False in a call of this thread.
  bool flush(const Ring& ring, TimePoint until);
  bool is_current() const noexcept { return thread_->is_current(); }
  /// See CallbackThread.
  void stop() { thread_->stop(); }
  void stop_and_join() { thread_->stop_and_join(); }

 private:
  void deliver_now(const Ring& ring) noexcept;

  const std::shared_ptr<Clock> clock_;
  const char* const log_part_;
  const std::shared_ptr<CallbackThread> thread_;
};

}  // namespace corelane::dispatch
