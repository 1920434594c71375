#include "base/reserve.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/leaked.h"
#include "base/sync.h"

namespace corelane::detail {
namespace {

/// Blocks of whole units, first fit.
class Reserve {
 public:
  /// Leaves the memory as it is: it is touched when it is needed.
  Reserve() noexcept {}  // NOLINT(modernize-use-equals-default)
  void* take(std::size_t size) noexcept {
    const std::size_t units = (size + kUnit - 1) / kUnit;
    const MutexLock lock(mutex_);
    for (std::size_t first = 0, free = 0; first + free < kUnits;) {
      if (length_[first + free] != 0) {
        first += free + length_[first + free];
        free = 0;
      } else if (++free == units) {
        length_[first] = static_cast<std::uint16_t>(units);
        return memory_.data() + first * kUnit;
      }
    }
    return nullptr;
  }
  bool give(void* memory) noexcept {
    auto* const at = static_cast<std::byte*>(memory);
    if (std::less<>()(at, memory_.data()) || !std::less<>()(at, memory_.data() + memory_.size()))
      return false;
    const MutexLock lock(mutex_);
    length_[static_cast<std::size_t>(at - memory_.data()) / kUnit] = 0;
    return true;
  }

 private:
  static constexpr std::size_t kUnit = 64;
  static constexpr std::size_t kUnits = 4096;

  alignas(kUnit) std::array<std::byte, kUnit * kUnits> memory_;
  Mutex mutex_{LockRank::kReserve};
  /// Units of the block that begins there; 0: free, or within a block.
  std::array<std::uint16_t, kUnits> length_ CORELANE_GUARDED_BY(mutex_){};
};

Reserve& reserve() noexcept {
  static Leaked<Reserve> one;  // Threads may end work while the process ends.
  return *one;
}

}  // namespace

void* take_reserved(std::size_t size) noexcept {
  for (;;) {
    if (void* const memory = ::operator new(size, std::nothrow)) return memory;
    if (void* const memory = reserve().take(size == 0 ? 1 : size)) return memory;
    // Other threads give memory back; a completion that gave up would never be delivered.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void give_reserved(void* memory) noexcept {
  if (!reserve().give(memory)) ::operator delete(memory);
}

}  // namespace corelane::detail
