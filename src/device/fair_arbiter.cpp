#include <algorithm>
#include <tuple>
#include <vector>

#include "base/leaked.h"
#include "corelane/device/arbiter.h"
#include "device/core_offer.h"

namespace corelane::device {
namespace {

/// Where a job stands at this moment; the greatest is first.
struct Standing {
  std::int64_t level = 0;
  bool raised = false;
  double share = 0;  ///< Core time for its weight, in nanoseconds.
  std::size_t index = 0;

  bool operator<(const Standing& other) const noexcept {
    return std::tuple(level, raised, other.share, other.index) <
           std::tuple(other.level, other.raised, share, index);
  }
};

/// A job rises no higher than the highest that waits: beside its equals the weights decide, however
/// long all of them have waited.
Standing standing_of(const WaitingJob& job, std::size_t index, std::int64_t highest,
                     TimePoint now) {
  const std::int64_t steps = std::max<std::int64_t>((now - job.first_since) / kAgeingStep, 0);
  const std::int64_t level = std::min(highest, job.priority + steps);
  return {level, level > job.priority, static_cast<double>(job.served.count()) / job.weight, index};
}

class FairArbiter final : public Arbiter {
 public:
  std::optional<Grant> pick(std::span<const WaitingJob> waiting, std::span<const CoreState> cores,
                            TimePoint now) const override {
    CoreOffer offer(waiting, cores);
    if (offer.exhausted() || waiting.empty()) return std::nullopt;
    const auto highest = std::max_element(
        waiting.begin(), waiting.end(),
        [](const WaitingJob& a, const WaitingJob& b) { return a.priority < b.priority; });
    std::vector<Standing> order;
    order.reserve(waiting.size());
    for (std::size_t i = 0; i < waiting.size(); ++i)
      order.push_back(standing_of(waiting[i], i, highest->priority, now));
    // Mostly the first one starts: a heap, so that the others need no order.
    std::make_heap(order.begin(), order.end());
    while (!order.empty() && !offer.exhausted()) {
      const std::size_t job = order.front().index;
      if (const auto bits = offer.offer(waiting[job])) return Grant{job, *bits};
      std::pop_heap(order.begin(), order.end());
      order.pop_back();
    }
    return std::nullopt;
  }
};

}  // namespace

/// One object for all devices, as fifo_arbiter().
std::shared_ptr<const Arbiter> fair_arbiter() {
  static Leaked<const std::shared_ptr<const Arbiter>> arbiter(std::make_shared<FairArbiter>());
  return *arbiter;
}

}  // namespace corelane::device
