#include <utility>

#include "scheduler/backends/backend_keys.h"
#include "scheduler/backends/batch_parts.h"
#include "scheduler/backends/builtin_backends.h"
#include "scheduler/backends/inner_backend.h"

namespace corelane::scheduler {
namespace {

/// Reports the range of the key `range`, and divides each batch into calls that X takes.
class RangeBackend final : public Backend {
 public:
  explicit RangeBackend(BackendSurroundings surroundings)
      : surroundings_(std::move(surroundings)) {}

  Status init(const Config& config, const SharedDict& shared) override {
    CORELANE_ASSIGN(const Range wanted, range_pair(config, "range"));
    CORELANE_ASSIGN(auto inner, open_inner("Range", config, shared, surroundings_));
    const Range own = inner->range();
    if (const auto gap = first_gap(wanted, own))
      return error(Code::kInvalidArgument,
                   "key 'range': given '{},{}', but {} items cannot be made of calls of {} to {} "
                   "items, which backend '{}' takes; choose another range, or another min or max "
                   "of that backend",
                   wanted.min, wanted.max, *gap, own.min, own.max, inner->name())
          .with(Detail::kKey, "range")
          .with(Detail::kGiven, fmt::format("{},{}", wanted.min, wanted.max));
    range_ = wanted;
    inner_ = std::move(inner);
    return {};
  }

  Status forward(std::span<const RequestPtr> batch) override {
    if (!inner_) return error(Code::kWrongState, "'Range' was called before init()");
    const auto parts = split_batch(batch, inner_->range());
    // init() found that items can make every sum, one by one; a request of several is not divided.
    if (parts.empty())
      return error(Code::kOutOfRange,
                   "the {} requests with {} items cannot be divided into calls of {} to {} items, "
                   "which backend '{}' takes; send requests of one item",
                   batch.size(), items_of(batch), inner_->range().min, inner_->range().max,
                   inner_->name());
    return forward_parts(*inner_, parts, inner_->repeatable());
  }

  std::uint32_t min() const noexcept override { return range_.min; }
  std::uint32_t max() const noexcept override { return range_.max; }
  bool repeatable() const noexcept override { return inner_ && inner_->repeatable(); }

 private:
  const BackendSurroundings surroundings_;
  Range range_;
  std::unique_ptr<InnerBackend> inner_;
};

}  // namespace

std::unique_ptr<Backend> make_range(const BackendSurroundings& surroundings) {
  return std::make_unique<RangeBackend>(surroundings);
}

}  // namespace corelane::scheduler
