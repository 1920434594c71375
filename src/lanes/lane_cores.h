/// The cores of a LanedDevice: what runs on each, until about when, and who resides there.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/process/cpus.h"
#include "base/reserve.h"
#include "corelane/base/status.h"
#include "corelane/device/arbiter.h"
#include "corelane/device/residence.h"

namespace corelane::lanes {

class LanedExecutable;
struct LaneOccupant;

/// Plain data, no lock: part of the LaneTable.
class LaneCores {
 public:
  /// `leased`: other processes may hold some.
  explicit LaneCores(std::size_t count, bool leased = false);

  std::uint64_t all_bits() const noexcept { return all_bits_; }
  std::uint64_t idle_bits() const noexcept { return all_bits_ & ~busy_bits_; }
  std::uint64_t busy_bits() const noexcept { return busy_bits_; }
  std::size_t busy_count() const noexcept {
    return static_cast<std::size_t>(std::popcount(busy_bits_));
  }
  /// As the arbiter sees them: all usable.
  const std::vector<device::CoreState>& states() const noexcept { return states_; }
  /// The time each core has been busy.
  std::vector<Duration> busy_times() const;
  /// The occupants that each core has had and has no more.
  std::vector<std::uint64_t> ended_counts() const;

  /// Pins the occupant where another process or executable may hold cores.
  void occupy(LaneOccupant& occupant, TimePoint free_at);
  void free(const LaneOccupant& occupant, Duration ran);
  /// What runs on one of these cores; each occupant once.
  SureVector<LaneOccupant*> occupants(std::uint64_t core_bits) const;
  /// The CPUs on which the other occupants run, where the one of `run` is among them; else none.
  CpuBits cpus_to_leave(const LaneOccupant& run) const noexcept;

  // Residences.

  struct Resident {
    std::uint64_t id = 0;
    std::vector<const LanedExecutable*> executables;
    std::uint64_t core_bits = 0;
    device::Residency residency = device::Residency::kShared;

    bool has(const LanedExecutable* executable) const noexcept;
  };
  const std::vector<Resident>& residents() const noexcept { return residents_; }
  /// The cores with an exclusive residence.
  std::uint64_t owned_bits() const noexcept { return owned_bits_; }
  /// The cores that `executable` holds exclusively.
  std::uint64_t own_bits(const LanedExecutable* executable) const noexcept;
  /// The cores that no other executable has: where its jobs may run.
  std::uint64_t allowed_bits(const LanedExecutable* executable) const noexcept {
    if (owned_bits_ == 0) return all_bits_;
    return (all_bits_ & ~owned_bits_) | own_bits(executable);
  }
  /// As the arbiter sees the cores where its jobs may use these only, by the residences.
  SureVector<device::CoreState> states_within(std::uint64_t usable_bits) const;
  /// For jobs: kOutOfCores when other executables have so many that `cores` can never be had.
  Status check(const device::CoreSet& cores, const LanedExecutable* executable) const;
  /// Cores for another residence, but not those of `besides`. kOutOfCores says which are free.
  Result<std::uint64_t> choose(const device::CoreSet& cores, const LanedExecutable* executable,
                               device::Residency residency, std::uint64_t besides) const;
  /// A residence on cores that choose() gave; its number, above 0.
  std::uint64_t hold(std::uint64_t core_bits, const LanedExecutable* executable,
                     device::Residency residency);
  /// Another executable joins a residence. kOutOfCores where a shared one's cores are taken from
  /// it; kDeviceLost where the residence has ended.
  Status join(std::uint64_t residence, const LanedExecutable* executable);
  bool resides(std::uint64_t residence, const LanedExecutable* executable) const noexcept;
  /// The executable is gone from all residences.
  void forget(const LanedExecutable* executable) noexcept;
  /// Nothing where all were ended before.
  void release(std::uint64_t residence);
  void end_residences() noexcept;

 private:
  struct Lane {
    LaneOccupant* occupant = nullptr;
    Duration busy{};
    std::uint64_t ended = 0;
  };
  Resident* find(std::uint64_t residence) noexcept;
  std::uint64_t shared_by_others(const LanedExecutable* executable) const noexcept;
  std::size_t residences_on(std::size_t core) const noexcept;

  const std::uint64_t all_bits_;
  const bool leased_;
  std::uint64_t busy_bits_ = 0;
  std::uint64_t owned_bits_ = 0;
  std::uint64_t last_resident_ = 0;
  std::vector<Resident> residents_;
  std::vector<Lane> lanes_;
  std::vector<device::CoreState> states_;
};

}  // namespace corelane::lanes
