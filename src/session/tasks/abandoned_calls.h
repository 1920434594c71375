/// Calls that failed while a device that was reset may still use their memory.
#pragma once

#include <vector>

#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/runtime/context.h"
#include "session/tasks/call.h"

namespace corelane::session {

/// Any thread. What is left when this goes is leaked on purpose, reachable for leak checkers: the
/// device can no longer report the release.
class AbandonedCalls {
 public:
  ~AbandonedCalls();

  /// Keeps inputs and outputs of `call`, which has failed, until the device has released them;
  /// nothing where it has. Returns the inputs of earlier calls that were released since.
  SureVector<std::vector<CallInput>> keep(const Inference& inference, Call& call) noexcept;

 private:
  struct Abandoned {
    Inference inference;
    std::vector<CallInput> inputs;
    std::vector<CallOutput> outputs;
  };
  Mutex mutex_{LockRank::kLeaf};
  SureVector<Abandoned> calls_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::session
