#include "lanes/resources/core_leases.h"

#include <algorithm>
#include <bit>

namespace corelane::lanes {

std::shared_ptr<const device::Lease> CoreLeases::lease_of(std::size_t core) {
  const MutexLock lock(mutex_);
  return by_core_[core].lock();
}

Status CoreLeases::take(std::uint64_t core_bits, Held& held, std::uint64_t& elsewhere) {
  if (!on_) return {};
  Held taken;
  Status refused;
  // Two residences that want one core at once share its lease: one takes it, the other finds it.
  const MutexLock taking(taking_);
  for (std::uint64_t bits = core_bits; bits != 0; bits &= bits - 1) {
    const auto core = static_cast<std::size_t>(std::countr_zero(bits));
    std::shared_ptr<const device::Lease> lease = lease_of(core);
    if (lease == nullptr) {
      auto made =
          device::Lease::acquire(instance_, cores_, device::CoreSet::of({core}), {.clock = clock_});
      if (!made && made.error().code() != Code::kOutOfCores) return error(made.error());
      if (!made) {
        elsewhere |= std::uint64_t{1} << core;
        refused = refused.ok() ? made.error() : made.error().wrap(refused.message());
        continue;
      }
      lease = std::make_shared<const device::Lease>(std::move(*made));
      const MutexLock lock(mutex_);
      by_core_[core] = lease;
    }
    taken.push_back(std::move(lease));
  }
  if (!refused.ok()) return refused;
  held = std::move(taken);
  return {};
}

bool CoreLeases::publishes(TimePoint now) noexcept {
  constexpr Duration kPeriod = std::chrono::milliseconds(100);
  TimePoint::rep next = publish_next_.load(std::memory_order_relaxed);
  const TimePoint::rep at = now.time_since_epoch().count();
  return at >= next && publish_next_.compare_exchange_strong(next, at + kPeriod.count(),
                                                             std::memory_order_relaxed);
}

void CoreLeases::publish(const std::vector<device::LeaseFigures>& figures) {
  for (std::size_t core = 0; core < std::min(figures.size(), device::CoreSet::kMaxCores); ++core) {
    const std::shared_ptr<const device::Lease> lease = lease_of(core);
    // For those who watch: a disk that is full stops no inference.
    if (lease != nullptr) static_cast<void>(lease->publish(core, figures[core]));
  }
}

}  // namespace corelane::lanes
