#include <utility>

#include "scheduler/backends/builtin_backends.h"
#include "scheduler/backends/inner_backend.h"

namespace corelane::scheduler {
namespace {

/// X as it is. In the original it waits for the stream of the device that X has put work into; here
/// forward() of every backend returns when the results are there, so nothing is left to wait for.
/// The name stays, so that settings of the original run. Without brackets it is
/// SyncTensor[Identity].
class SyncTensor final : public Backend {
 public:
  explicit SyncTensor(BackendSurroundings surroundings) : surroundings_(std::move(surroundings)) {}

  Status init(const Config& config, const SharedDict& shared) override {
    CORELANE_ASSIGN(inner_, open_inner("SyncTensor", config, shared, surroundings_, "Identity"));
    return {};
  }
  Status forward(std::span<const RequestPtr> batch) override {
    if (!inner_) return error(Code::kWrongState, "'SyncTensor' was called before init()");
    return inner_->forward(batch);
  }
  std::uint32_t min() const noexcept override { return inner_ ? inner_->range().min : 1; }
  std::uint32_t max() const noexcept override { return inner_ ? inner_->range().max : 1; }
  bool repeatable() const noexcept override { return inner_ && inner_->repeatable(); }

 private:
  const BackendSurroundings surroundings_;
  std::unique_ptr<InnerBackend> inner_;
};

}  // namespace

std::unique_ptr<Backend> make_sync_tensor(const BackendSurroundings& surroundings) {
  return std::make_unique<SyncTensor>(surroundings);
}

}  // namespace corelane::scheduler
