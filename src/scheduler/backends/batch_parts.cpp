#include "scheduler/backends/batch_parts.h"

#include <algorithm>

namespace corelane::scheduler {
namespace {

/// For each place of the batch, from its end: where the part that begins there ends, so that the
/// rest can be divided too; 0: nowhere.
class Ends {
 public:
  Ends(BatchPart batch, Range range) : ends_(batch.size() + 1, 0), sums_(batch.size() + 1, 0) {
    for (std::size_t i = 0; i < batch.size(); ++i)
      sums_[i + 1] = sums_[i] + batch[i]->options.items;
    ends_.back() = batch.size();
    for (std::size_t i = batch.size(); i-- > 0;) ends_[i] = longest(i, range);
  }

  std::size_t of(std::size_t first) const { return ends_[first]; }

 private:
  /// The constructor goes from the end of the batch to its front, so that the ends of all later
  /// places are known here. The largest part whose rest can be divided wins.
  std::size_t longest(std::size_t first, Range range) const {
    const auto from = sums_.begin() + static_cast<std::ptrdiff_t>(first);
    auto end = std::upper_bound(from, sums_.end(), *from + range.max);
    while (--end > from && *end - *from >= range.min) {
      const auto place = static_cast<std::size_t>(end - sums_.begin());
      if (ends_[place] != 0) return place;
    }
    return 0;
  }

  std::vector<std::size_t> ends_;
  std::vector<std::uint64_t> sums_;  ///< Items before each place.
};

}  // namespace

std::vector<BatchPart> split_batch(BatchPart batch, Range range) {
  if (batch.empty()) return {};
  const std::uint64_t items = items_of(batch);
  if (range.min <= items && items <= range.max) return {batch};
  std::vector<BatchPart> parts;
  const Ends ends(batch, range);
  for (std::size_t at = 0; at < batch.size();) {
    const std::size_t end = ends.of(at);
    if (end == 0) return {};
    parts.push_back(batch.subspan(at, end - at));
    at = end;
  }
  return parts;
}

std::optional<std::uint64_t> first_gap(Range wanted, Range range) {
  // k calls take k min to k max items together. The gaps between these stretches shrink with k.
  const std::uint64_t spread = range.max - range.min;
  const std::uint64_t min = range.min;
  const std::uint64_t max = range.max;
  std::uint64_t next = wanted.min;  // All wanted sizes below it are sums.
  for (std::uint64_t calls = (next + max - 1) / max; next <= wanted.max; ++calls) {
    if (calls * min > next) return next;
    // This is (calls + 1) * min <= calls * max + 1: the next stretch begins where this one ends,
    // and so do all later ones.
    if (calls * spread + 1 >= min) return std::nullopt;  // No gap from here on.
    next = calls * max + 1;
  }
  return std::nullopt;
}

Status forward_parts(InnerBackend& inner, std::span<const BatchPart> parts, bool repeatable) {
  for (const BatchPart part : parts) {
    Status done = inner.forward(part);
    if (done.ok()) continue;
    // Returning it fails the whole batch, requests of the parts that went well included.
    if (parts.size() == 1 || (repeatable && part.size() > 1)) return done;
    fail_all(part, done);
  }
  return {};
}

void fail_all(BatchPart batch, const Status& why) {
  for (const RequestPtr& request : batch) request->fail(why);
}

}  // namespace corelane::scheduler
