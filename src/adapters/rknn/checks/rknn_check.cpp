#include "adapters/rknn/checks/rknn_check.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "adapters/rknn/api/rknn_handle.h"
#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/memory/rknn_memory.h"
#include "base/leaked.h"
#include "base/trust/environment_switch.h"
#include "edge/ledger.h"

namespace corelane::rknn::check {
namespace {

using edge::CallSite;

/// What is known of one memory while it lives.
struct MemoryFacts {
  CallSite made;
  std::size_t size = 0;
  std::size_t watched = 0;  ///< Bytes that count as input; 0: not bound as one.
  CallSite to_device;       ///< The last sync.
  std::uint64_t clean = 0;  ///< Hash of the watched bytes at that sync.
  bool synced = false;
  CallSite results;  ///< The run whose results were not synced.
  std::string results_of;
  int runs = 0;  ///< Runs that use it and that nobody has waited for.
  CallSite run;
  std::string run_of;
};

struct Ledgers {
  edge::Ledger<const Memory*, MemoryFacts> memories;
  edge::Ledger<rknn_context> contexts;
  edge::Ledger<const void*> buffers;
};

// Never destroyed: read at exit.
Ledgers& ledgers() {
  static Leaked<Ledgers> ledgers;
  return *ledgers;
}

/// Collects reports while a ledger is locked, and writes them afterwards.
class Findings {
 public:
  template <class... Args>
  void add(const CallSite& cause, fmt::format_string<Args...> f, Args&&... args) {
    found_.emplace_back(fmt::format(f, std::forward<Args>(args)...), cause);
  }
  void write() const {
    for (const auto& [what, cause] : found_) check::write(what, cause);
  }

 private:
  std::vector<std::pair<std::string, CallSite>> found_;
};

/// Calls `f` on what is known of a memory, and writes what it finds.
template <class F>
void with(const Memory& memory, F&& f) {
  if (!enabled()) return;
  Findings findings;
  ledgers().memories.update(&memory, [&](MemoryFacts& m) { f(m, findings); });
  findings.write();
}

bool all_zero(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  return std::all_of(p, p + bytes, [](unsigned char b) { return b == 0; });
}

/// Reported once: the results are forgotten.
void find_results(MemoryFacts& m, const char* before, Findings& findings) {
  if (m.results.function == nullptr) return;
  findings.add(
      std::exchange(m.results, {}),
      "results in the memory of {} were not followed by rknn_mem_sync(FROM_DEVICE) before {}; "
      "with RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE a program that reads them without may see "
      "old ones",
      m.results_of, before);
}

void find_run(const MemoryFacts& m, const char* what, Findings& findings) {
  if (m.runs == 0) return;
  findings.add(edge::current_call(),
               "the memory of {} is {} while {} may still use it; wait for the run (rknn_wait, "
               "rknn_outputs_get) first",
               m.run_of, what, text(m.run));
}

/// What is left when the process ends, oldest first.
void report_leaks() noexcept {
  if (!check_process().ok()) return;
  try {
    std::vector<std::pair<CallSite, std::string>> left;
    for (const auto& [handle, entry] : ledgers().contexts.left())
      left.emplace_back(entry.made, fmt::format("context {:#x} was not destroyed", handle));
    for (const auto& [memory, entry] : ledgers().memories.left())
      left.emplace_back(entry.made,
                        fmt::format("memory of {} bytes was not destroyed", entry.facts.size));
    std::sort(left.begin(), left.end(),
              [](const auto& a, const auto& b) { return a.first.number < b.first.number; });
    for (const auto& [call, what] : left) report(call, "{} at exit", what);
  } catch (...) {
    log::write(log::Level::kWarn, "check: out of memory while listing what is left at exit");
  }
}

}  // namespace

bool read_enabled() noexcept {
  static constinit EnvironmentSwitch variable{"CORELANE_RKNN_CHECK", false};
  const bool on = variable.on();
  if (on) std::atexit([] { report_leaks(); });
  return on;
}

void write(const std::string& what, const CallSite& cause) noexcept {
  try {
    log::write(log::Level::kWarn, "check: " + what + "; caused by " + text(cause));
  } catch (...) {
    log::write(log::Level::kWarn, "check: out of memory while reporting");
  }
}

/// Not for secrets: a change of the content must show, at the speed of reading it.
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
  if (enabled()) ledgers().contexts.add(handle);
}

void context_gone(rknn_context handle) {
  if (enabled()) ledgers().contexts.remove(handle);
}

void memory_made(const Memory& memory) {
  if (enabled())
    ledgers().memories.add(&memory, {.made = edge::current_call(), .size = memory.size});
}

void memory_gone(const Memory& memory) {
  if (!enabled()) return;
  auto entry = ledgers().memories.remove(&memory);
  if (!entry) return;
  Findings findings;
  find_run(entry->facts, "destroyed", findings);
  find_results(entry->facts, "the memory was destroyed", findings);
  findings.write();
}

void buffer_given(const void* buffer) {
  if (enabled()) ledgers().buffers.add(buffer);
}

void buffer_back(const void* buffer) {
  if (enabled()) ledgers().buffers.remove(buffer);
}

void buffer_left(const void* buffer) {
  if (!enabled()) return;
  if (const auto entry = ledgers().buffers.remove(buffer))
    report(entry->made,
           "an output buffer was not given back with rknn_outputs_release before its context was "
           "destroyed");
}

/// A sync to the device is compared with the content of the next run; one from it settles results.
void synced(const Memory& memory, rknn_mem_sync_mode mode) {
  const auto directions = static_cast<std::uint32_t>(mode);
  with(memory, [&](MemoryFacts& m, Findings& findings) {
    find_run(m, "synced", findings);
    if ((directions & RKNN_MEMORY_SYNC_FROM_DEVICE) != 0) m.results = {};
    if ((directions & RKNN_MEMORY_SYNC_TO_DEVICE) == 0) return;
    m.to_device = edge::current_call();
    m.synced = true;
    m.clean = hash_of(memory.data, m.watched == 0 ? memory.size : m.watched);
  });
}

void input_bound(const Memory& memory, std::size_t bytes) {
  with(memory, [&](MemoryFacts& m, Findings&) {
    const std::size_t before = m.watched == 0 ? memory.size : m.watched;
    const bool still = m.synced && m.clean == hash_of(memory.data, before);
    m.watched = std::min(bytes, memory.size);
    // A sync before the binding covered these bytes as well.
    if (m.synced) m.clean = still ? hash_of(memory.data, m.watched) : ~m.clean;
  });
}

void input_read(const Memory& memory, std::size_t bytes, std::string_view what) {
  with(memory, [&](MemoryFacts& m, Findings& findings) {
    const std::size_t size = std::min(m.watched == 0 ? bytes : m.watched, memory.size);
    const std::uint64_t now = hash_of(memory.data, size);
    if (m.synced ? m.clean == now : all_zero(memory.data, size)) return;
    findings.add(edge::current_call(),
                 "the memory of {} was written after {}, and the run does not flush it "
                 "(RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE); call rknn_mem_sync(TO_DEVICE) before "
                 "rknn_run{}",
                 what,
                 m.synced ? "its last sync, " + text(m.to_device)
                          : "it was made, " + text(m.made) + ", and never synced",
                 memory.flags == RKNN_TENSOR_MEMORY_FLAGS_FROM_FD
                     ? ", unless another device wrote it and not the CPU"
                     : "");
    m.synced = true;  // Reported once for this content.
    m.clean = now;
  });
}

void output_written(const Memory& memory, std::string_view what) {
  with(memory, [&](MemoryFacts& m, Findings&) {
    m.results = edge::current_call();
    m.results_of = what;
  });
}

void output_given_up(const Memory& memory, const char* before) {
  with(memory, [&](MemoryFacts& m, Findings& findings) { find_results(m, before, findings); });
}

/// Two runs may read one memory; a second one that writes it is a finding.
void run_begins(const Memory& memory, std::string_view what, bool output) {
  with(memory, [&](MemoryFacts& m, Findings& findings) {
    if (output && m.runs > 0)
      findings.add(edge::current_call(),
                   "the memory of {} is written while {} may still use it as that of {}", what,
                   text(m.run), m.run_of);
    ++m.runs;
    m.run = edge::current_call();
    m.run_of = what;
  });
}

void run_ends(const Memory& memory) {
  with(memory, [](MemoryFacts& m, Findings&) { m.runs = std::max(m.runs - 1, 0); });
}

}  // namespace corelane::rknn::check
