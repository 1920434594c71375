// The loss and the return of the device, residences on its cores, and the table's figures.
#include <algorithm>
#include <set>

#include "lanes/aftermath.h"
#include "lanes/lane_table.h"
#include "lanes/laned_executable.h"

namespace corelane::lanes {

/// A result that is being copied out has left the device: its job ends as it is. A job whose inputs
/// are being copied ends after that.
void LaneTable::lose(std::string reason, TimePoint now, Aftermath& after) {
  if (loss_.lost()) return;
  loss_.lose(text_or_none([&] { return reason; }));
  ++counters_.losses;
  cores_.end_residences();
  log(text_or_none([&] { return fmt::format("the device was lost: {}", reason); }), now, after);
  records_.add(device::Event{device::EventKind::kLost, now, cores_.all_bits(),
                             text_or_none([&] { return reason; })},
               after);
  const auto gone = [&](const LaneOccupant& job) -> Status {
    return error(Code::kDeviceLost, "{} ended when the device was lost: {}", job_text(job), reason);
  };
  for (LaneOccupant* occupant : cores_.occupants(cores_.all_bits()))
    if (occupant->progress_.is(JobState::kRunning)) abandon(*occupant, gone(*occupant), now, after);
  SureVector<std::shared_ptr<LanedJob>> waiting = line_.remove_if([](LanedJob&) { return true; });
  waiting.insert(waiting.end(), blocked_.begin(), blocked_.end());
  blocked_.clear();
  for (const auto& job : ready_) vacate(*job, Duration{});
  waiting.insert(waiting.end(), ready_.begin(), ready_.end());
  ready_.clear();
  for (const auto& job : waiting) complete(*job, gone(*job), now, after);
}

void LaneTable::back(TimePoint now, Aftermath& after) {
  loss_.back();
  const auto text = [](const char* line) {
    return text_or_none([&] { return std::string(line); });
  };
  log(text("the device is back"), now, after);
  records_.add(device::Event{device::EventKind::kBack, now, cores_.all_bits(),
                             text("the device is back; prepare again what is to run on it")},
               after);
}

void LaneTable::log(std::string line, TimePoint now, Aftermath& after) noexcept {
  if (records_.on())
    records_.add(device::Event{device::EventKind::kLog, now, 0, std::move(line)}, after);
}

Result<std::uint64_t> LaneTable::hold_cores(const LanedExecutable* executable,
                                            std::uint64_t core_bits, device::Residency residency,
                                            TimePoint now, Aftermath& after) {
  CORELANE_TRY(loss_.check(executable->generation()));
  auto free = cores_.choose(device::CoreSet::mask(core_bits), executable, residency, 0);
  if (!free) return free;
  const std::uint64_t residence = cores_.hold(core_bits, executable, residency);
  if (residency == device::Residency::kShared) return residence;
  // Jobs whose cores others have now can never start.
  const auto stranded = line_.remove_if(
      [&](LanedJob& job) { return !cores_.check(job.cores, &job.executable()).ok(); });
  for (const auto& job : stranded)
    complete(*job, cores_.check(job->cores, &job->executable()), now, after);
  schedule(now, after);
  return residence;
}

Status LaneTable::join_residence(std::uint64_t residence, const LanedExecutable* executable,
                                 TimePoint now, Aftermath& after) {
  CORELANE_TRY(loss_.check(executable->generation()));
  CORELANE_TRY(cores_.join(residence, executable));
  schedule(now, after);
  return {};
}

void LaneTable::release_cores(std::uint64_t residence, TimePoint now, Aftermath& after) {
  cores_.release(residence);
  schedule(now, after);
}

void LaneTable::swap_arbiter(std::shared_ptr<const device::Arbiter>& arbiter, TimePoint now,
                             Aftermath& after) {
  line_.swap_arbiter(arbiter);
  schedule(now, after);
}

std::size_t LaneTable::needed_workers(Aftermath& after) const {
  std::size_t needed = 0;
  for (const auto& job : ready_)
    // A job with a deadline must not keep its waiter's thread: it may have to be left behind.
    if (job->waiters_ > 0 && !job->has_deadline())
      after->offered.push_back(job);
    else
      ++needed;
  return needed;
}

/// Jobs with a deadline are left out: their deadline ends them, and has a line of its own.
bool LaneTable::may_run_for_long(const LaneOccupant& run) {
  return run.progress_.is(JobState::kRunning) && !run.told_ &&
         (run.job == nullptr || !run.job->has_deadline());
}

SureVector<std::string> LaneTable::tell_long_runs(TimePoint now) {
  SureVector<std::string> lines;
  for (LaneOccupant* run : cores_.occupants(cores_.all_bits())) {
    if (!may_run_for_long(*run) || now - run->started < kLongRun) continue;
    run->told_ = true;
    const std::string& option = run->origin->timeout_option;
    lines.push_back(text_or_none([&] {
      return fmt::format(
          "{} has run on core set '{}' for {} s and has no deadline; if the core hangs, nothing "
          "else ends the job: set {} to end such jobs and reset their cores",
          job_text(*run), device::CoreSet::mask(run->core_bits).to_string(),
          kLongRun / std::chrono::seconds(1), option.empty() ? "a deadline" : option);
    }));
  }
  return lines;
}

TimePoint LaneTable::next_long_run() const {
  TimePoint next = kNever;
  for (const LaneOccupant* run : cores_.occupants(cores_.all_bits()))
    if (may_run_for_long(*run)) next = std::min(next, run->started + kLongRun);
  return next;
}

bool LaneTable::add_callback(LanedJob& job, std::function<void(device::Completion&)>& f) {
  if (job.done()) return false;
  job.callbacks_.push_back(std::move(f));
  return true;
}

std::vector<device::Holding> LaneTable::holdings() const {
  std::vector<device::Holding> holdings;
  for (const LaneCores::Resident& resident : cores_.residents()) {
    holdings.push_back({device::CoreSet::mask(resident.core_bits), resident.residency, {}});
    for (const LanedExecutable* executable : resident.executables)
      holdings.back().executables.push_back(executable->name());
  }
  return holdings;
}

std::vector<device::LeaseFigures> LaneTable::lease_figures() const {
  const std::vector<Duration> busy = cores_.busy_times();
  const std::vector<std::uint64_t> ended = cores_.ended_counts();
  const std::uint64_t waiting = waiting_count();
  std::vector<device::LeaseFigures> figures(busy.size());
  for (std::size_t core = 0; core < busy.size(); ++core)
    figures[core] = {busy[core], ended[core], waiting, {}};
  const std::vector<device::Holding> held = holdings();
  for (std::size_t core = 0; core < figures.size(); ++core) {
    // Several forms of one program have its name.
    std::set<std::string> names;
    for (const device::Holding& holding : held)
      if (((holding.cores.bits() >> core) & 1U) != 0)
        names.insert(holding.executables.begin(), holding.executables.end());
    for (const std::string& name : names)
      figures[core].programs += (figures[core].programs.empty() ? "" : ",") + name;
  }
  return figures;
}

device::DeviceCounters LaneTable::counters() const {
  device::DeviceCounters counters = counters_;
  counters.busy_cores = cores_.busy_bits();
  counters.busy = cores_.busy_times();
  return counters;
}

}  // namespace corelane::lanes
