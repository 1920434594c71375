// Entering, placing, starting and completing tasks.
#include "session/tasks/session_core.h"

#include <algorithm>

#include "base/fork.h"
#include "base/guard.h"
#include "base/later.h"
#include "base/leaked.h"
#include "corelane/device/device.h"
#include "dispatch/placement.h"
#include "session/fork_guard.h"
#include "session/session_parts.h"
#include "session/tasks/batch_call.h"
#include "session/tasks/future_state.h"
#include "session/tasks/session_worker.h"

namespace corelane::session {
namespace {

/// The session whose tasks this thread is starting further up its stack.
thread_local const SessionCore* pumping = nullptr;

class Pumping {
 public:
  explicit Pumping(const SessionCore* core) : outer_(std::exchange(pumping, core)) {}
  ~Pumping() { pumping = outer_; }
  Pumping(const Pumping&) = delete;
  Pumping& operator=(const Pumping&) = delete;

 private:
  const SessionCore* outer_;
};

Status closed_status() { return error(Code::kWrongState, "the session is closed; make a new one"); }

Status cancelled_status() {
  return error(Code::kCancelled, "the call was cancelled before it started");
}

std::size_t paced_cores(const SessionOptions& options) {
  return options.schedule.empty() ? 1 : dispatch::unique_cores(options.schedule).size();
}

}  // namespace

SessionCore::SessionCore(SessionParts parts)
    : options_(std::move(parts.options)),
      device_(parts.programs.front().device()),
      clock_(device_->clock()),
      model_(parts.programs.front().description(), parts.contexts.front().inputs(),
             parts.contexts.front().outputs(), options_),
      warnings_(std::move(parts.warnings)),
      generation_(fork_count()),
      perf_(options_.print_perf.value_or(false)),
      contexts_(parts.contexts.size()),
      duplicated_(parts.duplicated),
      context_cores_(parts.cores),
      callbacks_(std::make_shared<dispatch::CallbackThread>(clock_, "corelane-callbk", "session")),
      programs_(std::move(parts.programs)),
      running_by_core_(device_->info().cores.size() + 1),
      pacer_(paced_cores(options_)),
      order_(options_.sequential_callbacks) {
  const std::vector<std::size_t> cores = dispatch::unique_cores(options_.schedule);
  const bool one_lane = cores.empty() || options_.placement != PlacementPolicy::kFormula;
  lanes_.resize(one_lane ? 1 : cores.size());
  lane_of_core_.resize(device_->info().cores.size());
  for (std::size_t i = 0; i < cores.size() && !one_lane; ++i) lane_of_core_[cores[i]] = i;
  if (options_.placement == PlacementPolicy::kAdaptive && cores.size() > 1 &&
      device_->info().capabilities.multi_core_jobs) {
    std::uint64_t bits = 0;
    for (const std::size_t core : cores) bits |= std::uint64_t{1} << core;
    all_cores_ = device::CoreSet::mask(bits);
  }
  for (std::size_t i = 0; i < parts.contexts.size(); ++i) {
    const std::int32_t core = parts.cores[i];
    const device::CoreSet set =
        core < 0 ? parts.any_cores : device::CoreSet::mask(std::uint64_t{1} << core);
    workers_.push_back(
        std::make_unique<SessionWorker>(std::move(parts.contexts[i]), model_, set, core, i));
    Lane& lane = lanes_[core < 0 ? 0 : lane_of_core_[static_cast<std::size_t>(core)]];
    lane.idle.insert(lane.idle.begin(), workers_.back().get());  // The first one is taken first.
  }
  counted_.tasks_by_context.resize(contexts_);
}

SessionCore::~SessionCore() {
  callbacks_->stop();
  if (abandoned_.empty()) return;
  // Leaked on purpose (reachable for leak checkers): the device can no longer report the release.
  static Leaked<Mutex> mutex(LockRank::kLeaf);
  static Leaked<std::vector<std::shared_ptr<void>>> kept;
  const MutexLock lock(*mutex);
  kept->push_back(std::make_shared<std::vector<Abandoned>>(std::move(abandoned_)));
}

bool SessionCore::forked() const noexcept { return fork_count() != generation_; }

Status SessionCore::usable() const {
  if (!forked()) return {};
  return forked_status("the session was made");
}

Status SessionCore::refused(dispatch::Admission why, Duration waited) const {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(waited).count();
  if (why == dispatch::Admission::kPaced) {
    return error(Code::kTimeout,
                 "the pace of one task per {} us left no room within {} ms; raise "
                 "submit_timeout, or switch enable_pacing off",
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
               "within {} ms; raise max_queue_size or submit_timeout, or use try_run_async",
               waiting_, options_.max_queue_size, ms);
}

Status SessionCore::enter(Lock& lock, const CallOptions& options, Entrance& entrance,
                          const SessionTask* task) {
  dispatch::AdmissionView view;
  view.max_waiting = options_.max_queue_size;
  view.max_pending = options_.max_pending_callbacks;
  view.in_callback = callbacks_->is_current();
  bool paced = false;
  for (bool first = true;; first = false) {
    if (closing_) return closed_status();
    if (task != nullptr && task->terminated) return cancelled_status();
    view.waiting = waiting_;
    view.pending = pending_callbacks_;
    const bool room =
        view.waiting < view.max_waiting && (view.pending < view.max_pending || view.in_callback);
    if (room && !options_.enable_pacing) return {};
    const TimePoint now = clock_->now();
    if (first) {
      const Duration limit =
          options.submit_timeout > Duration{0} ? options.submit_timeout : options_.submit_timeout;
      if (!entrance.since) entrance.since = now;
      view.deadline = entrance.wait ? later(*entrance.since, limit) : now;
    }
    view.pace = options_.enable_pacing ? pacer_.admit(now) : now;
    if (view.pace > now && !paced) {
      paced = true;
      ++counted_.paced;
    }
    const dispatch::AdmissionAnswer answer = dispatch::admit(view, now);
    if (answer.what == dispatch::Admission::kEnter) return {};
    if (answer.what != dispatch::Admission::kWaitForRoom &&
        answer.what != dispatch::Admission::kWaitForPace) {
      ++counted_.rejected;
      return refused(answer.what, now - *entrance.since);
    }
    CORELANE_TRY(entrance.poll.wait(*clock_, lock, room_, answer.wait_until));
  }
}

std::size_t SessionCore::lane_of(std::uint64_t id, std::int32_t& wanted) const {
  if (options_.schedule.empty()) return 0;
  const std::size_t core = dispatch::core_of_task(options_.schedule, id);
  wanted = static_cast<std::int32_t>(core);
  return lanes_.size() == 1 ? 0 : lane_of_core_[core];
}

void SessionCore::number(SessionTask& task, TimePoint now) {
  task.id = next_id_++;
  task.queue = lane_of(task.id, task.wanted_core);
  if (task.draws_ticket) {
    task.ticket = order_.draw();
    if (task.batch != nullptr) task.batch->ticket = task.ticket;
  }
  if (options_.enable_pacing) pacer_.submitted(now);
  if (task.timeout > Duration{0} && task.deadline == kNever) {
    task.deadline = later(now, task.timeout);
  }
  ++counted_.accepted;
  ++live_;
}

Status SessionCore::accept(const std::shared_ptr<SessionTask>& task, const CallOptions& options,
                           Entrance& entrance) {
  {
    Lock lock(mutex_);
    CORELANE_TRY(enter(lock, options, entrance, task.get()));
    number(*task, clock_->now());
    task->state = TaskState::kWaiting;
    lanes_[task->queue].waiting.push_back(task);
    ++waiting_;
    if (task->future != nullptr) task->future->task_id.store(task->id, std::memory_order_relaxed);
  }
  pump();
  if (task->timeout > Duration{0}) {
    const Lock lock(mutex_);
    if (task->state == TaskState::kWaiting) {
      task->timer = clock_->call_at(task->deadline, [weak = weak_from_this(), task] {
        if (const auto core = weak.lock()) core->expire(task);
      });
      task->has_timer = true;
    }
  }
  return {};
}

SessionWorker* SessionCore::take_idle(Lane& lane, std::int32_t wanted, std::int64_t others) {
  if (lane.idle.empty()) return nullptr;
  std::size_t chosen = lane.idle.size() - 1;
  if (options_.placement != PlacementPolicy::kFormula && lane.idle.size() > 1) {
    std::vector<dispatch::IdleContext> idle;
    for (auto w = lane.idle.rbegin(); w != lane.idle.rend(); ++w) {
      idle.push_back({(*w)->core(), running_by_core_[static_cast<std::size_t>((*w)->core() + 1)]});
    }
    chosen = lane.idle.size() - 1 - dispatch::least_loaded(idle, wanted);
  }
  SessionWorker* worker = lane.idle[chosen];
  lane.idle.erase(lane.idle.begin() + static_cast<std::ptrdiff_t>(chosen));
  if (all_cores_) {
    const bool all = alone_.takes_all_cores(running_, others, pacer_.average());
    worker->widen(all ? all_cores_ : std::nullopt);
  }
  ++running_;
  ++running_by_core_[static_cast<std::size_t>(worker->core() + 1)];
  ++counted_.tasks_by_context[worker->index()];
  return worker;
}

void SessionCore::pump() {
  if (pumping == this) return;  // The call further up goes on when this one returns.
  const Pumping here(this);
  for (;;) {
    std::shared_ptr<SessionTask> task;
    SessionWorker* worker = nullptr;
    {
      const Lock lock(mutex_);
      for (Lane& lane : lanes_) {
        if (lane.waiting.empty()) continue;
        worker = take_idle(lane, lane.waiting.front()->wanted_core, waiting_ - 1);
        if (worker == nullptr) continue;
        task = std::move(lane.waiting.front());
        lane.waiting.pop_front();
        break;
      }
      if (worker == nullptr) break;
      task->state = TaskState::kStarted;
      drop_timer(*task);
      --waiting_;
      room_.notify_all();
    }
    start(*worker, task);
  }
}

void SessionCore::drop_timer(SessionTask& task) {
  if (!task.has_timer) return;
  task.has_timer = false;
  clock_->cancel(task.timer);
}

void SessionCore::start(SessionWorker& worker, const std::shared_ptr<SessionTask>& task) {
  const CallTerms terms{task->tag.value_or(task->id), task->deadline, task->priority};
  const TimePoint begin = perf_ ? clock_->now() : TimePoint{};
  Result<Inference> started =
      no_throw("starting a task", [&] { return worker.start(task->call, terms, *clock_); });
  if (!started) {
    complete(worker, task, std::move(started).error(), {}, {});
    return;
  }
  if (perf_) task->set_input += clock_->now() - begin;
  bool terminated = false;
  {
    const Lock lock(mutex_);
    task->inference = *started;
    task->has_inference = true;
    terminated = task->terminated;
  }
  if (terminated) started->cancel();  // Asked for while it was bound.
  started->on_done([core = shared_from_this(), &worker, task](const Status& status) {
    Inference inference;
    {
      const Lock lock(core->mutex_);
      inference = std::move(task->inference);
      task->inference = {};
      task->has_inference = false;
    }
    if (!status.ok()) core->keep_until_released(inference, task->call);
    core->complete(worker, task, status, inference.times(), inference.record());
  });
}

void SessionCore::complete(SessionWorker& worker, const std::shared_ptr<SessionTask>& task,
                           Status status, const RunTimes& times, const device::JobRecord& record) {
  Duration copied{};
  if (status.ok()) status = worker.collect(task->call, copied, *clock_);
  if (perf_) {
    print({task->id, worker.index(), std::max(worker.core(), 0), task->set_input + times.copy_in,
           times.device, status.ok() ? times.copy_out + copied : Duration{}});
  }
  bool more = false;
  {
    const Lock lock(mutex_);
    if (status.code() == Code::kCancelled && record.core_bits == 0) ++counted_.cancelled;
    task->state = TaskState::kDone;
    give_back(worker, status, times.device);
    more = waiting_ > 0;
  }
  if (more) pump();  // The core has work before anybody is told.
  resolve(task, status);
}

void SessionCore::give_back(SessionWorker& worker, const Status& status, Duration device_time) {
  const std::size_t core = static_cast<std::size_t>(worker.core() + 1);
  lanes_[worker.core() < 0 ? 0 : lane_of_core_[core - 1]].idle.push_back(&worker);
  --running_;
  --running_by_core_[core];
  if (!status.ok()) return;
  pacer_.sample(device_time);
  average_.store(pacer_.average().count(), std::memory_order_relaxed);
}

bool SessionCore::withdraw(SessionTask& task) {
  if (task.state != TaskState::kWaiting) return false;
  std::deque<std::shared_ptr<SessionTask>>& waiting = lanes_[task.queue].waiting;
  const auto place = std::find_if(waiting.begin(), waiting.end(),
                                  [&](const auto& other) { return other.get() == &task; });
  if (place == waiting.end()) return false;
  waiting.erase(place);
  task.state = TaskState::kDone;
  drop_timer(task);
  --waiting_;
  ++counted_.cancelled;
  room_.notify_all();
  return true;
}

void SessionCore::expire(const std::shared_ptr<SessionTask>& task) {
  {
    const Lock lock(mutex_);
    task->has_timer = false;
    if (!withdraw(*task)) return;
  }
  resolve(task, error(Code::kTimeout, "the task's time was over before a core was free"));
}

bool SessionCore::cancel(const std::shared_ptr<SessionTask>& task) {
  if (forked()) return false;
  Inference inference;
  bool started = false;
  {
    const Lock lock(mutex_);
    if (task->state == TaskState::kEntering) {
      task->terminated = true;
      room_.notify_all();
      return true;
    }
    started = task->has_inference;
    if (started) {
      inference = task->inference;
    } else if (task->state == TaskState::kStarted) {
      task->terminated = true;  // start() sees it.
      return true;
    } else if (!withdraw(*task)) {
      return false;
    }
  }
  if (started) return inference.cancel();
  resolve(task, cancelled_status());
  return true;
}

}  // namespace corelane::session
