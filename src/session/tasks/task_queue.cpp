#include "session/tasks/task_queue.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/later.h"
#include "corelane/session/session.h"
#include "session/tasks/session_task.h"

namespace corelane::session {
namespace {

/// Cores of the schedule; 1 without one, where the device places tasks.
std::size_t schedule_cores(const SessionOptions& options) {
  return options.schedule.empty() ? 1 : dispatch::unique_cores(options.schedule).size();
}

}  // namespace

TaskQueue::TaskQueue(const SessionOptions& options, std::vector<std::int32_t> context_cores,
                     std::size_t device_cores, bool joins_cores)
    : schedule_(options.schedule),
      placement_(options.placement),
      paced_(options.enable_pacing),
      max_waiting_(options.max_queue_size),
      max_pending_callbacks_(options.max_pending_callbacks),
      context_cores_(std::move(context_cores)),
      joins_cores_(joins_cores),
      lane_of_core_(device_cores),
      running_by_core_(device_cores + 1),
      pacer_(schedule_cores(options)),
      lone_(schedule_cores(options)) {
  const std::vector<std::size_t> cores = dispatch::unique_cores(schedule_);
  // By the formula each core has a line of its own; otherwise the first idle context takes the
  // first task.
  const bool one_lane = cores.empty() || placement_ != PlacementPolicy::kFormula;
  lanes_.resize(one_lane ? 1 : cores.size());
  for (std::size_t i = 0; i < cores.size() && !one_lane; ++i) lane_of_core_[cores[i]] = i;
  // Backwards, since the last idle one is taken first: context 0 begins.
  for (std::size_t context = context_cores_.size(); context-- > 0;)
    lanes_[lane_of_context(context)].idle.push_back(context);
  counted_.tasks_by_context.resize(context_cores_.size());
}

bool TaskQueue::has_room(bool in_callback) const noexcept {
  return waiting_ < max_waiting_ && (pending_callbacks_ < max_pending_callbacks_ || in_callback);
}

dispatch::AdmissionAnswer TaskQueue::admit(Entrance& entrance, TimePoint now) {
  dispatch::AdmissionView view;
  view.waiting = static_cast<std::uint64_t>(waiting_);
  view.max_waiting = static_cast<std::uint64_t>(max_waiting_);
  view.pending = static_cast<std::uint64_t>(pending_callbacks_);
  view.max_pending = static_cast<std::uint64_t>(max_pending_callbacks_);
  view.in_callback = entrance.in_callback;
  view.deadline = entrance.deadline;
  view.pace = paced_ ? pacer_.admit(now) : now;
  // Counted once for each call, however often it asks.
  if (view.pace > now && !entrance.paced) {
    entrance.paced = true;
    ++counted_.paced;
  }
  const dispatch::AdmissionAnswer answer = dispatch::admit(view, now);
  if (dispatch::is_refusal(answer.what)) ++counted_.rejected;
  return answer;
}

Status TaskQueue::refused(dispatch::Admission why, Duration waited) const {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(waited).count();
  if (why == dispatch::Admission::kPaced) {
    return error(Code::kTimeout,
                 "the pace admits one task per {} us, and no slot came within {} ms; raise "
                 "the submit timeout, or switch enable_pacing off",
                 pacer_.interval().count() / 1000, ms);
  }
  if (why == dispatch::Admission::kCallbacksPending) {
    return error(Code::kTimeout,
                 "{} tasks wait for their callbacks (max_pending_callbacks) and none returned "
                 "within {} ms; make callbacks shorter, or raise max_pending_callbacks",
                 pending_callbacks_, ms);
  }
  return error(Code::kTimeout,
               "{} tasks wait to be started (max_queue_size {}) and there was no room for this one "
               "within {} ms; raise max_queue_size or the submit timeout, or use try_run_async",
               waiting_, max_waiting_, ms);
}

std::size_t TaskQueue::lane_of_task(std::uint64_t id, std::int32_t& wanted_core) const {
  if (schedule_.empty()) return 0;
  const std::size_t core = dispatch::core_of_task(schedule_, id);
  wanted_core = static_cast<std::int32_t>(core);
  return lanes_.size() == 1 ? 0 : lane_of_core_[core];
}

std::size_t TaskQueue::lane_of_context(std::size_t context) const {
  const std::int32_t core = context_cores_[context];
  return core < 0 ? 0 : lane_of_core_[static_cast<std::size_t>(core)];
}

void TaskQueue::number(std::uint64_t& id, TimePoint now) {
  id = next_id_++;
  // A number is given in the order of acceptance; run() in place counts for the pace too.
  if (paced_) pacer_.submitted(now);
  ++counted_.accepted;
  ++undelivered_;
}

void TaskQueue::accept(const std::shared_ptr<SessionTask>& task, TimePoint now) {
  number(task->id, now);
  task->lane = lane_of_task(task->id, task->wanted_core);
  // Samples of a batch come with the deadline of the first one.
  if (task->timeout > Duration{0} && task->deadline == kNever)
    task->deadline = later(now, task->timeout);
  task->progress.move_to(TaskState::kWaiting);
  lanes_[task->lane].waiting.push_back(task);
  ++waiting_;
}

std::optional<Assignment> TaskQueue::take_context(Lane& lane, std::int32_t wanted_core,
                                                  std::int64_t others) {
  if (lane.idle.empty() || lane.awaiting_room > 0) return std::nullopt;
  // The one that was released last: its memory is still in the caches.
  std::size_t chosen = lane.idle.size() - 1;
  // A task that may take all cores stays on that one: it has what a run of either width needs.
  const bool stays = joins_cores_ && running_ == 0;
  if (placement_ != PlacementPolicy::kFormula && lane.idle.size() > 1 && !stays) {
    SureVector<dispatch::IdleContext> idle;
    for (const std::size_t context : std::views::reverse(lane.idle)) {
      const std::int32_t core = context_cores_[context];
      idle.push_back({core, running_on(core)});
    }
    chosen = lane.idle.size() - 1 - dispatch::least_loaded(idle, wanted_core);
  }
  Assignment taken;
  taken.context = lane.idle[chosen];
  lane.idle.erase(lane.idle.begin() + static_cast<std::ptrdiff_t>(chosen));
  // Decided here, where it is known that nothing else runs or waits.
  taken.all_cores = joins_cores_ && lone_.begins(taken.context, running_, others, pacer_.average());
  ++running_;
  ++running_on(context_cores_[taken.context]);
  ++counted_.tasks_by_context[taken.context];
  return taken;
}

std::optional<Assignment> TaskQueue::start_next() {
  if (waiting_ == 0) return std::nullopt;
  for (Lane& lane : lanes_) {
    if (lane.waiting.empty()) continue;
    auto taken = take_context(lane, lane.waiting.front()->wanted_core, waiting_ - 1);
    if (!taken) continue;
    taken->task = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    --waiting_;
    taken->id = taken->task->id;
    taken->task->progress.move_to(TaskState::kStarting);
    return taken;
  }
  return std::nullopt;
}

std::optional<Assignment> TaskQueue::start_in_place(TimePoint now) {
  // A blocking call passes nobody who waits.
  if (closed_ || waiting_ > 0 || pending_callbacks_ >= max_pending_callbacks_) return std::nullopt;
  if (paced_ && pacer_.admit(now) > now) return std::nullopt;
  std::int32_t wanted_core = -1;
  Lane& lane = lanes_[lane_of_task(next_id_, wanted_core)];
  auto taken = take_context(lane, wanted_core, 0);
  if (taken) number(taken->id, now);
  return taken;
}

bool TaskQueue::submitted(SessionTask& task) {
  if (task.progress.state() == TaskState::kStopping) return false;
  task.progress.move_to(TaskState::kRunning);
  return true;
}

Cancellation TaskQueue::cancel(SessionTask& task) {
  switch (task.progress.state()) {
    case TaskState::kEntering:
      task.progress.move_to(TaskState::kRefused);
      [[fallthrough]];
    case TaskState::kRefused:
      return Cancellation::kRefused;
    case TaskState::kWaiting:
      withdraw(task);
      return Cancellation::kWithdrawn;
    case TaskState::kStarting:
      task.progress.move_to(TaskState::kStopping);
      [[fallthrough]];
    case TaskState::kStopping:
      return Cancellation::kStopping;
    case TaskState::kRunning:
      return Cancellation::kRunning;
    default:
      return Cancellation::kTooLate;
  }
}

bool TaskQueue::withdraw(SessionTask& task) {
  if (task.progress.state() != TaskState::kWaiting) return false;
  std::erase_if(lanes_[task.lane].waiting, [&](const auto& other) { return other.get() == &task; });
  --waiting_;
  ++counted_.cancelled;
  ++counted_.completed;
  ++counted_.failed;
  task.progress.move_to(TaskState::kDone);
  return true;
}

SureVector<std::shared_ptr<SessionTask>> TaskQueue::withdraw_all() {
  SureVector<std::shared_ptr<SessionTask>> withdrawn;
  for (Lane& lane : lanes_) {
    while (!lane.waiting.empty()) {
      withdrawn.push_back(lane.waiting.front());
      withdraw(*withdrawn.back());
    }
  }
  return withdrawn;
}

void TaskQueue::count(const Status& status) noexcept {
  ++counted_.completed;
  if (!status.ok()) ++counted_.failed;
}

void TaskQueue::complete(SessionTask& task, const Status& status, bool started) {
  task.progress.move_to(TaskState::kDone);
  count(status);
  // A task that had begun to run counts as failed, not as cancelled.
  if (status.code() == Code::kCancelled && !started) ++counted_.cancelled;
}

void TaskQueue::complete_in_place(const Status& status) {
  count(status);
  delivered(1);
}

void TaskQueue::release(std::size_t context, const Status& status, Duration device_time,
                        Duration waited) {
  lanes_[lane_of_context(context)].idle.push_back(context);
  --running_;
  --running_on(context_cores_[context]);
  lone_.ends(context, status.ok(), waited + device_time);
  // The time of a failure says nothing about the next task.
  if (status.ok()) pacer_.sample(device_time);
}

bool TaskQueue::callback_returned() noexcept {
  ++counted_.callbacks;
  return pending_callbacks_-- >= max_pending_callbacks_;
}

SessionStatistics TaskQueue::statistics() const {
  SessionStatistics s = counted_;
  s.waiting = static_cast<std::size_t>(waiting_);
  s.running = running_;
  s.pending_callbacks = static_cast<std::size_t>(pending_callbacks_);
  s.average_device_time = pacer_.average();
  return s;
}

}  // namespace corelane::session
