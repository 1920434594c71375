#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "base/leaked.h"
#include "corelane/device/arbiter.h"

namespace corelane::device {
namespace {

using Demand = std::array<std::uint32_t, CoreSet::kMaxCores>;

/// Indices of the waiting jobs, highest priority first, in order of submission within one.
std::vector<std::size_t> order_of(std::span<const WaitingJob> waiting) {
  std::vector<std::size_t> order(waiting.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return waiting[a].priority > waiting[b].priority;
  });
  return order;
}

/// `count` of the `free` cores: owned ones first, then those that the fewest fixed jobs wait for.
std::uint64_t choose(std::uint64_t free, std::uint64_t owned, std::size_t count,
                     const Demand& demand) {
  std::uint64_t chosen = 0;
  for (std::size_t n = 0; n < count; ++n) {
    std::size_t best = CoreSet::kMaxCores;
    const std::uint64_t left = free & ~chosen;
    const std::uint64_t preferred = (left & owned) != 0 ? left & owned : left;
    for (std::uint64_t rest = preferred; rest != 0; rest &= rest - 1) {
      const auto core = static_cast<std::size_t>(std::countr_zero(rest));
      if (best == CoreSet::kMaxCores || demand[core] < demand[best]) best = core;
    }
    chosen |= std::uint64_t{1} << best;
  }
  return chosen;
}

/// Walks the jobs in order; what a job needs but cannot have yet is reserved for it.
class Decision {
 public:
  Decision(std::span<const WaitingJob> waiting, std::uint64_t usable, std::uint64_t free,
           std::uint64_t owned)
      : usable_(usable), free_(free), owned_(owned) {
    for (const WaitingJob& job : waiting)
      for (std::uint64_t bits = job.cores.bits(); bits != 0; bits &= bits - 1)
        ++demand_[static_cast<std::size_t>(std::countr_zero(bits))];
  }

  std::optional<std::uint64_t> offer(const WaitingJob& job) {
    const bool all = job.cores.kind() == CoreSet::Kind::kPlatform;
    if (all || job.cores.is_mask()) {
      const std::uint64_t need = all ? usable_ : job.cores.bits();
      if (need != 0 && (need & ~free_) == 0) return need;
      // Its cores are reserved for it; jobs after it may use the others.
      free_ &= ~need;
      return std::nullopt;
    }
    const std::size_t need = job.cores.count();
    if (static_cast<std::size_t>(std::popcount(free_)) >= need)
      return choose(free_, owned_, need, demand_);
    // Cores that come free are kept for this job: those after it do not starve it.
    free_ = 0;
    return std::nullopt;
  }
  bool exhausted() const noexcept { return free_ == 0; }

 private:
  const std::uint64_t usable_;
  std::uint64_t free_;
  const std::uint64_t owned_;
  Demand demand_{};
};

class FifoArbiter final : public Arbiter {
 public:
  std::optional<Grant> pick(std::span<const WaitingJob> waiting, std::span<const CoreState> cores,
                            TimePoint) const override {
    std::uint64_t usable = 0;
    std::uint64_t free = 0;
    std::uint64_t owned = 0;
    for (std::size_t core = 0; core < cores.size(); ++core) {
      if (!cores[core].usable) continue;
      usable |= std::uint64_t{1} << core;
      if (!cores[core].busy) free |= std::uint64_t{1} << core;
      if (cores[core].owned) owned |= std::uint64_t{1} << core;
    }
    if (free == 0 || waiting.empty()) return std::nullopt;
    Decision decision(waiting, usable, free, owned);
    // Mostly all jobs have one priority: then nothing is allocated.
    const bool sorted = std::is_sorted(
        waiting.begin(), waiting.end(),
        [](const WaitingJob& a, const WaitingJob& b) { return a.priority > b.priority; });
    std::vector<std::size_t> order;
    if (!sorted) order = order_of(waiting);
    for (std::size_t i = 0; i < waiting.size() && !decision.exhausted(); ++i) {
      const std::size_t job = sorted ? i : order[i];
      if (const auto bits = decision.offer(waiting[job])) return Grant{job, *bits};
    }
    return std::nullopt;
  }
};

}  // namespace

/// One object for all devices: it has no state. Never destroyed, since devices may outlive statics.
std::shared_ptr<const Arbiter> fifo_arbiter() {
  static Leaked<const std::shared_ptr<const Arbiter>> arbiter(std::make_shared<FifoArbiter>());
  return *arbiter;
}

}  // namespace corelane::device
