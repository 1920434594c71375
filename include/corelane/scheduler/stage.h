/// A stage of the scheduler: a backend that holds instances of others and starts calls on them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/scheduler/backend.h"
#include "corelane/scheduler/statistics.h"

namespace corelane::scheduler {

/// A call on one instance.
struct StageCall {
  std::uint32_t group = 0;     ///< Of Stage::groups().
  std::uint32_t instance = 0;  ///< Of the group; it is idle.
  std::vector<RequestPtr> batch;
  const void* owner = nullptr;  ///< Whose call it is: current_owner() in forward().
  /// Called once with what forward() returned, in the instance's thread.
  std::function<void(Status)> done;
};

/// The chain below BaselineSchedule is Fusion (groups), ContrastInstances (the instances of a
/// group), InstanceThread (one instance and its thread). A user's stage may replace
/// each (`Fusion::backend = "Mine"`); a backend that is not a stage gets one instance thread.
/// start() may be called from any thread, done() included, for several instances at once.
class CORELANE_API Stage : public Backend {
 public:
  /// Its groups; ranges do not change. After init().
  virtual std::vector<Topology::Group> groups() const = 0;
  /// Whether a failed batch of a group may run again in parts.
  virtual bool repeatable_group(std::uint32_t group) const = 0;
  /// Begins a call and returns. The instance must be idle: kBusy where it is not.
  virtual Status start(StageCall call) = 0;
  /// Changes the number of instances of a group, at least 1. New ones are initialised before it
  /// returns; those that are too many have ended their calls. Fails as init() does, and then
  /// nothing has changed. kUnsupported where the stage cannot.
  virtual Status resize(std::uint32_t group, std::uint32_t instances);

  /// Runs a batch on an instance that is idle, and waits. kBusy when none is: BaselineSchedule is
  /// what waits for one.
  Status forward(std::span<const RequestPtr> batch) override;
  /// Min of its groups' mins.
  std::uint32_t min() const noexcept override;
  /// Max of its groups' maxes.
  std::uint32_t max() const noexcept override;
  /// True where each group is.
  bool repeatable() const noexcept override;
};

}  // namespace corelane::scheduler
