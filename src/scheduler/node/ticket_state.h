/// A submitted request: its place in the line and its answer.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fork.h"
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
  std::shared_ptr<SplitRequest> whole;  ///< The request it is a part of; null: it is whole.
  std::size_t part = 0;
  bool is_split = false;              ///< It has parts, and is not in the line itself.
  std::weak_ptr<SplitRequest> split;  ///< Its parts, until they have ended.
  std::weak_ptr<NodeCore> node;
  std::shared_ptr<Clock> clock;

  /// Sets the answer and wakes the threads that wait. Once.
  void answer(RequestState how, Status why, Dict with);
  /// Whether it has ended. In a forked child a request of the parent has: as it did before the
  /// fork, else as kCancelled with kWrongState.
  bool done() const noexcept { return answered() || lost(); }
  /// How it ended; kWaiting where it has not.
  RequestState outcome() const noexcept;
  Status wait(TimePoint until);
  Result<Dict> take();
  /// The calling process is a child of the one that it was submitted in: its node is not here.
  bool forked() const noexcept { return made_in_ != fork_count(); }

 private:
  bool answered() const noexcept { return answered_.load(std::memory_order_acquire); }
  bool lost() const noexcept { return forked() && !answered(); }
  Failure lost_failure() const;

  const std::uint64_t made_in_ = fork_count();
  Mutex mutex_{LockRank::kTicket};
  std::condition_variable woken_;
  std::atomic<bool> answered_{false};  ///< Set last of the answer, which is fixed since then.
  std::atomic<bool> taken_{false};
  RequestState outcome_ = RequestState::kWaiting;
  Status status_;
};

using TicketPtr = std::shared_ptr<TicketState>;

/// All that wait in the table of a node are tickets.
inline TicketPtr own(const WaitingPtr& request) {
  return std::static_pointer_cast<TicketState>(request);
}

/// What no scheduler takes: no "data", no items, a timeout or a priority out of its range.
Status check_request(const Dict& values, const RequestOptions& options);

/// For messages.
inline double ms(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

}  // namespace corelane::scheduler
