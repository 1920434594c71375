/// One instance of a backend and its thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "base/sync.h"
#include "corelane/scheduler/stage.h"

namespace corelane::scheduler {

/// Runs init() and every forward() of its backend in one thread, one at a time. The backend is the
/// one that the setting "backend" names. After a failed init() no thread is left.
class InstanceThread final : public Stage {
 public:
  explicit InstanceThread(BackendSurroundings surroundings) : surroundings_(surroundings) {}
  /// Adopts a backend instead of making one.
  InstanceThread(BackendSurroundings surroundings, std::unique_ptr<Backend> inner, std::string name)
      : surroundings_(surroundings), inner_(std::move(inner)), name_(std::move(name)) {}
  ~InstanceThread() override;

  Status init(const Config& config, const SharedDict& shared) override;
  std::vector<Topology::Group> groups() const override { return {{name_, range_, 1}}; }
  bool repeatable_group(std::uint32_t /*group*/) const override { return repeatable_; }
  Status start(StageCall call) override;
  /// StageCall::owner where the caller runs in forward(); else null.
  static const void* current_owner() noexcept;

 private:
  Status make_inner(const Config& config);
  Status init_inner(const Config& config, const SharedDict& shared);
  Status run(const StageCall& call);
  void work();
  void stop_and_join();

  const BackendSurroundings surroundings_;
  std::unique_ptr<Backend> inner_;
  std::string name_;
  Range range_;
  bool repeatable_ = false;
  Mutex mutex_{LockRank::kInstance};
  std::condition_variable changed_;
  std::function<void()> task_ CORELANE_GUARDED_BY(mutex_);  ///< init() of the backend.
  std::optional<StageCall> next_ CORELANE_GUARDED_BY(mutex_);
  bool busy_ CORELANE_GUARDED_BY(mutex_) = false;
  bool stop_ CORELANE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace corelane::scheduler
