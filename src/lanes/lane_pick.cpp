// Which job gets which cores: the arbiter, its grants checked, and cores held exclusively.
#include <algorithm>
#include <bit>

#include "corelane/base/log.h"
#include "lanes/lane_scheduler.h"
#include "lanes/laned_bindings.h"
#include "lanes/laned_executable.h"

namespace corelane::lanes {
namespace {

bool fits(const device::Grant& grant, const std::vector<device::WaitingJob>& waiting,
          const std::vector<device::CoreState>& cores) {
  if (grant.job >= waiting.size() || grant.core_bits == 0) return false;
  for (std::uint64_t bits = grant.core_bits; bits != 0; bits &= bits - 1) {
    const auto core = static_cast<std::size_t>(std::countr_zero(bits));
    if (core >= cores.size() || cores[core].busy || !cores[core].usable) return false;
  }
  const device::CoreSet& asked = waiting[grant.job].cores;
  const auto given = static_cast<std::size_t>(std::popcount(grant.core_bits));
  if (asked.is_mask()) return asked.bits() == grant.core_bits;
  return asked.count() == 0 || asked.count() == given;
}

}  // namespace

std::optional<device::Grant> LaneScheduler::ask_arbiter_locked(
    const std::vector<device::WaitingJob>& waiting, const std::vector<device::CoreState>& cores,
    TimePoint now) const {
  if (arbiter_ == nullptr) return device::fifo_arbiter()->pick(waiting, cores, now);
  try {
    auto grant = arbiter_->pick(waiting, cores, now);
    if (!grant || fits(*grant, waiting, cores)) return grant;
    complain_locked(fmt::format(
        "the arbiter granted job {} the cores {:#x}, which it cannot have; first-in-first-out "
        "decides instead",
        grant->job, grant->core_bits));
  } catch (const std::exception& e) {
    complain_locked(fmt::format("the arbiter threw: {}; first-in-first-out decides", e.what()));
  } catch (...) {
    complain_locked("the arbiter threw something that is no std::exception");
  }
  return device::fifo_arbiter()->pick(waiting, cores, now);
}

std::optional<device::Grant> LaneScheduler::pick_locked(TimePoint now) const {
  return exclusive_lanes_ == 0 ? ask_arbiter_locked(waiting_, states_, now)
                               : pick_among_exclusive_locked(now);
}

/// The arbiter sees one `usable` per core, but an exclusive core is usable for one executable
/// only. So it is asked once per group of jobs that may use the same cores, in order of each
/// group's first job by priority.
std::optional<device::Grant> LaneScheduler::pick_among_exclusive_locked(TimePoint now) const {
  struct Group {
    std::uint64_t allowed;
    std::int32_t priority;
    std::vector<device::WaitingJob> jobs;
    std::vector<std::size_t> indices;
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const std::uint64_t allowed = allowed_bits_locked(&waiting_jobs_[i]->bindings->executable());
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& g) { return g.allowed == allowed; });
    if (group == groups.end())
      group = groups.insert(groups.end(), {allowed, waiting_[i].priority, {}, {}});
    group->priority = std::max(group->priority, waiting_[i].priority);
    group->jobs.push_back(waiting_[i]);
    group->indices.push_back(i);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.priority > b.priority; });
  for (const Group& group : groups) {
    std::vector<device::CoreState> cores = states_;
    for (std::size_t core = 0; core < cores.size(); ++core)
      cores[core].usable = ((group.allowed >> core) & 1U) != 0;
    if (auto grant = ask_arbiter_locked(group.jobs, cores, now))
      return device::Grant{group.indices[grant->job], grant->core_bits};
  }
  return std::nullopt;
}

std::uint64_t LaneScheduler::allowed_bits_locked(const LanedExecutable* executable) const {
  std::uint64_t bits = 0;
  for (std::size_t core = 0; core < lanes_.size(); ++core)
    if (lanes_[core].owner == nullptr || lanes_[core].owner == executable)
      bits |= std::uint64_t{1} << core;
  return bits;
}

Status LaneScheduler::check_cores_locked(const device::CoreSet& cores,
                                         const LanedExecutable* executable) const {
  if (exclusive_lanes_ == 0) return {};
  const std::uint64_t allowed = allowed_bits_locked(executable);
  const std::size_t needed = std::max<std::size_t>(cores.count(), 1);
  if (cores.is_mask() ? (cores.bits() & ~allowed) == 0
                      : static_cast<std::size_t>(std::popcount(allowed)) >= needed)
    return {};
  return error(Code::kOutOfCores,
               "core set '{}' cannot be had: other executables hold cores exclusively, {} are "
               "left; wait until they release them",
               cores.to_string(), device::CoreSet::mask(allowed).to_string());
}

Status LaneScheduler::make_resident(const LanedExecutable* owner, const device::CoreSet& cores,
                                    device::Residency residency) {
  CORELANE_TRY(cores.check(lanes_.size()));
  const TimePoint now = clock_->now();
  Aftermath after;
  {
    Lock lock(mutex_);
    CORELANE_TRY(check_cores_locked(cores, owner));
    if (residency == device::Residency::kShared) return {};
    std::uint64_t bits = cores.bits();
    std::uint64_t allowed = allowed_bits_locked(owner);
    if (cores.kind() == device::CoreSet::Kind::kPlatform) bits = allowed;
    if (cores.kind() == device::CoreSet::Kind::kAny)
      for (std::size_t n = 0; n < cores.count(); ++n, allowed &= allowed - 1)
        bits |= allowed & (~allowed + 1);
    for (; bits != 0; bits &= bits - 1) {
      Lane& lane = lanes_[static_cast<std::size_t>(std::countr_zero(bits))];
      if (lane.owner == nullptr) ++exclusive_lanes_;
      lane.owner = owner;
    }
    // Jobs that now can never start are told so.
    for (std::size_t i = 0; i < waiting_jobs_.size();) {
      const std::shared_ptr<LanedJob> job = waiting_jobs_[i];
      Status status = check_cores_locked(job->cores, &job->bindings->executable());
      if (status.ok()) {
        ++i;
        continue;
      }
      withdraw_locked(*job);
      complete_locked(*job, std::move(status), now, true, after);
    }
    schedule_locked(now);
    wake_workers_locked(after);
  }
  settle(after);
  return {};
}

void LaneScheduler::release_residency(const LanedExecutable* owner) {
  const TimePoint now = clock_->now();
  Aftermath after;
  {
    Lock lock(mutex_);
    if (exclusive_lanes_ == 0) return;
    for (Lane& lane : lanes_) {
      if (lane.owner != owner) continue;
      lane.owner = nullptr;
      --exclusive_lanes_;
    }
    schedule_locked(now);
    wake_workers_locked(after);
  }
  settle(after);
}

}  // namespace corelane::lanes
