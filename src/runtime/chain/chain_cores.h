/// The cores of a chain's devices as those of one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "corelane/device/core_set.h"

namespace corelane::runtime {

/// Where the cores of one device lie among those of all.
struct CoreSpan {
  std::size_t first = 0;
  std::size_t count = 0;

  /// All of them, as bits of the device's own.
  std::uint64_t bits() const noexcept {
    return count >= device::CoreSet::kMaxCores ? ~std::uint64_t{0}
                                               : (std::uint64_t{1} << count) - 1;
  }
  /// The cores among `all` that belong to this device.
  std::uint64_t own(std::uint64_t all) const noexcept { return (all >> first) & bits(); }
  /// The device's own cores among those of all.
  std::uint64_t among_all(std::uint64_t own) const noexcept { return (own & bits()) << first; }
};

/// What `asked` of a chain is on one of its devices: the cores of a mask that are there, the empty
/// mask where it has none of them; as many of "any" as there are.
inline device::CoreSet cores_on(const CoreSpan& span, const device::CoreSet& asked) noexcept {
  using device::CoreSet;
  const std::uint64_t own = span.own(asked.among());
  const auto there = static_cast<std::size_t>(std::popcount(own));
  switch (asked.kind()) {
    case CoreSet::Kind::kMask:
      return CoreSet::mask(own);
    case CoreSet::Kind::kAnyOf:
      return own == 0 ? CoreSet::mask(0)
                      : CoreSet::any_of(CoreSet::mask(own), std::min(asked.count(), there));
    case CoreSet::Kind::kAny:
      return CoreSet::any(std::min(asked.count(), span.count));
    case CoreSet::Kind::kPlatform:
      break;
  }
  return asked;
}

}  // namespace corelane::runtime
