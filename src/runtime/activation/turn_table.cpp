#include "runtime/activation/turn_table.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/later.h"

namespace corelane::runtime {
namespace {

/// Jobs of a turn that the device has at a time, for each core: one that runs, and one that starts
/// when it ends. What has been let go ends before the turn does.
constexpr std::size_t kInFlightPerCore = 2;

template <class F>
void for_each_core(std::uint64_t bits, const F& f) {
  for (; bits != 0; bits &= bits - 1) f(static_cast<std::size_t>(std::countr_zero(bits)));
}

}  // namespace

std::size_t TurnTable::join(std::uint64_t core_bits, const TurnOptions& options) {
  Member member;
  member.core_bits = core_bits;
  member.options = options;
  member.window = kInFlightPerCore * static_cast<std::size_t>(std::popcount(core_bits));
  members_.emplace(++last_number_, std::move(member));
  return last_number_;
}

std::size_t TurnTable::members_on(std::size_t core) const {
  return static_cast<std::size_t>(std::count_if(members_.begin(), members_.end(), [&](auto& one) {
    return ((one.second.core_bits >> core) & 1U) != 0;
  }));
}

/// A member without jobs has let time pass, which nobody saves up.
void TurnTable::arrive(std::size_t number, std::uint64_t job, std::int32_t priority,
                       TimePoint now) {
  Member& member = members_.at(number);
  if (member.idle()) {
    const double least = levels_[member.options.priority] * member.options.weight;
    member.charged = std::max(member.charged, Duration(static_cast<Duration::rep>(least)));
  }
  member.waiting.emplace(job, std::pair(priority, now));
  member.order.emplace(-priority, job);
}

void TurnTable::end(std::size_t number, std::uint64_t job, const device::JobRecord& record) {
  Member& member = members_.at(number);
  const auto waits = member.waiting.find(job);
  if (waits != member.waiting.end()) {
    member.order.erase({-waits->second.first, job});
    member.waiting.erase(waits);
    return;
  }
  --member.in_flight;
  if (member.first_job == job) {
    note_start(member, record);
    member.first_job = 0;
  }
  // It was withdrawn before a core began it, so that there is no time to charge.
  if (record.core_bits == 0) return;
  Duration ran{};
  device::for_each_stretch(record, [&](const device::JobPart& part) {
    ran += (part.ended - part.started) * std::popcount(part.core_bits);
  });
  member.figures.served += ran;
  double& level = levels_[member.options.priority];
  level = std::max(level, member.level());
  member.charged += ran;
  for_each_core(record.core_bits, [&](std::size_t core) {
    cores_[core].last_end = std::max(cores_[core].last_end, record.ended);
  });
}

/// The cost of the turn, unless its first job was withdrawn.
void TurnTable::note_start(Member& member, const device::JobRecord& record) {
  if (!member.free_at || record.core_bits == 0) return;
  const Duration cost = std::max(record.started - *member.free_at, Duration{});
  TurnFigures& figures = member.figures;
  ++figures.switches;
  figures.cost_total += cost;
  figures.cost_longest = std::max(figures.cost_longest, cost);
  figures.cost_last = cost;
}

bool TurnTable::ready(const Member& member, TimePoint now) {
  if (member.waiting.empty()) return false;
  if (member.waiting.size() >= member.options.threshold) return true;
  const TimePoint oldest = member.waiting.begin()->second.second;
  return member.options.timeout > Duration{} && now - oldest >= member.options.timeout;
}

bool TurnTable::Candidate::before(const Candidate& other) const {
  if (overdue != other.overdue) return overdue;
  if (overdue)
    return std::tuple(*member->candidate_since, number) <
           std::tuple(*other.member->candidate_since, other.number);
  return std::tuple(-member->options.priority, member->level(), *member->candidate_since, number) <
         std::tuple(-other.member->options.priority, other.member->level(),
                    *other.member->candidate_since, other.number);
}

std::vector<TurnTable::Candidate> TurnTable::candidates(TimePoint now) {
  std::vector<Candidate> found;
  for (auto& [number, member] : members_) {
    if (member.in_turn || !ready(member, now)) {
      member.candidate_since.reset();
      continue;
    }
    if (!member.candidate_since) member.candidate_since = now;
    found.push_back({now - *member.candidate_since >= longest_wait_, &member, number});
  }
  std::sort(found.begin(), found.end(),
            [](const Candidate& a, const Candidate& b) { return a.before(b); });
  return found;
}

/// Whether a holder that has more jobs ends its turn for `to`.
bool TurnTable::yields(const Member& holder, const Candidate& to, TimePoint now) const {
  if (now < holder.slice_end) return false;
  const std::int32_t theirs = to.member->options.priority;
  return to.overdue || theirs > holder.options.priority ||
         (theirs == holder.options.priority && to.member->level() < holder.level());
}

bool TurnTable::cores_are_free(const Candidate& candidate, TimePoint now) const {
  return std::all_of(members_.begin(), members_.end(), [&](const auto& one) {
    const Member& holder = one.second;
    if (!holder.in_turn || (holder.core_bits & candidate.member->core_bits) == 0) return true;
    return holder.in_flight == 0 && (holder.waiting.empty() || yields(holder, candidate, now));
  });
}

/// The holders of its cores have nothing in flight: their turns are over.
void TurnTable::begin(const Candidate& candidate, TimePoint now) {
  Member& member = *candidate.member;
  for (auto& [number, holder] : members_)
    if ((holder.core_bits & member.core_bits) != 0) holder.in_turn = false;
  member.in_turn = true;
  member.slice_end = later(now, slice_);
  TurnFigures& figures = member.figures;
  ++figures.turns;
  figures.longest_wait = std::max(figures.longest_wait, now - *member.candidate_since);
  // There is one: only a member with jobs that wait is a candidate.
  member.first_job = member.order.begin()->second;
  member.free_at.reset();
  for_each_core(member.core_bits, [&](std::size_t core) {
    Core& one = cores_[core];
    // A change of members costs time: it counts from when the cores were free and the new one
    // wanted them. A core that nobody had before costs nothing.
    const bool taken_over = one.last_member != 0 && one.last_member != candidate.number;
    if (taken_over)
      member.free_at =
          std::max({member.free_at.value_or(TimePoint{}), one.last_end, *member.candidate_since});
    one.last_member = candidate.number;
  });
  member.candidate_since.reset();
}

void TurnTable::let_go(Member& member, std::vector<std::uint64_t>& going) {
  while (member.in_flight < member.window && !member.order.empty()) {
    const std::uint64_t job = member.order.begin()->second;
    member.order.erase(member.order.begin());
    member.waiting.erase(job);
    ++member.in_flight;
    going.push_back(job);
  }
}

/// The cores of a candidate that must wait are kept for it: those after it do not take them, and
/// holders that yield to it let no more jobs go.
std::vector<std::uint64_t> TurnTable::decide(TimePoint now) {
  std::vector<Candidate> wanting;
  std::uint64_t wanted = 0;
  for (const Candidate& candidate : candidates(now)) {
    const std::uint64_t cores = candidate.member->core_bits;
    const bool first = (cores & wanted) == 0;
    wanted |= cores;
    if (!first) continue;
    if (cores_are_free(candidate, now))
      begin(candidate, now);
    else
      wanting.push_back(candidate);
  }
  std::vector<std::uint64_t> going;
  for (auto& [number, holder] : members_) {
    if (!holder.in_turn || holder.order.empty()) continue;
    const bool ends = std::any_of(wanting.begin(), wanting.end(), [&](const Candidate& candidate) {
      return (candidate.member->core_bits & holder.core_bits) != 0 &&
             yields(holder, candidate, now);
    });
    if (!ends) let_go(holder, going);
  }
  return going;
}

TimePoint TurnTable::next_due() const {
  TimePoint due = kNever;
  for (const auto& [number, member] : members_) {
    const bool waits = !member.in_turn && !member.candidate_since && !member.waiting.empty();
    // Without a timeout nothing comes of time alone: the next job that arrives decides.
    if (waits && member.options.timeout > Duration{})
      due = std::min(due, later(member.waiting.begin()->second.second, member.options.timeout));
  }
  return due;
}

}  // namespace corelane::runtime
