/// The instances of one group.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "corelane/scheduler/stage.h"

namespace corelane::scheduler {

/// `instance_num` stages of the kind that `ContrastInstances::backend` names, InstanceThread by
/// default, each with its number under kThreadIndex. All report the same range.
class ContrastInstances final : public Stage {
 public:
  explicit ContrastInstances(BackendSurroundings surroundings)
      : surroundings_(std::move(surroundings)) {}

  Status init(const Config& config, const SharedDict& shared) override;
  std::vector<Topology::Group> groups() const override;
  bool repeatable_group(std::uint32_t /*group*/) const override { return repeatable_; }
  Status start(StageCall call) override;
  Status resize(std::uint32_t group, std::uint32_t instances) override;

 private:
  using Instances = std::vector<std::shared_ptr<Stage>>;
  Result<std::shared_ptr<Stage>> make(std::uint32_t index) const;
  std::shared_ptr<Stage> instance(std::uint32_t index) const;

  const BackendSurroundings surroundings_;
  Config config_;
  SharedDict shared_;
  Topology::Group facts_;
  bool repeatable_ = false;
  mutable Mutex mutex_{LockRank::kInstances};
  Instances instances_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::scheduler
