/// Percentiles of latencies, for reports.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness.h"

namespace corelane::bench {

/// The smallest of `sorted` that at least this part of them does not exceed; 0 of none.
inline double percentile_of(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(part * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

inline Json percentiles(std::vector<double> values) {
  std::ranges::sort(values);
  return {{"count", values.size()},
          {"p50", percentile_of(values, 0.5)},
          {"p95", percentile_of(values, 0.95)},
          {"p99", percentile_of(values, 0.99)},
          {"max", percentile_of(values, 1)}};
}

}  // namespace corelane::bench
