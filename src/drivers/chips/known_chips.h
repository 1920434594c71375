/// The chips that the drivers of this tree present: one row each, and no other place that names one
/// but the doors whose API does.
#pragma once

#include <cstddef>
#include <vector>

#include "corelane/driver/module.h"

namespace corelane::drivers::chips {

/// The chips with at most `most_cores` cores; the first is the default. Any thread.
inline std::vector<device::ChipRow> known_chips(
    std::size_t most_cores = device::CoreSet::kMaxCores) {
  std::vector<device::ChipRow> rows = {{"rk3588", 3, 1'000'000'000}, {"rk3576", 2, 950'000'000},
                                       {"rk3568", 1, 600'000'000},   {"rk3566", 1, 600'000'000},
                                       {"rk3562", 1, 1'000'000'000}, {"aic100", 16, 1'450'000'000}};
  std::erase_if(rows, [&](const device::ChipRow& row) { return row.cores > most_cores; });
  return rows;
}

}  // namespace corelane::drivers::chips
