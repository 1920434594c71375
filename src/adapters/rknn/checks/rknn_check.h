/// The checking mode, `CORELANE_RKNN_CHECK=1`: reports misuse that would fail on hardware, and
/// leaks: missing syncs, stale sizes, results that are touched before they are there, what is left
/// at exit. A warning line each, whatever RKNN_LOG_LEVEL says, with the call that caused it. Off,
/// each hook costs a branch. All functions from any thread.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "edge/call_site.h"
#include "rknn_api.h"

namespace corelane::rknn {

struct Memory;

namespace check {

/// `CORELANE_RKNN_CHECK` as it was when the library was first used: set, and neither "" nor "0".
bool read_enabled() noexcept;
inline bool enabled() noexcept {
  static const bool kEnabled = read_enabled();
  return kEnabled;
}

/// "check: <what>; caused by <call>".
void write(const std::string& what, const edge::CallSite& cause) noexcept;
template <class... Args>
void report(const edge::CallSite& cause, fmt::format_string<Args...> f, Args&&... args) {
  write(fmt::format(f, std::forward<Args>(args)...), cause);
}

std::uint64_t hash_of(const void* data, std::size_t bytes) noexcept;

// What was given out. The functions below do nothing when the mode is off.
void context_made(rknn_context handle);
void context_gone(rknn_context handle);
void memory_made(const Memory& memory);
/// Also reports results that nobody synced, and a run that still uses it.
void memory_gone(const Memory& memory);
void buffer_given(const void* buffer);
void buffer_back(const void* buffer);
/// The buffer was not given back before its context went.
void buffer_left(const void* buffer);

// Syncs of memory. `what` names what it is bound to.
void synced(const Memory& memory, rknn_mem_sync_mode mode);
/// It was bound as an input that takes its first `bytes` bytes.
void input_bound(const Memory& memory, std::size_t bytes);
/// A run reads it and does not flush the CPU's caches by itself.
void input_read(const Memory& memory, std::size_t bytes, std::string_view what);
/// A run has written it and does not drop what the caches hold by itself.
void output_written(const Memory& memory, std::string_view what);
/// Its results are about to be lost; `before` names by what.
void output_given_up(const Memory& memory, const char* before);

// Runs that use memory: from rknn_run until a call of the program has seen their end.
void run_begins(const Memory& memory, std::string_view what, bool output);
void run_ends(const Memory& memory);

}  // namespace check
}  // namespace corelane::rknn
