/// The `&` groups of a node.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "corelane/scheduler/stage.h"

namespace corelane::scheduler {

/// One stage of the kind that `Fusion::backend` names, ContrastInstances by default, for each part
/// of `&`. The groups share nothing but, where the user gives one, the dictionary.
class Fusion final : public Stage {
 public:
  explicit Fusion(BackendSurroundings surroundings) : surroundings_(std::move(surroundings)) {}

  Status init(const Config& config, const SharedDict& shared) override;
  std::vector<Topology::Group> groups() const override;
  bool repeatable_group(std::uint32_t group) const override;
  Status start(StageCall call) override;
  Status resize(std::uint32_t group, std::uint32_t instances) override;

 private:
  const BackendSurroundings surroundings_;
  std::vector<std::unique_ptr<Stage>> groups_;  ///< Each with one group.
};

}  // namespace corelane::scheduler
