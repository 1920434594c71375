#include "session/tasks/abandoned_calls.h"

#include <algorithm>
#include <iterator>

#include "base/leaked.h"

namespace corelane::session {
/// The device may still write to these outputs: memory that is freed could be of somebody else
/// then.
AbandonedCalls::~AbandonedCalls() {
  if (calls_.empty()) return;
  struct Kept {
    Mutex mutex{LockRank::kLeaf};
    SureVector<SureVector<Abandoned>> calls CORELANE_GUARDED_BY(mutex);
  };
  static Leaked<Kept> kept;
  const MutexLock lock(kept->mutex);
  kept->calls.push_back(std::move(calls_));
}

SureVector<std::vector<CallInput>> AbandonedCalls::keep(const Inference& inference,
                                                        Call& call) noexcept {
  SureVector<std::vector<CallInput>> released;
  // A copy of the handle, which can be waited for after the task has given up its own.
  Inference abandoned = inference;
  // Asks without waiting: the time has passed long ago.
  if (abandoned.wait_released(TimePoint{})) return released;
  SureVector<Abandoned> calls;
  {
    const MutexLock lock(mutex_);
    calls.swap(calls_);
  }
  // The device is asked without the lock.
  const auto over = std::partition(calls.begin(), calls.end(), [](Abandoned& a) {
    return !a.inference.wait_released(TimePoint{});
  });
  for (auto a = over; a != calls.end(); ++a) released.push_back(std::move(a->inputs));
  calls.erase(over, calls.end());
  calls.push_back({std::move(abandoned), std::move(call.inputs), std::move(call.outputs)});
  call.inputs.clear();
  const MutexLock lock(mutex_);
  std::move(calls.begin(), calls.end(), std::back_inserter(calls_));
  return released;
}

}  // namespace corelane::session
