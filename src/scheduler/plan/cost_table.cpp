#include "scheduler/plan/cost_table.h"

#include <algorithm>
#include <cmath>

namespace corelane::scheduler {
namespace {

/// The first calls of a size weigh the same, later ones 1/kWeight.
constexpr std::uint32_t kWeight = 8;
/// Times are held to what a double counts exactly: 104 days.
constexpr Duration kLongest{std::int64_t{1} << 53};

double nanoseconds(Duration time) { return static_cast<double>(time.count()); }

}  // namespace

void CostTable::ended(std::uint32_t group, std::uint32_t size, Duration time) {
  if (group >= groups_.size() || size == 0) return;
  time = std::clamp(time, Duration{0}, kLongest);
  std::vector<Sample>& samples = groups_[group];
  ++seen_;
  auto at = std::ranges::lower_bound(samples, size, {}, &Sample::size);
  if (at != samples.end() && at->size == size) {
    at->weight = std::min(at->weight + 1, kWeight);
    at->average += (time - at->average) / at->weight;
    at->seen = seen_;
    return;
  }
  if (samples.size() == kSizes) {
    samples.erase(std::ranges::min_element(samples, {}, &Sample::seen));
    at = std::ranges::lower_bound(samples, size, {}, &Sample::size);
  }
  samples.insert(at, {size, time, seen_, 1});
}

Duration CostTable::of(std::uint32_t group, std::uint32_t size) const {
  if (group >= groups_.size() || groups_[group].empty()) return Duration{0};
  const std::vector<Sample>& samples = groups_[group];
  const auto at = std::ranges::lower_bound(samples, size, {}, &Sample::size);
  if (at != samples.end() && at->size == size) return at->average;
  // A smaller call is not slower, and a part of a larger one takes at least its share.
  double least = 0;
  for (auto s = samples.begin(); s != at; ++s) least = std::max(least, nanoseconds(s->average));
  for (auto s = at; s != samples.end(); ++s)
    least = std::max(least, nanoseconds(s->average) * size / s->size);
  double time = least;
  if (samples.size() > 1) {
    // Of the two on both sides, or else of the last two on one.
    const auto high = std::clamp(at, samples.begin() + 1, samples.end() - 1);
    const auto low = high - 1;
    const double slope = (nanoseconds(high->average) - nanoseconds(low->average)) /
                         (static_cast<double>(high->size) - low->size);
    const Sample& near = at == samples.end() ? *high : *low;
    time = nanoseconds(near.average) +
           std::max(slope, 0.0) * (static_cast<double>(size) - static_cast<double>(near.size));
    // Beyond the largest: no dearer than calls of that size for all of them.
    if (at == samples.end()) time = std::min(time, nanoseconds(high->average) * size / high->size);
  }
  return Duration{std::llround(std::clamp(time, least, std::max(least, nanoseconds(kLongest))))};
}

}  // namespace corelane::scheduler
