#include "adapters/ggml/mm/mm_plan.h"

#include <algorithm>

namespace corelane::ggml {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Lengths of the parts of `whole`, equal but for the last, in multiples of `multiple`.
std::int64_t part_length(std::int64_t whole, std::int64_t most, std::int64_t parts,
                         std::int64_t multiple) {
  const std::int64_t needed = std::max<std::int64_t>(parts, (whole + most - 1) / most);
  return round_up((whole + needed - 1) / needed, multiple);
}

std::int64_t multiple_of_n(MmType type, const MmLimits& limits) {
  switch (element_of_b(type)) {
    case MmElement::kF16:
      return std::max<std::int64_t>(1, limits.n_multiple / 2);
    case MmElement::kInt4:
      return limits.n_multiple * 2;
    default:
      return limits.n_multiple;
  }
}

}  // namespace

MmPlan plan_product(MmType type, std::int64_t k, std::int64_t n, int parts,
                    const MmLimits& limits) {
  const std::int64_t n_multiple = multiple_of_n(type, limits);
  const std::int64_t max_k =
      type == MmType::kW4A4 ? std::min(limits.max_k, limits.max_k_int16) : limits.max_k;
  const std::int64_t k_step = part_length(k, max_k, 1, limits.k_multiple);
  const std::int64_t n_step = part_length(n, limits.max_n, std::max(1, parts), n_multiple);
  MmPlan plan;
  plan.type = type;
  plan.k = k;
  plan.n = n;
  for (std::int64_t n0 = 0; n0 < n; n0 += n_step) {
    for (std::int64_t k0 = 0; k0 < k; k0 += k_step) {
      MmTile tile;
      tile.k0 = k0;
      tile.k = std::min(k_step, k - k0);
      tile.padded_k = round_up(tile.k, limits.k_multiple);
      tile.n0 = n0;
      tile.n = std::min(n_step, n - n0);
      tile.padded_n = round_up(tile.n, n_multiple);
      plan.tiles.push_back(tile);
      if (n0 == 0) plan.padded_k += tile.padded_k;
    }
  }
  plan.in_place =
      plan.padded_k == k && k_step >= k && plan.tiles.back().padded_n == plan.tiles.back().n;
  return plan;
}

std::vector<std::int64_t> row_buckets(bool single, const MmLimits& limits) {
  std::vector<std::int64_t> buckets;
  if (single) buckets.push_back(1);
  for (std::int64_t rows = 8; rows < limits.max_rows; rows *= 2) buckets.push_back(rows);
  buckets.push_back(limits.max_rows);
  return buckets;
}

std::int64_t next_bucket(std::int64_t rows, const std::vector<std::int64_t>& buckets) {
  const auto holds = std::lower_bound(buckets.begin(), buckets.end(), rows);
  if (holds == buckets.end()) return buckets.back();
  // A bucket that is mostly padding costs more than two that fit.
  if (holds != buckets.begin() && *holds >= 64 && rows * 4 < *holds * 3) return *(holds - 1);
  return *holds;
}

}  // namespace corelane::ggml
