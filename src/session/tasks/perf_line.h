/// The line that a session prints for each task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "corelane/base/clock.h"

namespace corelane::session {

struct PerfFigures {
  std::uint64_t task = 0;
  std::size_t thread = 0;  ///< The context.
  std::int32_t core = 0;
  Duration set_input{};
  Duration infer{};
  Duration copy_output{};
};

/// "[corelane_perf] task_id=0 thread_id=0 core_id=0 set_input_us=1 infer_us=2 copy_output_us=3
/// total_us=6", without a line end. The total is the sum of the figures as printed.
std::string perf_line(const PerfFigures& figures);

/// Whether an option says 1, true, on or yes, in any letter case.
bool is_switched_on(const char* value) noexcept;
/// Whether `CORELANE_PRINT_PERF` switches the lines on now.
bool perf_from_environment() noexcept;

}  // namespace corelane::session
