/// The cores of a LanedDevice: what runs on each, until about when, and who holds it exclusively.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "corelane/device/arbiter.h"

namespace corelane::lanes {

class LanedExecutable;
struct LaneOccupant;

/// Plain data, no lock: part of the LaneTable.
class LaneCores {
 public:
  explicit LaneCores(std::size_t count);

  std::uint64_t all_bits() const noexcept { return all_bits_; }
  std::uint64_t idle_bits() const noexcept { return all_bits_ & ~busy_bits_; }
  std::size_t busy_count() const noexcept {
    return static_cast<std::size_t>(std::popcount(busy_bits_));
  }
  /// As the arbiter sees them: all usable.
  const std::vector<device::CoreState>& states() const noexcept { return states_; }
  /// The time each core has been busy.
  std::vector<Duration> busy_times() const;

  void occupy(LaneOccupant& occupant, TimePoint free_at);
  void free(const LaneOccupant& occupant, Duration ran);
  /// What runs on one of these cores; each occupant once.
  std::vector<LaneOccupant*> occupants(std::uint64_t core_bits) const;

  /// True when a core is held exclusively.
  bool any_exclusive() const noexcept { return exclusive_ != 0; }
  /// The cores that no other executable holds exclusively.
  std::uint64_t allowed_bits(const LanedExecutable* executable) const;
  /// kOutOfCores when other executables hold so many that `cores` can never be had.
  Status check(const device::CoreSet& cores, const LanedExecutable* executable) const;
  /// Holds cores that check() allows for `owner` alone.
  void hold(const device::CoreSet& cores, const LanedExecutable* owner);
  void release(const LanedExecutable* owner);

 private:
  struct Lane {
    LaneOccupant* occupant = nullptr;
    const LanedExecutable* owner = nullptr;  ///< Holds it exclusively.
    Duration busy{};
  };
  const std::uint64_t all_bits_;
  std::uint64_t busy_bits_ = 0;
  std::size_t exclusive_ = 0;  ///< Lanes with an owner.
  std::vector<Lane> lanes_;
  std::vector<device::CoreState> states_;
};

}  // namespace corelane::lanes
