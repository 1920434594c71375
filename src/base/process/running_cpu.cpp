#include "base/process/running_cpu.h"

#include <dlfcn.h>
#include <sched.h>

#include <cstddef>

namespace corelane {
namespace {

/// Of the field in the area: after `cpu_id_start`, as the ABI of the kernel has it.
constexpr std::ptrdiff_t kCpuId = 4;

/// From a thread's pointer to the field; none where glibc registers no area. Looked up by name:
/// linked, the library would not load with an older glibc.
std::optional<std::ptrdiff_t> offset_of_cpu_id() noexcept {
  const auto* const offset =
      static_cast<const std::ptrdiff_t*>(dlsym(RTLD_DEFAULT, "__rseq_offset"));
  const auto* const size = static_cast<const unsigned*>(dlsym(RTLD_DEFAULT, "__rseq_size"));
  if (offset == nullptr || size == nullptr || *size == 0) return std::nullopt;
  return *offset + kCpuId;
}

/// Found when the library is loaded: later, another thread might hold the loader's lock for long.
const std::optional<std::ptrdiff_t> kOffset = offset_of_cpu_id();

}  // namespace

RunningCpu RunningCpu::of_this_thread() noexcept {
  RunningCpu cpu;
  if (kOffset) {
    const auto* const thread = static_cast<const std::byte*>(__builtin_thread_pointer());
    cpu.word_ = reinterpret_cast<const volatile std::uint32_t*>(thread + *kOffset);
  }
  return cpu;
}

std::optional<std::uint32_t> RunningCpu::number() const noexcept {
  // Above all CPUs before the area is registered, and where that failed.
  const std::uint32_t number = word_ != nullptr ? *word_ : CPU_SETSIZE;
  return number < CPU_SETSIZE ? std::optional(number) : std::nullopt;
}

}  // namespace corelane
