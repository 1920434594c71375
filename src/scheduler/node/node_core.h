/// One node at work: the line, the decisions and the answers, around a GatherTable.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/scheduler/scheduler.h"
#include "corelane/scheduler/stage.h"
#include "dispatch/admission.h"
#include "dispatch/callback_thread.h"
#include "scheduler/gather/gather_table.h"
#include "scheduler/node/ticket_state.h"

namespace corelane::scheduler {

/// kInvalidArgument where `max_batch` is below the min of a group.
Status check_max_batch(const std::vector<Topology::Group>& groups, const NodeSettings& settings);

/// Any thread. Nothing is copied, called or started under its lock but the table's decisions: what
/// follows from them is collected and done after it.
class NodeCore final : public std::enable_shared_from_this<NodeCore> {
 public:
  NodeCore(const NodeSettings& settings, std::unique_ptr<Stage> stage,
           std::shared_ptr<Clock> clock);
  ~NodeCore();
  /// For messages; before the first request.
  void set_name(std::string_view name);

  using Callback = std::function<void(const Ticket&)>;
  /// `outer`: the request that it is run for, where this node is a backend; null: none.
  TicketPtr submit(Dict values, const RequestOptions& options, Callback on_done,
                   RequestPtr outer = nullptr);
  bool cancel(const TicketPtr& ticket);
  RequestState state_of(const TicketState& ticket) const;

  Status drain(TimePoint until);
  /// Waits until the callbacks of all answers have returned; not in a callback.
  void end_callbacks();
  /// Nothing enters from now on. Does not wait.
  void close(Shutdown how);
  /// close(), and waits until nothing waits or runs.
  Status shutdown(Shutdown how, TimePoint until);
  /// New settings of those that hold, checked; without the lock.
  using Change = std::function<Result<NodeSettings>(const NodeSettings&)>;
  Status reconfigure(const Change& change);

  Topology topology() const;
  /// Items: no limit where requests are split, else those of the largest call.
  std::uint32_t largest_request() const noexcept;
  Statistics statistics() const;
  std::vector<BatchRecord> records() const;
  Result<std::string> why(std::uint64_t id) const;
  std::string chrome_trace(std::string_view name) const;
  /// Whether the caller runs in forward() of a backend of this node.
  bool inside() const noexcept;

 private:
  struct Answer {
    TicketPtr ticket;
    RequestState how = RequestState::kDone;
    Status why;
    Dict values;
  };
  /// What follows from a decision, to be done without the lock.
  struct Aftermath {
    struct Call {
      std::uint64_t batch = 0;
      std::uint32_t padding = 0;
      StageCall call;
      SureVector<TicketPtr> tickets;
      bool prepared = true;  ///< False: there was no memory for its requests.
    };
    SureVector<Call> calls;
    SureVector<Answer> answers;
    /// What users gave and nobody needs: it is destroyed without the lock.
    SureVector<Dict::node_type> values;
    SureVector<RequestPtr> requests;
  };
  /// A request that has ended, for why().
  struct Ending {
    std::uint64_t id = 0;
    RequestState how = RequestState::kDone;
    TimePoint submitted{};
    TimePoint ended{};
    std::string why;
    SureVector<std::uint64_t> parts;  ///< Their numbers; empty: it was not split.
  };

  TicketPtr new_ticket(Dict values, const RequestOptions& options, Callback on_done);
  void enter_or_refuse(const TicketPtr& ticket);
  Status enter(MutexLock& lock, const TicketPtr& ticket, Aftermath& after) noexcept
      CORELANE_REQUIRES(mutex_);
  Result<std::vector<TicketPtr>> make_parts(const TicketPtr& ticket);
  void enter_split(const TicketPtr& ticket);
  Status enter_parts(MutexLock& lock, const TicketPtr& ticket, const std::vector<TicketPtr>& parts,
                     Aftermath& after) noexcept CORELANE_REQUIRES(mutex_);
  /// Waits for room where the policy says so. Ok: it may enter.
  Status admit(MutexLock& lock, const TicketPtr& ticket, Aftermath& after)
      CORELANE_REQUIRES(mutex_);
  dispatch::AdmissionView view_for(const TicketState& ticket) const CORELANE_REQUIRES(mutex_);
  /// The place of a submission that waits for room, and what wakes it.
  struct Turn {
    LinePlace place;
    std::condition_variable* room = nullptr;
  };
  Status enter_in_turn(MutexLock& lock, const TicketPtr& ticket, const Turn& turn, Aftermath& after)
      CORELANE_REQUIRES(mutex_);
  static Status out_of_time(const TicketState& ticket, const Status& held_up);
  void let_go(TimePoint now) CORELANE_REQUIRES(mutex_);
  /// Nothing waits for more requests: there is an end to wait for, or the line is full.
  bool hurries() const CORELANE_REQUIRES(mutex_) {
    return draining_ != 0 || closed_ || !turns_.empty();
  }
  bool drop_oldest(std::uint64_t items, std::uint64_t bytes, Aftermath& after)
      CORELANE_REQUIRES(mutex_);
  Status again_later(const Status& why) const CORELANE_REQUIRES(mutex_);
  /// Wakes the threads in drain() and shutdown(), and the first submission that waits for room.
  void wake() CORELANE_REQUIRES(mutex_);
  Status full(dispatch::LineLimit limit, bool for_ever) const CORELANE_REQUIRES(mutex_);
  void end(const TicketPtr& ticket, RequestState how, Status why, Aftermath& after)
      CORELANE_REQUIRES(mutex_);
  void refuse(const TicketPtr& ticket, RequestState how, Status why, Aftermath& after)
      CORELANE_REQUIRES(mutex_);
  /// Cancelled where that is why it cannot enter, else rejected.
  void refuse_as(const TicketPtr& ticket, Status why, Aftermath& after) CORELANE_REQUIRES(mutex_);
  /// Asks the table, and prepares what it says.
  void decide(TimePoint now, Aftermath& after) noexcept CORELANE_REQUIRES(mutex_);
  void follow(Decision& decision, Aftermath& after) noexcept CORELANE_REQUIRES(mutex_);
  void prepare(Start& start, Aftermath& after) noexcept CORELANE_REQUIRES(mutex_);
  bool set_timer(TimePoint wake) noexcept CORELANE_REQUIRES(mutex_);
  void on_timer() noexcept;
  void settle(Aftermath& after) noexcept;
  void start(Aftermath::Call next) noexcept;
  bool may_repeat(std::uint32_t group) const noexcept;
  Status begin(StageCall& call, std::uint32_t padding);
  void deliver(Answer& answer) noexcept;
  void call_ended(const Aftermath::Call& call, const Status& status) noexcept;
  /// How one request of a call ended.
  Answer outcome(const TicketPtr& ticket, const Status& status, Aftermath& after) const;
  /// Erases "result" of a request that failed.
  static void drop_result(Dict& values, Aftermath& after);
  void add(Answer answer, Aftermath& after) CORELANE_REQUIRES(mutex_);
  void note(const Answer& answer, SureVector<std::uint64_t> parts = {}) noexcept
      CORELANE_REQUIRES(mutex_);
  std::string told(const Ending& ending) const CORELANE_REQUIRES(mutex_);
  void cancel_unwanted(Aftermath& after) CORELANE_REQUIRES(mutex_);
  void cancel_waiting(Aftermath& after) CORELANE_REQUIRES(mutex_);
  void abort_running(Aftermath& after) CORELANE_REQUIRES(mutex_);
  bool at_rest() const CORELANE_REQUIRES(mutex_) { return table_.idle() && delivering_ == 0; }
  Status wait_idle(MutexLock& lock, TimePoint until) CORELANE_REQUIRES(mutex_);
  Status resize_group(std::uint32_t group, std::uint32_t instances);
  Status resize_groups(const NodeSettings& held, const NodeSettings& settings);

  const std::shared_ptr<Clock> clock_;
  std::unique_ptr<Stage> stage_;  ///< Fixed until the destructor.
  std::string what_;              ///< "node 'A'": for messages.
  const std::shared_ptr<dispatch::CallbackThread> callbacks_;
  mutable Mutex mutex_{LockRank::kNode};
  std::condition_variable changed_;  ///< A call that ended, a change of settings.
  /// Submissions that wait for room, in their order. Each wakes the next one when it leaves.
  SureMap<LinePlace, std::condition_variable*> turns_ CORELANE_GUARDED_BY(mutex_);
  GatherTable table_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t last_id_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::deque<Ending> endings_ CORELANE_GUARDED_BY(mutex_);
  TimePoint armed_ CORELANE_GUARDED_BY(mutex_) = kNever;
  Clock::TimerId timer_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::atomic<int> blocked_{0};     ///< Threads that wait for `changed_`.
  std::atomic<int> delivering_{0};  ///< Decisions whose answers are being delivered.
  int draining_ CORELANE_GUARDED_BY(mutex_) = 0;
  bool closed_ CORELANE_GUARDED_BY(mutex_) = false;
  bool changing_ CORELANE_GUARDED_BY(mutex_) = false;  ///< In reconfigure().
  bool nested_ CORELANE_GUARDED_BY(mutex_) = false;    ///< Some requests have an outer one.
};

}  // namespace corelane::scheduler
