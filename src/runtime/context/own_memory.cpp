#include "runtime/context/own_memory.h"

#include <cstring>
#include <new>
#include <utility>

namespace corelane::runtime {
namespace {
// Bytes; as the memory of the device's own bindings.
constexpr std::align_val_t kAlignment{64};
}  // namespace

Result<std::shared_ptr<void>> allocate_own(std::size_t size,
                                           std::shared_ptr<std::atomic<std::size_t>> counter) {
  void* data = ::operator new(size == 0 ? 1 : size, kAlignment, std::nothrow);
  if (data == nullptr) return error(Code::kOutOfMemory, "no memory for a tensor of {} bytes", size);
  // A run before the inputs are set gives the same result each time, and shows nothing of others.
  std::memset(data, 0, size == 0 ? 1 : size);
  counter->fetch_add(size, std::memory_order_relaxed);
  // The deleter holds the counter: an abandoned job may keep the block longer than the program.
  return std::shared_ptr<void>(data, [size, counter = std::move(counter)](void* p) {
    counter->fetch_sub(size, std::memory_order_relaxed);
    ::operator delete(p, kAlignment);
  });
}

}  // namespace corelane::runtime
