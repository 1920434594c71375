// Cases in forked workers: one that crashes or hangs costs its own result, not the run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run_case.h"

namespace node_tests {

/// Runs `run(i)` for 0 <= i < count, `workers` at a time, each in a forked process that goes on
/// with the next until it dies. A case that takes longer than `limit_seconds` is killed. The
/// caller must not have threads. Results by index.
std::vector<Result> run_forked(std::size_t count, std::size_t workers, int limit_seconds,
                               const std::function<Result(std::size_t)>& run);

/// What a case came to, kError, whose process limit_memory() has ended.
inline constexpr const char* kNoMemory = "it took more memory than it may";

/// Bounds the address space of this process. A sanitizer reserves more than that: under one the
/// process ends, as one without memory, when half of it is resident.
void limit_memory(std::size_t bytes);

}  // namespace node_tests
