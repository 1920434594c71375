#include "lanes/lane_cores.h"

#include <algorithm>

#include "lanes/lane_job.h"

namespace corelane::lanes {
namespace {

template <class F>
void for_each_core(std::uint64_t bits, const F& f) {
  for (; bits != 0; bits &= bits - 1) f(static_cast<std::size_t>(std::countr_zero(bits)));
}

/// The lowest `count` of `bits`.
std::uint64_t lowest(std::uint64_t bits, std::size_t count) {
  std::uint64_t chosen = 0;
  // `bits & -bits` is the lowest bit; the loop's end clears it.
  for (std::size_t n = 0; n < count; ++n, bits &= bits - 1) chosen |= bits & (~bits + 1);
  return chosen;
}

}  // namespace

LaneCores::LaneCores(std::size_t count)
    : all_bits_(device::CoreSet::first(count).bits()), lanes_(count), states_(count) {}

std::vector<Duration> LaneCores::busy_times() const {
  std::vector<Duration> times;
  for (const Lane& lane : lanes_) times.push_back(lane.busy);
  return times;
}

/// The cores are idle: an occupant never takes the place of another.
void LaneCores::occupy(LaneOccupant& occupant, TimePoint free_at) {
  busy_bits_ |= occupant.core_bits;
  for_each_core(occupant.core_bits, [&](std::size_t core) {
    lanes_[core].occupant = &occupant;
    states_[core] = {true, true, free_at};
  });
}

/// `ran` counts on each core, also where the occupant was abandoned: the core was busy with it.
void LaneCores::free(const LaneOccupant& occupant, Duration ran) {
  busy_bits_ &= ~occupant.core_bits;
  for_each_core(occupant.core_bits, [&](std::size_t core) {
    lanes_[core].occupant = nullptr;
    lanes_[core].busy += ran;
    states_[core].busy = false;
  });
}

std::vector<LaneOccupant*> LaneCores::occupants(std::uint64_t core_bits) const {
  std::vector<LaneOccupant*> found;
  for_each_core(core_bits, [&](std::size_t core) {
    LaneOccupant* occupant = lanes_[core].occupant;
    if (occupant != nullptr && std::find(found.begin(), found.end(), occupant) == found.end())
      found.push_back(occupant);
  });
  return found;
}

std::uint64_t LaneCores::allowed_bits(const LanedExecutable* executable) const {
  std::uint64_t bits = 0;
  for (std::size_t core = 0; core < lanes_.size(); ++core) {
    const LanedExecutable* owner = lanes_[core].owner;
    if (owner == nullptr || owner == executable) bits |= std::uint64_t{1} << core;
  }
  return bits;
}

Status LaneCores::check(const device::CoreSet& cores, const LanedExecutable* executable) const {
  if (!any_exclusive()) return {};
  const std::uint64_t allowed = allowed_bits(executable);
  // The platform's choice (count 0) needs one core at least.
  const std::size_t needed = std::max<std::size_t>(cores.count(), 1);
  const bool enough = cores.is_mask() ? (cores.bits() & ~allowed) == 0
                                      : static_cast<std::size_t>(std::popcount(allowed)) >= needed;
  if (enough) return {};
  return error(Code::kOutOfCores,
               "core set '{}' cannot be had: other executables hold cores exclusively, {} are "
               "left; wait until they release them",
               cores.to_string(), device::CoreSet::mask(allowed).to_string());
}

/// Shared use by others may still be running on them: these jobs end as usual.
void LaneCores::hold(const device::CoreSet& cores, const LanedExecutable* owner) {
  std::uint64_t bits = cores.bits();
  const std::uint64_t allowed = allowed_bits(owner);
  if (cores.kind() == device::CoreSet::Kind::kPlatform) bits = allowed;
  if (cores.kind() == device::CoreSet::Kind::kAny) bits = lowest(allowed, cores.count());
  for_each_core(bits, [&](std::size_t core) {
    // A core that `owner` holds already counts once.
    if (lanes_[core].owner == nullptr) ++exclusive_;
    lanes_[core].owner = owner;
  });
}

void LaneCores::release(const LanedExecutable* owner) {
  for (Lane& lane : lanes_) {
    if (lane.owner != owner) continue;
    lane.owner = nullptr;
    --exclusive_;
  }
}

}  // namespace corelane::lanes
