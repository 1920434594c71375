/// A residence: cores of a device that its holder keeps for executables.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"

namespace corelane::device {

class Executable;

/// What others may do on the cores. kShared: everything; the executable is prepared for them, so
/// that no job of it compiles. kExclusive: no job of another executable runs there.
enum class Residency : std::uint8_t { kShared, kExclusive };

/// Held until the last reference goes; keeps the executable that it was made of, and its device,
/// alive. An executable may have several. Any thread.
class CORELANE_API Residence {
 public:
  /// Gives the cores back: jobs that wait for them may start.
  virtual ~Residence() = default;
  /// The cores held: a mask, the same at each call.
  virtual CoreSet cores() const noexcept = 0;
  /// Another executable of the same device resides on these cores too, such as the same network for
  /// other shapes: it is prepared for them, and its jobs may run there. Once is enough. It is not
  /// kept alive. kInvalidArgument (null, of another device), kOutOfCores (a shared residence whose
  /// cores another executable has taken exclusively), kDeviceLost (this residence ended with the
  /// device), kOutOfMemory, kEngineFailed.
  virtual Status add(const std::shared_ptr<Executable>& executable) = 0;
  /// As it was asked for.
  virtual Residency residency() const noexcept = 0;
};

/// One residence, as Device::holdings() tells of it.
struct Holding {
  CoreSet cores;
  Residency residency = Residency::kShared;
  std::vector<std::string> executables;  ///< Image::name of each, in the order of their coming.
};

}  // namespace corelane::device
