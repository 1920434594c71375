#include "runtime/context/own_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace corelane::runtime {
namespace {
// Bytes; as the memory of the device's own bindings.
constexpr std::size_t kAlignment = 64;

void* aligned(void* raw) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(raw);
  return static_cast<std::byte*>(raw) + (kAlignment - address % kAlignment) % kAlignment;
}
}  // namespace

/// By calloc(): pages of large memory are the kernel's zeros until somebody writes, and most inputs
/// are bound before they are read.
Result<std::shared_ptr<void>> allocate_own(std::size_t size,
                                           std::shared_ptr<std::atomic<std::size_t>> counter) {
  std::size_t room = 0;
  void* const raw = __builtin_add_overflow(std::max<std::size_t>(size, 1), kAlignment, &room)
                        ? nullptr
                        : std::calloc(1, room);
  if (raw == nullptr) return error(Code::kOutOfMemory, "no memory for a tensor of {} bytes", size);
  counter->fetch_add(size, std::memory_order_relaxed);
  // The deleter holds the counter: an abandoned job may keep the block longer than the program.
  return std::shared_ptr<void>(aligned(raw), [raw, size, counter = std::move(counter)](void*) {
    counter->fetch_sub(size, std::memory_order_relaxed);
    std::free(raw);
  });
}

}  // namespace corelane::runtime
