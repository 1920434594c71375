/// One instance of a backend and its thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/sync.h"
#include "corelane/scheduler/stage.h"
#include "scheduler/backends/inner_backend.h"

namespace corelane::scheduler {

/// Runs init() and every forward() of its backend in one thread, one at a time. The backend is the
/// one that `InstanceThread::backend` names, else `backend`. After a failed init() no thread is
/// left.
class InstanceThread final : public Stage {
 public:
  explicit InstanceThread(BackendSurroundings surroundings)
      : surroundings_(std::move(surroundings)) {}
  /// Adopts a backend instead of making one.
  InstanceThread(BackendSurroundings surroundings, std::unique_ptr<Backend> inner, std::string name)
      : surroundings_(std::move(surroundings)),
        adopted_(std::move(inner)),
        name_(std::move(name)) {}
  ~InstanceThread() override;

  Status init(const Config& config, const SharedDict& shared) override;
  std::vector<Topology::Group> groups() const override {
    if (!inner_) return {};
    return {{inner_->name(), inner_->range(), 1}};
  }
  bool repeatable_group(std::uint32_t /*group*/) const override {
    return inner_ && inner_->repeatable();
  }
  Status start(StageCall call) override;
  /// StageCall::owner where the caller runs in forward(); else null.
  static const void* current_owner() noexcept;

 private:
  Result<InnerBackend> make_inner(const Config& config);
  void work();
  static void end(StageCall& call, Status status) noexcept;
  void stop_and_join();

  const BackendSurroundings surroundings_;
  std::unique_ptr<Backend> adopted_;   ///< Until init().
  const std::string name_;             ///< Of what was adopted.
  std::optional<InnerBackend> inner_;  ///< Since init().
  Mutex mutex_{LockRank::kInstance};
  std::condition_variable changed_;
  std::function<void()> task_ CORELANE_GUARDED_BY(mutex_);  ///< init() of the backend.
  std::optional<StageCall> next_ CORELANE_GUARDED_BY(mutex_);
  bool busy_ CORELANE_GUARDED_BY(mutex_) = false;
  bool stop_ CORELANE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace corelane::scheduler
