#include "runtime/program/load_limits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>

#include "base/later.h"
#include "corelane/base/clock.h"
#include "onnx/shape/onnx_memory.h"

namespace corelane::runtime {
namespace {

std::uint64_t machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long size = ::sysconf(_SC_PAGESIZE);
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  if (pages > 0 && size > 0)
    bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
  // Of a container, which sees its own group here; "max" where it has no limit.
  std::uint64_t group = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> group) bytes = std::min(bytes, group);
  return bytes;
}

std::string amount(std::uint64_t bytes) {
  if (bytes == std::numeric_limits<std::uint64_t>::max()) return "more bytes than can be counted";
  return bytes >> 20 == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{} MiB", bytes >> 20);
}

}  // namespace

std::uint64_t memory_allowed(const LoadOptions& options) {
  static const std::uint64_t machine = machine_memory();
  return options.load_memory == 0 ? machine : options.load_memory;
}

LoadOptions with_deadline(const LoadOptions& options) {
  LoadOptions limited = options;
  if (options.load_timeout <= Duration{0}) return limited;
  limited.import.deadline =
      std::min(limited.import.deadline, later(real_clock()->now(), options.load_timeout));
  return limited;
}

Status late(const Status& failure, const std::string& name, const LoadOptions& options) {
  const double seconds = std::chrono::duration<double>(options.load_timeout).count();
  return failure
      .wrap(
          fmt::format("{} is not loaded after {} s: give more time (LoadOptions::load_timeout), or "
                      "compile it once (corelane compile) and load the program file",
                      name, seconds))
      .with(Detail::kLimit, fmt::format("{} s", seconds));
}

Status check_memory(const ImageSource& source, const std::string& program,
                    const LoadOptions& options) {
  for (const StageSource& stage : source.stages)
    CORELANE_TRY(check_memory(stage.image, stage.name, options));
  if (source.kind != "onnx") return {};
  const std::uint64_t allowed = memory_allowed(options);
  CORELANE_ASSIGN(const auto need, onnx::estimate_memory(source.graph, source.constants));
  if (need.bytes <= allowed) return {};
  const std::string where =
      need.node.empty() ? std::string()
                        : fmt::format(", the largest value from node {} ({})", need.node, need.op);
  return Status(error(Code::kOutOfMemory,
                      "program '{}' needs {} of memory by its shapes{}; {} are allowed: give more "
                      "(LoadOptions::load_memory), or export the model with smaller shapes",
                      program, amount(need.bytes), where, amount(allowed)))
      .with(Detail::kNode, need.node)
      .with(Detail::kOperator, need.op)
      .with(Detail::kGiven, std::to_string(need.bytes))
      .with(Detail::kLimit, fmt::format("{} bytes", allowed));
}

}  // namespace corelane::runtime
