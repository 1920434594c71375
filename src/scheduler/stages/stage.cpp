#include "corelane/scheduler/stage.h"

#include <algorithm>
#include <future>
#include <memory>
#include <utility>

#include "scheduler/backends/inner_backend.h"

namespace corelane::scheduler {

Status Stage::resize(std::uint32_t /*group*/, std::uint32_t /*instances*/) {
  return error(Code::kUnsupported, "this stage has a fixed number of instances");
}

Status Stage::forward(std::span<const RequestPtr> batch) {
  const std::uint64_t items = items_of(batch);
  const auto ended = std::make_shared<std::promise<Status>>();
  const auto done = [ended](Status status) { ended->set_value(std::move(status)); };
  const std::vector<Topology::Group> all = groups();
  bool fits = false;
  for (std::uint32_t g = 0; g < all.size(); ++g) {
    if (items < all[g].range.min || items > all[g].range.max) continue;
    fits = true;
    for (std::uint32_t i = 0; i < all[g].instances; ++i) {
      StageCall call;
      call.group = g;
      call.instance = i;
      call.batch.assign(batch.begin(), batch.end());
      call.done = done;
      // A start() that fails does not call done(), so that one promise serves all tries.
      if (start(std::move(call)).ok()) return ended->get_future().get();
    }
  }
  if (!fits)
    return error(Code::kOutOfRange, "no group takes {} items a call; the range of all is {} to {}",
                 items, min(), max());
  return error(Code::kBusy,
               "no instance for {} items is idle; put BaselineSchedule above this stage, which "
               "waits for one",
               items);
}

std::uint32_t Stage::min() const noexcept {
  std::uint32_t least = UINT32_MAX;
  for (const Topology::Group& group : groups()) least = std::min(least, group.range.min);
  return least;
}

std::uint32_t Stage::max() const noexcept {
  std::uint32_t most = 1;
  for (const Topology::Group& group : groups()) most = std::max(most, group.range.max);
  return most;
}

bool Stage::repeatable() const noexcept {
  const std::size_t count = groups().size();
  for (std::uint32_t g = 0; g < count; ++g)
    if (!repeatable_group(g)) return false;
  return true;
}

}  // namespace corelane::scheduler
