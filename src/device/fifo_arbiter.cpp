#include <algorithm>

#include "base/leaked.h"
#include "base/reserve.h"
#include "corelane/device/arbiter.h"
#include "device/core_offer.h"

namespace corelane::device {
namespace {

/// Indices of the waiting jobs, highest priority first, in order of submission within one.
SureVector<std::size_t> order_of(std::span<const WaitingJob> waiting) {
  SureVector<std::size_t> order(waiting.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return waiting[a].priority > waiting[b].priority;
  });
  return order;
}

class FifoArbiter final : public Arbiter {
 public:
  std::optional<Grant> pick(std::span<const WaitingJob> waiting, std::span<const CoreState> cores,
                            TimePoint) const override {
    CoreOffer decision(waiting, cores);
    if (decision.exhausted()) return std::nullopt;
    // Mostly all jobs have one priority: then nothing is allocated.
    const bool sorted = std::is_sorted(
        waiting.begin(), waiting.end(),
        [](const WaitingJob& a, const WaitingJob& b) { return a.priority > b.priority; });
    SureVector<std::size_t> order;
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
  static Leaked<const std::shared_ptr<const Arbiter>> arbiter(
      std::allocate_shared<FifoArbiter>(ReserveAllocator<FifoArbiter>()));
  return *arbiter;
}

}  // namespace corelane::device
