/// What an IoBinding holds.
#pragma once

#include <memory>
#include <vector>

#include "corelane/session/future.h"
#include "session/tasks/call.h"

namespace corelane::session {

class SessionCore;

struct BindingState {
  std::weak_ptr<SessionCore> core;
  Call call;                    ///< Of each run; the outputs in order of binding.
  std::vector<bool> has_input;  ///< Which of the call's inputs are bound.
  Outputs results;
  /// `results`, if any, are those of all later runs as well: bound memory alone, of fixed shapes.
  bool same_results = false;
};

/// Whether the session made the binding, without a count of references.
inline bool is_of(const BindingState& state, const std::shared_ptr<SessionCore>& core) noexcept {
  return !state.core.owner_before(core) && !core.owner_before(state.core);
}

}  // namespace corelane::session
