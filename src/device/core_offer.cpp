#include "device/core_offer.h"

#include <bit>

namespace corelane::device {

CoreOffer::CoreOffer(std::span<const WaitingJob> waiting, std::span<const CoreState> cores) {
  for (std::size_t core = 0; core < cores.size(); ++core) {
    if (!cores[core].usable) continue;
    const std::uint64_t bit = std::uint64_t{1} << core;
    usable_ |= bit;
    if (!cores[core].busy) free_ |= bit;
    if (cores[core].owned) owned_ |= bit;
  }
  if (free_ == 0) return;
  for (const WaitingJob& job : waiting)
    for (std::uint64_t bits = job.cores.bits(); bits != 0; bits &= bits - 1)
      ++demand_[static_cast<std::size_t>(std::countr_zero(bits))];
}

/// `count` of these free cores: owned ones first, then those that the fewest fixed jobs wait for.
std::uint64_t CoreOffer::choose(std::uint64_t from, std::size_t count) const {
  std::uint64_t chosen = 0;
  for (std::size_t n = 0; n < count; ++n) {
    std::size_t best = CoreSet::kMaxCores;
    const std::uint64_t left = from & ~chosen;
    const std::uint64_t preferred = (left & owned_) != 0 ? left & owned_ : left;
    for (std::uint64_t rest = preferred; rest != 0; rest &= rest - 1) {
      const auto core = static_cast<std::size_t>(std::countr_zero(rest));
      if (best == CoreSet::kMaxCores || demand_[core] < demand_[best]) best = core;
    }
    chosen |= std::uint64_t{1} << best;
  }
  return chosen;
}

std::optional<std::uint64_t> CoreOffer::offer(const WaitingJob& job) {
  const bool all = job.cores.kind() == CoreSet::Kind::kPlatform;
  if (all || job.cores.is_mask()) {
    const std::uint64_t need = all ? usable_ : job.cores.bits();
    if (need != 0 && (need & ~free_) == 0) return need;
    // Its cores are reserved for it; jobs after it may use the others.
    free_ &= ~need;
    return std::nullopt;
  }
  const std::size_t need = job.cores.count();
  const std::uint64_t from = free_ & job.cores.among();
  if (static_cast<std::size_t>(std::popcount(from)) >= need) return choose(from, need);
  // Cores that come free are kept for this job: those after it do not starve it.
  free_ &= ~from;
  return std::nullopt;
}

}  // namespace corelane::device
