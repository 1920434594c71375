#include "session/tasks/abandoned_calls.h"

#include <algorithm>
#include <iterator>

#include "base/leaked.h"

namespace corelane::session {
namespace {

/// Moves all of `from` to the end of `to`.
template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

/// The device may still write to these outputs: memory that is freed could be of somebody else
/// then.
AbandonedCalls::~AbandonedCalls() {
  if (calls_.empty()) return;
  struct Kept {
    Mutex mutex{LockRank::kLeaf};
    std::vector<std::vector<Abandoned>> calls CORELANE_GUARDED_BY(mutex);
  };
  static Leaked<Kept> kept;
  const MutexLock lock(kept->mutex);
  kept->calls.push_back(std::move(calls_));
}

std::vector<CallInput> AbandonedCalls::keep(const Inference& inference, Call& call) {
  std::vector<CallInput> released;
  // A copy of the handle, which can be waited for after the task has given up its own.
  Inference abandoned = inference;
  // Asks without waiting: the time has passed long ago.
  if (abandoned.wait_released(TimePoint{})) return released;
  std::vector<Abandoned> calls;
  {
    const MutexLock lock(mutex_);
    calls.swap(calls_);
  }
  // The device is asked without the lock.
  const auto over = std::partition(calls.begin(), calls.end(), [](Abandoned& a) {
    return !a.inference.wait_released(TimePoint{});
  });
  for (auto a = over; a != calls.end(); ++a) append(released, a->inputs);
  calls.erase(over, calls.end());
  calls.push_back({std::move(abandoned), std::move(call.inputs), call.outputs});
  call.inputs.clear();
  const MutexLock lock(mutex_);
  append(calls_, calls);
  return released;
}

}  // namespace corelane::session
