#include "lanes/lane_job.h"

#include "base/guard.h"
#include "lanes/lane_scheduler.h"
#include "lanes/laned_bindings.h"

namespace corelane::lanes {

std::string job_text(const LaneOccupant& job) noexcept {
  return text_or_none([&] {
    if (job.origin->name.empty()) return fmt::format("job {}", job.id);
    return fmt::format("job {} of '{}'", job.id, job.origin->name);
  });
}

LanedJob::LanedJob(LaneScheduler& owner, std::shared_ptr<QueueAccount> account,
                   std::shared_ptr<LanedBindings> tensors, const device::Submission& submission)
    : scheduler(owner),
      queue(std::move(account)),
      bindings(std::move(tensors)),
      cores(submission.cores),
      deadline(submission.deadline),
      room_until(submission.room_until),
      from_callback(submission.from_callback),
      brief_callbacks(submission.brief_callbacks),
      give_up(submission.give_up),
      waits(submission.wait),
      signals(submission.signal) {
  // The part that a blocking run has too: see LaneOccupant.
  bound = bindings.get();
  job = this;
  origin = queue.get();
  record_.tag = submission.tag;
  record_.queue = queue->id;
  record_.batch = submission.batch;
  record_.priority = submission.priority + queue->priority;
}

LanedExecutable& LanedJob::executable() const noexcept { return bindings->executable(); }

bool LanedJob::wait(TimePoint until) { return scheduler.wait(*this, until); }

bool LanedJob::run_here() { return scheduler.run_here(*this); }

bool LanedJob::wait_released(TimePoint until) { return scheduler.wait_released(*this, until); }

/// After done() neither status nor record changes, so they are read without the lock.
Status LanedJob::status() const {
  if (done()) return status_;
  return error(Code::kWrongState, "the job is not done; wait for it before asking for its status");
}

device::JobRecord LanedJob::record() const { return done() ? record_ : device::JobRecord{}; }

bool LanedJob::cancel() { return scheduler.cancel(*this); }

/// The table takes `f` only while the job is not done: it is called once, here or by call_back().
void LanedJob::on_done(std::function<void(device::Completion&)> f) {
  if (!scheduler.add_callback(*this, f))
    run_callback("device", "a completion's callback", f, *this);
}

void LanedJob::signal_fences() noexcept {
  for (const auto& fence : signals) fence->signal(status_);
}

void LanedJob::call_back() noexcept {
  callbacks_.for_each(
      [&](const auto& f) { run_callback("device", "a completion's callback", f, *this); });
  // What they hold goes now and not with the job, which users keep for its record.
  callbacks_.clear();
}

}  // namespace corelane::lanes
