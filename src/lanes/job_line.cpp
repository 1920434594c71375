#include "lanes/job_line.h"

#include <algorithm>

#include "lanes/lane_job.h"

namespace corelane::lanes {
namespace {

/// What a user's arbiter grants is checked here, so that a wrong one cannot break the table.
bool fits(const device::Grant& grant, std::span<const device::WaitingJob> waiting,
          std::span<const device::CoreState> cores) {
  if (grant.job >= waiting.size() || grant.core_bits == 0) return false;
  for (std::uint64_t bits = grant.core_bits; bits != 0; bits &= bits - 1) {
    const auto core = static_cast<std::size_t>(std::countr_zero(bits));
    if (core >= cores.size() || cores[core].busy || !cores[core].usable) return false;
  }
  const device::CoreSet& asked = waiting[grant.job].cores;
  const auto given = static_cast<std::size_t>(std::popcount(grant.core_bits));
  if (asked.is_mask()) return asked.bits() == grant.core_bits;
  return (grant.core_bits & ~asked.among()) == 0 && (asked.count() == 0 || asked.count() == given);
}

/// What a job that asked for `cores` can have of the `allowed` ones. A mask has no others: those
/// that have are refused.
device::CoreSet within(const device::CoreSet& cores, std::uint64_t allowed) {
  if (cores.is_mask()) return cores;
  if (cores.kind() == device::CoreSet::Kind::kPlatform) return device::CoreSet::mask(allowed);
  return device::CoreSet::any_of(device::CoreSet::mask(allowed & cores.among()), cores.count());
}

}  // namespace

void JobLine::count(const LanedJob& job, bool joins) noexcept {
  if (job.queue->share.capped()) joins ? ++capped_ : --capped_;
}

TimePoint JobLine::next_allowed(TimePoint now) const {
  TimePoint next = kNever;
  for (const auto& job : jobs_)
    if (job->queue->share.allowed_at() > now) next = std::min(next, job->queue->share.allowed_at());
  return next;
}

void JobLine::add(device::WaitingJob facts, std::shared_ptr<LanedJob> job) {
  count(*job, true);
  waiting_.push_back(std::move(facts));
  jobs_.push_back(std::move(job));
}

/// Ids rise in order of submission, and so does the line.
void JobLine::put_back(device::WaitingJob facts, std::shared_ptr<LanedJob> job) {
  count(*job, true);
  const auto later = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const auto& other) { return other->id > job->id; });
  waiting_.insert(waiting_.begin() + (later - jobs_.begin()), std::move(facts));
  jobs_.insert(later, std::move(job));
}

void JobLine::remove(const LanedJob& job) {
  const auto place = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const auto& other) { return other.get() == &job; });
  static_cast<void>(take({static_cast<std::size_t>(place - jobs_.begin()), 0}));
}

SureVector<std::shared_ptr<LanedJob>> JobLine::remove_if(
    const std::function<bool(LanedJob&)>& gone) {
  SureVector<std::shared_ptr<LanedJob>> removed;
  for (std::size_t i = 0; i < jobs_.size();)
    if (gone(*jobs_[i]))
      removed.push_back(take({i, 0}).job);
    else
      ++i;
  return removed;
}

JobLine::Choice JobLine::take(const device::Grant& grant) {
  const auto at = static_cast<std::ptrdiff_t>(grant.job);
  // `jobs_` and `waiting_` always change together: index i of both is one job.
  Choice choice{std::move(jobs_[grant.job]), grant.core_bits};
  count(*choice.job, false);
  jobs_.erase(jobs_.begin() + at);
  waiting_.erase(waiting_.begin() + at);
  return choice;
}

std::optional<JobLine::Choice> JobLine::next(const LaneCores& cores, TimePoint now,
                                             SureVector<std::string>& complaints) {
  if (jobs_.empty() || cores.idle_bits() == 0) return std::nullopt;
  if (has_arbiter())
    for (std::size_t i = 0; i < jobs_.size(); ++i)
      waiting_[i].served = jobs_[i]->queue->share.served();
  const auto grant = cores.owned_bits() != 0 || any_capped()
                         ? decide_limited(cores, now, complaints)
                         : decide(waiting_, cores.states(), now, complaints);
  if (!grant) return std::nullopt;
  if (has_arbiter()) update(*grant, now);
  return take(*grant);
}

/// The younger jobs of its queue begin to wait anew; the older ones do not.
void JobLine::update(const device::Grant& grant, TimePoint now) {
  for (std::size_t i = grant.job + 1; i < waiting_.size(); ++i)
    if (waiting_[i].queue == waiting_[grant.job].queue) waiting_[i].first_since = now;
}

/// Under the scheduler's lock: an arbiter must be a pure function, and calls nothing of the device.
std::optional<device::Grant> JobLine::decide(std::span<const device::WaitingJob> waiting,
                                             std::span<const device::CoreState> cores,
                                             TimePoint now,
                                             SureVector<std::string>& complaints) const {
  // The device's own arbiter is trusted: no check and no guard.
  if (arbiter_ == nullptr) return device::fifo_arbiter()->pick(waiting, cores, now);
  try {
    auto grant = arbiter_->pick(waiting, cores, now);
    if (!grant || fits(*grant, waiting, cores)) return grant;
    complaints.push_back(text_or_none([&] {
      return fmt::format(
          "the arbiter granted job {} the cores {:#x}, which it cannot have; first-in-first-out "
          "decides instead",
          grant->job, grant->core_bits);
    }));
  } catch (const std::exception& e) {
    complaints.push_back(text_or_none([&] {
      return fmt::format("the arbiter threw: {}; first-in-first-out decides", e.what());
    }));
  } catch (...) {
    complaints.push_back(text_or_none(
        [] { return std::string("the arbiter threw something that is not a std::exception"); }));
  }
  return device::fifo_arbiter()->pick(waiting, cores, now);
}

std::uint64_t JobLine::grant_alone(const device::WaitingJob& facts,
                                   const LanedExecutable& executable, const LaneCores& cores,
                                   TimePoint now, SureVector<std::string>& complaints) const {
  if (cores.idle_bits() == 0) return 0;
  const std::span<const device::WaitingJob> alone(&facts, 1);
  const auto grant =
      cores.owned_bits() == 0
          ? decide(alone, cores.states(), now, complaints)
          : decide(alone, cores.states_within(cores.allowed_bits(&executable)), now, complaints);
  return grant ? grant->core_bits : 0;
}

/// Where cores are held exclusively, or queues have a cap. The arbiter is asked once about all
/// jobs, so that what it reserves for one, and in what order it takes them, holds for the others
/// too.
std::optional<device::Grant> JobLine::decide_limited(const LaneCores& cores, TimePoint now,
                                                     SureVector<std::string>& complaints) const {
  SureVector<device::WaitingJob> jobs;
  SureVector<std::size_t> indices;
  SureVector<std::uint64_t> allowed;
  std::uint64_t usable = 0;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    // Nothing is reserved for a job whose queue has used up its cap.
    if (jobs_[i]->queue->share.allowed_at() > now) continue;
    jobs.push_back(waiting_[i]);
    indices.push_back(i);
    allowed.push_back(cores.allowed_bits(&jobs_[i]->executable()));
    usable |= allowed.back();
  }
  if (jobs.empty()) return std::nullopt;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (allowed[i] != usable) jobs[i].cores = within(jobs[i].cores, allowed[i]);
  auto grant = decide(jobs, cores.states_within(usable), now, complaints);
  if (grant) grant->job = indices[grant->job];
  return grant;
}

}  // namespace corelane::lanes
