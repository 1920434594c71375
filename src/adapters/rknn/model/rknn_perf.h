/// The text of RKNN_QUERY_PERF_DETAIL, in the form that programs read with regular expressions.
#pragma once

#include <string>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/device/executable.h"
#include "corelane/program/description.h"

namespace corelane::rknn {

/// What the text says besides the layers.
struct PerfFacts {
  const ProgramDescription* description = nullptr;
  std::vector<Shape> inputs, outputs;  ///< Now.
  std::uint64_t bytes_read = 0, bytes_written = 0;
  std::uint64_t core_bits = 0;  ///< Cores it ran on.
};

/// Two tables: one row per operator from `InputOperator` to `OutputOperator`, then operator types
/// by time. Layers that were folded or fused away are left out. Without layers only the frame of
/// the tables. Times are microseconds of the CPU that computes for the device; cycles and use of
/// multipliers are not known and reported as 0.
std::string perf_detail_text(const std::vector<device::LayerTime>& layers, const PerfFacts& facts);

}  // namespace corelane::rknn
