/// The scheduler of one node, itself a backend.
#pragma once

#include <memory>
#include <utility>

#include "corelane/scheduler/backend.h"
#include "scheduler/node/node_core.h"

namespace corelane::scheduler {

/// Gathers requests of any threads into batches for the stage that `BaselineSchedule::backend`
/// names, Fusion by default. forward() may be called from any thread.
class BaselineSchedule final : public Backend {
 public:
  explicit BaselineSchedule(BackendSurroundings surroundings)
      : surroundings_(std::move(surroundings)) {}
  ~BaselineSchedule() override;

  Status init(const Config& config, const SharedDict& shared) override;
  Status forward(std::span<const RequestPtr> batch) override;
  std::uint32_t min() const noexcept override { return 1; }
  std::uint32_t max() const noexcept override { return UINT32_MAX; }

  /// Null before init().
  const std::shared_ptr<NodeCore>& core() const noexcept { return core_; }

 private:
  const BackendSurroundings surroundings_;
  std::shared_ptr<NodeCore> core_;
};

}  // namespace corelane::scheduler
