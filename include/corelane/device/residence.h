/// A residence: cores of a device that are held for one executable, by whoever asked for them.
#pragma once

#include <cstdint>

#include "corelane/base/api.h"
#include "corelane/device/core_set.h"

namespace corelane::device {

/// What others may do on the cores. kShared: everything; the executable is prepared for them, so
/// that no job of it compiles. kExclusive: no job of another executable runs there.
enum class Residency : std::uint8_t { kShared, kExclusive };

/// Held until the last reference goes; keeps the executable and its device alive. An executable may
/// have several. Any thread.
class CORELANE_API Residence {
 public:
  /// Gives the cores back: jobs that wait for them may start.
  virtual ~Residence() = default;
  /// The cores held: a mask, the same at each call.
  virtual CoreSet cores() const noexcept = 0;
  /// As it was asked for.
  virtual Residency residency() const noexcept = 0;
};

}  // namespace corelane::device
