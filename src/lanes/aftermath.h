/// What a change of the LaneTable leads to, as data: done once the lock is released.
#pragma once

#include <condition_variable>
#include <memory>
#include <optional>
#include <string>

#include "base/reserve.h"
#include "corelane/device/device.h"
#include "lanes/lane_job.h"
#include "lanes/records/observer_ring.h"

namespace corelane::lanes {

/// Its lists grow while jobs end: that does not fail.
struct AftermathLists {
  using Jobs = SureVector<std::shared_ptr<LanedJob>>;
  using CompletedJobs = SureShortList<std::shared_ptr<LanedJob>>;
  CompletedJobs completed;                     ///< To be reported.
  Jobs released;                               ///< Abandoned before; the engine has returned.
  Jobs offered;                                ///< To be run by the threads that wait for them.
  SureVector<std::condition_variable*> woken;  ///< Of workers, which live as long as their pool.
  struct Arrangement {
    std::shared_ptr<ObserverRing> observer;
    ObserverRing::Delivery delivery;
  };
  SureVector<Arrangement> deliveries;  ///< To observers, by their thread.
  SureVector<std::string> complaints;  ///< For the log.
  bool abandoned = false;              ///< A job was: injected hangs end.
  /// A reference that must not be the last one to go where the clock calls.
  std::shared_ptr<LanedJob> kept;

  /// True when callbacks that may take long will be called.
  bool calls_back() const noexcept {
    bool any = false;
    completed.for_each([&](const auto& job) { any = any || job->calls_back(); });
    return any;
  }
  bool empty() const noexcept {
    return completed.empty() && released.empty() && offered.empty() && woken.empty() &&
           deliveries.empty() && complaints.empty() && !abandoned;
  }
};

/// The lists are made by the first use: most blocking runs have none.
class Aftermath {
 public:
  /// Not defaulted: g++ 12 would clear the place of the lists.
  Aftermath() noexcept {}  // NOLINT(modernize-use-equals-default)
  AftermathLists* operator->() {
    if (!lists_) lists_.emplace();
    return &*lists_;
  }
  bool calls_back() const noexcept { return lists_ && lists_->calls_back(); }
  bool empty() const noexcept { return !lists_ || lists_->empty(); }

 private:
  std::optional<AftermathLists> lists_;
};

}  // namespace corelane::lanes
