#include "lanes/lane_cores.h"

#include <algorithm>
#include <string>

#include "lanes/lane_job.h"

namespace corelane::lanes {
namespace {

template <class F>
void for_each_core(std::uint64_t bits, const F& f) {
  for (; bits != 0; bits &= bits - 1) f(static_cast<std::size_t>(std::countr_zero(bits)));
}

std::string set_text(std::uint64_t bits) {
  return bits == 0 ? "none" : fmt::format("'{}'", device::CoreSet::mask(bits).to_string());
}

}  // namespace

LaneCores::LaneCores(std::size_t count, bool leased)
    : all_bits_(device::CoreSet::first(count).bits()),
      leased_(leased),
      lanes_(count),
      states_(count) {}

std::vector<Duration> LaneCores::busy_times() const {
  std::vector<Duration> times;
  for (const Lane& lane : lanes_) times.push_back(lane.busy);
  return times;
}

std::vector<std::uint64_t> LaneCores::ended_counts() const {
  std::vector<std::uint64_t> counts;
  for (const Lane& lane : lanes_) counts.push_back(lane.ended);
  return counts;
}

/// The cores are idle: an occupant never takes the place of another.
void LaneCores::occupy(LaneOccupant& occupant, TimePoint free_at) {
  busy_bits_ |= occupant.core_bits;
  occupant.pinned = leased_ || owned_bits_ != 0;
  for_each_core(occupant.core_bits, [&](std::size_t core) {
    lanes_[core].occupant = &occupant;
    states_[core].busy = true;
    states_[core].predicted_free = free_at;
  });
}

/// `ran` counts on each core, also where the occupant was abandoned: the core was busy with it.
void LaneCores::free(const LaneOccupant& occupant, Duration ran) {
  busy_bits_ &= ~occupant.core_bits;
  for_each_core(occupant.core_bits, [&](std::size_t core) {
    lanes_[core].occupant = nullptr;
    lanes_[core].busy += ran;
    ++lanes_[core].ended;
    states_[core].busy = false;
  });
}

SureVector<LaneOccupant*> LaneCores::occupants(std::uint64_t core_bits) const {
  SureVector<LaneOccupant*> found;
  for_each_core(core_bits, [&](std::size_t core) {
    LaneOccupant* occupant = lanes_[core].occupant;
    if (occupant != nullptr && std::find(found.begin(), found.end(), occupant) == found.end())
      found.push_back(occupant);
  });
  return found;
}

CpuBits LaneCores::cpus_to_leave(const LaneOccupant& run) const noexcept {
  CpuBits cpus;
  for (const Lane& lane : lanes_) {
    if (lane.occupant == nullptr || lane.occupant == &run) continue;
    if (const auto cpu = lane.occupant->cpu.number()) cpus[*cpu] = true;
  }
  const auto own = run.cpu.number();
  if (!own || !cpus[*own]) cpus.reset();
  return cpus;
}

bool LaneCores::Resident::has(const LanedExecutable* executable) const noexcept {
  return std::find(executables.begin(), executables.end(), executable) != executables.end();
}

std::uint64_t LaneCores::own_bits(const LanedExecutable* executable) const noexcept {
  std::uint64_t bits = 0;
  for (const Resident& resident : residents_)
    if (resident.residency == device::Residency::kExclusive && resident.has(executable))
      bits |= resident.core_bits;
  return bits;
}

std::uint64_t LaneCores::shared_by_others(const LanedExecutable* executable) const noexcept {
  std::uint64_t bits = 0;
  for (const Resident& resident : residents_)
    if (resident.residency == device::Residency::kShared &&
        (resident.executables.size() != 1 || !resident.has(executable)))
      bits |= resident.core_bits;
  return bits;
}

std::size_t LaneCores::residences_on(std::size_t core) const noexcept {
  return static_cast<std::size_t>(std::count_if(
      residents_.begin(), residents_.end(),
      [&](const Resident& resident) { return ((resident.core_bits >> core) & 1U) != 0; }));
}

SureVector<device::CoreState> LaneCores::states_within(std::uint64_t usable_bits) const {
  SureVector<device::CoreState> states(states_.begin(), states_.end());
  for (std::size_t core = 0; core < states.size(); ++core) {
    const std::uint64_t bit = std::uint64_t{1} << core;
    states[core].usable = (usable_bits & bit) != 0;
    states[core].owned = (usable_bits & owned_bits_ & bit) != 0;
  }
  return states;
}

Status LaneCores::check(const device::CoreSet& cores, const LanedExecutable* executable) const {
  if (owned_bits_ == 0) return {};
  const std::uint64_t allowed = allowed_bits(executable);
  // The platform's choice (count 0) needs one core at least.
  const std::size_t needed = std::max<std::size_t>(cores.count(), 1);
  const auto had = static_cast<std::size_t>(std::popcount(allowed & cores.among()));
  const bool enough = cores.is_mask() ? (cores.bits() & ~allowed) == 0 : had >= needed;
  if (enough) return {};
  return error(Code::kOutOfCores,
               "core set '{}' cannot be had: other executables hold cores exclusively, {} are "
               "left; wait until they release them",
               cores.to_string(), set_text(allowed));
}

/// A second exclusive residence is refused on the same core also to the executable that has it:
/// the caller that asked first has the core for itself.
Result<std::uint64_t> LaneCores::choose(const device::CoreSet& cores,
                                        const LanedExecutable* executable,
                                        device::Residency residency, std::uint64_t besides) const {
  const bool exclusive = residency == device::Residency::kExclusive;
  const std::uint64_t shared = exclusive ? shared_by_others(executable) : 0;
  const std::uint64_t taken = exclusive ? owned_bits_ : all_bits_ & ~allowed_bits(executable);
  const std::uint64_t free = all_bits_ & ~taken & ~shared & ~besides;
  const std::uint64_t from = free & cores.among();
  const std::uint64_t told = cores.is_mask() ? free : from;
  const auto count = static_cast<std::size_t>(std::popcount(told));
  const bool fits = cores.is_mask() ? (cores.bits() & ~free) == 0
                                    : count >= std::max<std::size_t>(cores.count(), 1);
  if (!fits)
    return error(Code::kOutOfCores,
                 "core set '{}' cannot be held{}: {} of {} cores are free ({}); held exclusively: "
                 "{}, shared by other executables: {}",
                 cores.to_string(), exclusive ? " exclusively" : "", count, lanes_.size(),
                 set_text(told), set_text(taken), set_text(shared));
  if (cores.is_mask()) return cores.bits();
  if (cores.kind() == device::CoreSet::Kind::kPlatform) return free;
  std::uint64_t chosen = 0;
  for (std::size_t n = 0; n < cores.count(); ++n) {
    std::size_t best = lanes_.size();
    for_each_core(from & ~chosen, [&](std::size_t core) {
      if (best == lanes_.size() || residences_on(core) < residences_on(best)) best = core;
    });
    chosen |= std::uint64_t{1} << best;
  }
  return chosen;
}

/// Jobs of others may still be running on them: these end as usual.
std::uint64_t LaneCores::hold(std::uint64_t core_bits, const LanedExecutable* executable,
                              device::Residency residency) {
  residents_.push_back({++last_resident_, {executable}, core_bits, residency});
  if (residency == device::Residency::kExclusive) owned_bits_ |= core_bits;
  return last_resident_;
}

LaneCores::Resident* LaneCores::find(std::uint64_t residence) noexcept {
  const auto place = std::find_if(residents_.begin(), residents_.end(),
                                  [&](const Resident& r) { return r.id == residence; });
  return place == residents_.end() ? nullptr : &*place;
}

Status LaneCores::join(std::uint64_t residence, const LanedExecutable* executable) {
  Resident* const resident = find(residence);
  if (resident == nullptr)
    return error(Code::kDeviceLost,
                 "the residence ended when the device was lost; make the executable resident "
                 "again");
  if (resident->has(executable)) return {};
  if (resident->residency == device::Residency::kShared) {
    const auto cores = device::CoreSet::mask(resident->core_bits);
    const auto free = choose(cores, executable, device::Residency::kShared, 0);
    if (!free) return free.error();
  }
  resident->executables.push_back(executable);
  return {};
}

bool LaneCores::resides(std::uint64_t residence, const LanedExecutable* executable) const noexcept {
  return std::any_of(residents_.begin(), residents_.end(), [&](const Resident& resident) {
    return resident.id == residence && resident.has(executable);
  });
}

void LaneCores::forget(const LanedExecutable* executable) noexcept {
  for (Resident& resident : residents_) std::erase(resident.executables, executable);
}

void LaneCores::end_residences() noexcept {
  residents_.clear();
  owned_bits_ = 0;
}

void LaneCores::release(std::uint64_t residence) {
  const Resident* const resident = find(residence);
  if (resident == nullptr) return;
  if (resident->residency == device::Residency::kExclusive) owned_bits_ &= ~resident->core_bits;
  residents_.erase(residents_.begin() + (resident - residents_.data()));
}

}  // namespace corelane::lanes
