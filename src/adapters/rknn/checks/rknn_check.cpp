#include "adapters/rknn/checks/rknn_check.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "adapters/rknn/api/rknn_handle.h"
#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/memory/rknn_memory.h"
#include "base/leaked.h"

namespace corelane::rknn::check {
namespace {

struct MemoryFacts {
  Call made;
  std::size_t size = 0;
  std::size_t watched = 0;  ///< Bytes that count as input; 0: not bound as one.
  Call to_device;           ///< The last sync.
  std::uint64_t clean = 0;  ///< Hash of the watched bytes at that sync.
  bool synced = false;
  Call results;  ///< The run whose results were not synced.
  std::string results_of;
  int runs = 0;  ///< That use it and nobody has waited for.
  Call run;
  std::string run_of;
};

struct Facts {
  std::mutex mutex;
  std::unordered_map<const Memory*, MemoryFacts> memories;
  std::map<rknn_context, Call> contexts;
  std::unordered_map<const void*, Call> buffers;
};

// Reported at exit.
Facts& facts() {
  static Leaked<Facts> facts;
  return *facts;
}

/// Calls `f` on what is known of a memory.
template <class F>
void with(const Memory& memory, F&& f) {
  if (!enabled()) return;
  Facts& known = facts();
  const std::lock_guard lock(known.mutex);
  const auto found = known.memories.find(&memory);
  if (found != known.memories.end()) f(found->second);
}

bool all_zero(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  return std::all_of(p, p + bytes, [](unsigned char b) { return b == 0; });
}

void tell_results(MemoryFacts& m, const char* before) {
  if (m.results.function == nullptr) return;
  const Call cause = std::exchange(m.results, {});
  report(cause,
         "results in the memory of {} were not followed by rknn_mem_sync(FROM_DEVICE) before {}; "
         "with RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE a program that reads them without may see "
         "old ones",
         m.results_of, before);
}

}  // namespace

/// What is left when the process ends, oldest first.
void tell_leaks() noexcept {
  if (after_fork()) return;
  try {
    Facts& known = facts();
    const std::lock_guard lock(known.mutex);
    std::vector<std::pair<Call, std::string>> left;
    for (const auto& [handle, call] : known.contexts)
      left.emplace_back(call, fmt::format("context {:#x} was not destroyed", handle));
    for (const auto& [memory, m] : known.memories)
      left.emplace_back(m.made, fmt::format("memory of {} bytes was not destroyed", m.size));
    std::sort(left.begin(), left.end(),
              [](const auto& a, const auto& b) { return a.first.number < b.first.number; });
    for (const auto& [call, what] : left) report(call, "{} at exit", what);
  } catch (...) {
    log::write(log::Level::kWarn, "check: no memory to tell what is left at exit");
  }
}

bool read_enabled() noexcept {
  const char* const value = std::getenv("CORELANE_RKNN_CHECK");
  const bool on = value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
  if (on) std::atexit([] { tell_leaks(); });
  return on;
}

void tell(const std::string& what, const Call& cause) noexcept {
  try {
    log::write(log::Level::kWarn, "check: " + what + "; caused by " + text(cause));
  } catch (...) {
    log::write(log::Level::kWarn, "check: out of memory while reporting");
  }
}

std::uint64_t hash_of(const void* data, std::size_t bytes) noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ULL;
  std::uint64_t hash = bytes * kOdd + 1;
  const auto* p = static_cast<const unsigned char*>(data);
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  };
  for (; bytes >= sizeof(std::uint64_t); p += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, sizeof word);
    mix(word);
    bytes -= sizeof word;
  }
  for (; bytes > 0; --bytes) mix(*p++);
  return hash;
}

void context_made(rknn_context handle) {
  if (!enabled()) return;
  Facts& known = facts();
  const std::lock_guard lock(known.mutex);
  known.contexts[handle] = current();
}

void context_gone(rknn_context handle) {
  if (!enabled()) return;
  Facts& known = facts();
  const std::lock_guard lock(known.mutex);
  known.contexts.erase(handle);
}

void memory_made(const Memory& memory) {
  if (!enabled()) return;
  MemoryFacts m;
  m.made = current();
  m.size = memory.size;
  Facts& known = facts();
  const std::lock_guard lock(known.mutex);
  known.memories[&memory] = std::move(m);
}

void memory_gone(const Memory& memory) {
  with(memory, [](MemoryFacts& m) {
    if (m.runs > 0)
      report(
          current(),
          "the memory of {} is destroyed while {} may still use it; wait for the run (rknn_wait, "
          "rknn_outputs_get) first",
          m.run_of, text(m.run));
    tell_results(m, "the memory was destroyed");
  });
  if (!enabled()) return;
  Facts& known = facts();
  const std::lock_guard lock(known.mutex);
  known.memories.erase(&memory);
}

void buffer_given(const void* buffer) {
  if (!enabled()) return;
  Facts& known = facts();
  const std::lock_guard lock(known.mutex);
  known.buffers[buffer] = current();
}

void buffer_back(const void* buffer) {
  if (!enabled()) return;
  Facts& known = facts();
  const std::lock_guard lock(known.mutex);
  known.buffers.erase(buffer);
}

void buffer_left(const void* buffer) {
  if (!enabled()) return;
  Facts& known = facts();
  const std::lock_guard lock(known.mutex);
  const auto found = known.buffers.find(buffer);
  if (found == known.buffers.end()) return;
  report(found->second,
         "an output buffer was not given back with rknn_outputs_release before its context was "
         "destroyed");
  known.buffers.erase(found);
}

void synced(const Memory& memory, rknn_mem_sync_mode mode) {
  const auto directions = static_cast<std::uint32_t>(mode);
  with(memory, [&](MemoryFacts& m) {
    if (m.runs > 0)
      report(current(),
             "the memory of {} is synced while {} may still use it; wait for the run (rknn_wait, "
             "rknn_outputs_get) first",
             m.run_of, text(m.run));
    if ((directions & RKNN_MEMORY_SYNC_FROM_DEVICE) != 0) m.results = {};
    if ((directions & RKNN_MEMORY_SYNC_TO_DEVICE) == 0) return;
    m.to_device = current();
    m.synced = true;
    m.clean = hash_of(memory.data, m.watched == 0 ? memory.size : m.watched);
  });
}

void input_bound(const Memory& memory, std::size_t bytes) {
  with(memory, [&](MemoryFacts& m) {
    const std::size_t before = m.watched == 0 ? memory.size : m.watched;
    const bool still = m.synced && m.clean == hash_of(memory.data, before);
    m.watched = std::min(bytes, memory.size);
    // A sync before the binding was one of these bytes as well.
    if (m.synced) m.clean = still ? hash_of(memory.data, m.watched) : ~m.clean;
  });
}

void input_read(const Memory& memory, std::size_t bytes, std::string_view what) {
  with(memory, [&](MemoryFacts& m) {
    const std::size_t size = std::min(m.watched == 0 ? bytes : m.watched, memory.size);
    const std::uint64_t now = hash_of(memory.data, size);
    if (m.synced ? m.clean == now : all_zero(memory.data, size)) return;
    report(current(),
           "the memory of {} was written after {}, and the run does not flush it "
           "(RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE); call rknn_mem_sync(TO_DEVICE) before "
           "rknn_run{}",
           what,
           m.synced ? "its last sync, " + text(m.to_device)
                    : "it was made, " + text(m.made) + ", and never synced",
           memory.flags == RKNN_TENSOR_MEMORY_FLAGS_FROM_FD
               ? ", unless another device wrote it and not the CPU"
               : "");
    m.synced = true;  // Told once for this content.
    m.clean = now;
  });
}

void output_written(const Memory& memory, std::string_view what) {
  with(memory, [&](MemoryFacts& m) {
    m.results = current();
    m.results_of = what;
  });
}

void output_given_up(const Memory& memory, const char* before) {
  with(memory, [&](MemoryFacts& m) { tell_results(m, before); });
}

void run_begins(const Memory& memory, std::string_view what, bool output) {
  with(memory, [&](MemoryFacts& m) {
    if (output && m.runs > 0)
      report(current(), "the memory of {} is written while {} may still use it as that of {}", what,
             text(m.run), m.run_of);
    ++m.runs;
    m.run = current();
    m.run_of = what;
  });
}

void run_ends(const Memory& memory) {
  with(memory, [](MemoryFacts& m) { m.runs = std::max(m.runs - 1, 0); });
}

}  // namespace corelane::rknn::check
