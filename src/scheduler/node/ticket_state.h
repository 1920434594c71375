/// A submitted request: its place in the line and its answer.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/sync.h"
#include "corelane/scheduler/scheduler.h"
#include "scheduler/gather/waiting.h"

namespace corelane::scheduler {

class SplitRequest;

/// What Waiting holds, `request` and `values` are guarded by the node's lock until there is an
/// answer; the answer is set once.
struct TicketState final : Waiting {
  RequestOptions options;
  Dict values;         ///< While no backend has them, and after the answer.
  RequestPtr request;  ///< What a backend has.
  RequestPtr outer;    ///< Of a scheduler that is itself a backend: what it runs this one for.
  std::function<void(const Ticket&)> on_done;
  std::shared_ptr<SplitRequest> whole;  ///< Of which it is a part; null: it is whole.
  std::size_t part = 0;
  bool is_split = false;              ///< It has parts, and is not in the line itself.
  std::weak_ptr<SplitRequest> split;  ///< Its parts, until they have ended.
  std::weak_ptr<NodeCore> node;
  std::shared_ptr<Clock> clock;

  /// Sets the answer and wakes the threads that wait. Once.
  void answer(RequestState how, Status why, Dict with);
  bool done() const;
  RequestState outcome() const;
  Status wait(TimePoint until);
  Result<Dict> take();

 private:
  mutable Mutex mutex_{LockRank::kTicket};
  std::condition_variable answered_;
  bool done_ CORELANE_GUARDED_BY(mutex_) = false;
  bool taken_ CORELANE_GUARDED_BY(mutex_) = false;
  RequestState outcome_ CORELANE_GUARDED_BY(mutex_) = RequestState::kWaiting;
  Status status_ CORELANE_GUARDED_BY(mutex_);
};

using TicketPtr = std::shared_ptr<TicketState>;

/// All that wait in the table of a node are tickets.
inline TicketPtr own(const WaitingPtr& request) {
  return std::static_pointer_cast<TicketState>(request);
}

/// For messages.
inline double ms(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

}  // namespace corelane::scheduler
