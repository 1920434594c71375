#include "adapters/qaic/checks/qaic_check.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/leaked.h"
#include "base/trust/environment_switch.h"
#include "corelane/base/log.h"
#include "edge/ledger.h"

namespace corelane::qaic::check {
namespace {

using edge::CallSite;
using SetHandleKey = std::pair<const void*, std::uint32_t>;

/// What an inference writes.
struct Outputs {
  const void* program = nullptr;
  std::vector<QBuffer> buffers;
  bool there = false;
};

struct Ledgers {
  edge::Ledger<std::uint64_t, std::string_view> objects;
  edge::Ledger<SetHandleKey> handles;
  edge::Ledger<std::uint64_t, Outputs> outputs;
  std::atomic<std::uint64_t> last_outputs{0};
  const std::uint64_t made_in = fork_count();
};

// Never destroyed: read at exit.
Ledgers& ledgers() {
  static Leaked<Ledgers> ledgers;
  return *ledgers;
}

/// What is left when the process ends, oldest first.
void report_leaks() noexcept {
  // The objects in the list are the parent's.
  if (ledgers().made_in != fork_count()) return;
  try {
    auto left = ledgers().objects.left();
    std::ranges::sort(left, {}, [](const auto& one) { return one.second.made.number; });
    for (const auto& [number, entry] : left)
      write(fmt::format("{} {:#x} was not released at exit", entry.facts, number), entry.made);
  } catch (...) {
    log::write(log::Level::kWarn, "qaic", "check: out of memory while listing what is left");
  }
}

/// Whether two buffers are one memory. One that is left out has none.
bool same(const QBuffer& one, const QBuffer& other) noexcept {
  if (one.buf != nullptr && one.buf == other.buf) return true;
  return one.type == QBUFFER_TYPE_DMABUF && other.type == QBUFFER_TYPE_DMABUF &&
         one.handle == other.handle && one.offset == other.offset;
}

}  // namespace

bool read_enabled() noexcept {
  static constinit EnvironmentSwitch variable{"CORELANE_QAIC_CHECK", false};
  const bool on = variable.on();
  if (on) {
    // Made here, and not at the first entry, which may come in a child of fork().
    (void)ledgers();
    std::atexit([] { report_leaks(); });
  }
  return on;
}

void write(const std::string& what, const CallSite& cause) noexcept {
  try {
    log::write(log::Level::kWarn, "qaic", "check: " + what + "; caused by " + text(cause));
  } catch (...) {
    log::write(log::Level::kWarn, "qaic", "check: out of memory while reporting");
  }
}

void failed(std::string_view text) noexcept {
  if (enabled()) write(std::string(text), edge::current_call());
}

void object_made(std::uint64_t number, std::string_view what) {
  if (enabled()) ledgers().objects.add(number, what);
}

void object_gone(std::uint64_t number) {
  if (enabled()) ledgers().objects.remove(number);
}

void handle_taken(const void* set, std::uint32_t handle) {
  if (enabled()) ledgers().handles.add({set, handle});
}

bool handle_back(const void* set, std::uint32_t handle) {
  return enabled() && ledgers().handles.remove({set, handle}).has_value();
}

void set_ends(const void* set, std::size_t in_flight) {
  if (!enabled()) return;
  if (in_flight != 0)
    write(fmt::format("an inference set ends with {} inferences in flight; their memory must stay "
                      "until they have ended: wait for them first (waitForCompletion)",
                      in_flight),
          edge::current_call());
  for (const auto& [key, entry] : ledgers().handles.left()) {
    if (key.first != set) continue;
    write(fmt::format("handle {} of an inference set was not put back before the set ended; see "
                      "putCompleted",
                      key.second),
          entry.made);
    ledgers().handles.remove(key);
  }
}

void released_in_flight(std::uint32_t id) {
  if (!enabled()) return;
  write(fmt::format("execution object {} is released while its inference is in flight, and its "
                    "memory must stay until that has ended; wait for it first",
                    id),
        edge::current_call());
}

std::uint64_t outputs_begin(const void* program, std::vector<QBuffer> outputs) {
  if (!enabled()) return 0;
  const std::uint64_t number = ++ledgers().last_outputs;
  ledgers().outputs.add(number, {program, std::move(outputs)});
  return number;
}

void outputs_there(std::uint64_t number) {
  if (number != 0) ledgers().outputs.update(number, [](Outputs& of) { of.there = true; });
}

void outputs_known(std::uint64_t number) noexcept {
  // Twice is no fault: an inference may be waited for and counted.
  if (number != 0) ledgers().outputs.remove(number);
}

void ends_counted(const void* program) {
  if (!enabled()) return;
  for (const auto& [number, entry] : ledgers().outputs.left())
    if (entry.facts.program == program && entry.facts.there) ledgers().outputs.remove(number);
}

void buffers_asked(std::span<const QBuffer> buffers) {
  if (!enabled()) return;
  for (const auto& [number, entry] : ledgers().outputs.left()) {
    const auto found = std::ranges::find_first_of(buffers, entry.facts.buffers, same);
    if (found == buffers.end()) continue;
    write(fmt::format("outputs read before completion: buffer {} is an output of an inference that "
                      "was neither waited for nor collected, begun by {}; wait for it first",
                      found - buffers.begin(), text(entry.made)),
          edge::current_call());
  }
}

}  // namespace corelane::qaic::check
