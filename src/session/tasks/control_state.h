/// What the copies of a CallControl share.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/sync.h"

namespace corelane::session {

class SessionCore;
struct SessionTask;

/// The calls that a switch stops.
struct ControlState {
  std::atomic<bool> terminated{false};
  Mutex mutex{LockRank::kLeaf};
  std::vector<std::pair<std::weak_ptr<SessionCore>, std::weak_ptr<SessionTask>>> calls
      CORELANE_GUARDED_BY(mutex);
};

}  // namespace corelane::session
