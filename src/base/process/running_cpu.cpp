#include "base/process/running_cpu.h"

#include <dlfcn.h>
#include <sched.h>

#include <cstddef>
#include <cstring>

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

/// False where the system does not tell it, as on machines of more CPUs than a set has.
bool get_affinity(cpu_set_t& set) noexcept { return sched_getaffinity(0, sizeof(set), &set) == 0; }

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

void leave_cpus(const CpuBits& cpus) noexcept {
  static_assert(CpuBits().size() == CPU_SETSIZE);
  cpu_set_t before;
  if (!get_affinity(before)) return;
  cpu_set_t others = before;
  for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu)
    if (cpus[cpu]) CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0 || CPU_EQUAL(&others, &before)) return;
  if (sched_setaffinity(0, sizeof(others), &others) != 0) return;
  // All CPUs stand for those of the control group, which may get more later. Where that gives more
  // than before, the thread had an affinity of its own.
  cpu_set_t every;
  std::memset(&every, 0xff, sizeof(every));
  cpu_set_t now;
  const bool follows = sched_setaffinity(0, sizeof(every), &every) == 0 && get_affinity(now) &&
                       CPU_EQUAL(&now, &before);
  if (!follows) sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace corelane
