/// Injected faults, for tests of everything above the device.
///
/// `hang`, `crash`, `slow` and `lost` strike below the contract, where a driver runs an image;
/// `short`, `flip` and `oom` in the `faulty` wrapper. Grammar of `CORELANE_FAULTS`:
///   hang=0.001,crash=0.001,slow=0.01,slow_ms=5,short=0.01,flip=0.01,oom=0.01,lost=0.0001,lost_ms=100,seed=7
/// `lost` ends all jobs of the device, which is back after `lost_ms`. A job that `short` strikes
/// ends with kBadResult; `flip` inverts a bit of a result that is said to be good. Each value is a
/// probability from 0 to 1 per job (oom: per allocation); hang, crash, slow and lost are at most 1
/// together, and so are short and flip.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane::device {

/// Probabilities from 0 to 1, of each fault.
struct FaultPlan {
  double hang = 0, crash = 0, slow = 0, short_result = 0, flip = 0, oom = 0, lost = 0;
  Duration slow_by = std::chrono::milliseconds(5);
  Duration lost_for = std::chrono::milliseconds(100);
  std::uint64_t seed = 1;
  /// True when some fault can strike.
  bool any() const noexcept { return at_run() + short_result + flip + oom > 0; }
  /// The chance that one of those strikes a run that a FaultPoint deals out.
  double at_run() const noexcept { return hang + crash + slow + lost; }
};

/// Reads the grammar above. kInvalidArgument with the token and the known keys. Any thread.
CORELANE_API Result<FaultPlan> parse_faults(std::string_view text);

enum class Fault : std::uint8_t { kNone, kHang, kCrash, kSlow, kLost };

/// Asked by a driver each time it is about to run an image on a core. Any thread.
class CORELANE_API FaultPoint {
 public:
  virtual ~FaultPoint() = default;
  /// What strikes this run. `job` is JobRecord::id. Does not call the device.
  virtual Fault at_run(std::uint64_t job, std::uint64_t core_bits) = 0;
  /// How much longer a run takes that kSlow strikes.
  virtual Duration slow_by() const = 0;
  /// How long the device is away when kLost strikes.
  virtual Duration lost_for() const { return std::chrono::milliseconds(100); }
};

/// Draws from a plan, reproducibly from its seed (by order of calls).
CORELANE_API std::shared_ptr<FaultPoint> planned_faults(const FaultPlan& plan);

}  // namespace corelane::device
