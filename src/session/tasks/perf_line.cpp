#include "session/tasks/perf_line.h"

#include <fmt/format.h>
#include <strings.h>

#include <array>

#include "base/trust/secure_environment.h"

namespace corelane::session {

std::string perf_line(const PerfFigures& figures) {
  // Cut to microseconds first and summed then, so that the printed figures add up.
  const auto us = [](Duration d) {
    return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
  };
  const auto in = us(figures.set_input);
  const auto infer = us(figures.infer);
  const auto out = us(figures.copy_output);
  return fmt::format(
      "[corelane_perf] task_id={} thread_id={} core_id={} set_input_us={} infer_us={} "
      "copy_output_us={} total_us={}",
      figures.task, figures.thread, figures.core, in, infer, out, in + infer + out);
}

bool is_switched_on(const char* value) noexcept {
  if (value == nullptr) return false;
  for (const char* word : {"1", "true", "on", "yes"})
    if (strcasecmp(value, word) == 0) return true;
  return false;
}

bool perf_from_environment() noexcept { return is_switched_on(environment("CORELANE_PRINT_PERF")); }

}  // namespace corelane::session
