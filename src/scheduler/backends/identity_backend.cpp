#include <limits>

#include "scheduler/backends/backend_keys.h"
#include "scheduler/backends/builtin_backends.h"
#include "scheduler/backends/data_copy.h"

namespace corelane::scheduler {
namespace {

class Identity final : public Backend {
 public:
  Status init(const Config& config, const SharedDict&) override {
    CORELANE_ASSIGN(range_, min_max(config, std::numeric_limits<std::uint32_t>::max()));
    return {};
  }
  Status forward(std::span<const RequestPtr> batch) override {
    copy_data(batch);
    return {};
  }
  std::uint32_t min() const noexcept override { return range_.min; }
  std::uint32_t max() const noexcept override { return range_.max; }
  bool repeatable() const noexcept override { return true; }

 private:
  Range range_;
};

}  // namespace

std::unique_ptr<Backend> make_identity(const BackendSurroundings&) {
  return std::make_unique<Identity>();
}

}  // namespace corelane::scheduler
