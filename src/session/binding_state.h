/// What an IoBinding holds.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "corelane/session/future.h"
#include "session/tasks/call.h"

namespace corelane::session {

class SessionCore;

struct BindingState {
  /// The call, to be changed. A run that is in the call keeps it as it was: a custom operator of
  /// the run may change the binding.
  Call& changeable() {
    same_results = false;
    if (running == call.get())
      begun = std::exchange(call, std::make_unique<Call>(*call));  // The copy first: it may fail.
    return *call;
  }

  std::weak_ptr<SessionCore> core;
  std::unique_ptr<Call> call;     ///< Of each run; the outputs in order of binding.
  const Call* running = nullptr;  ///< A run is in this call.
  std::unique_ptr<Call> begun;    ///< The same, where the binding has changed since.
  std::vector<bool> has_input;    ///< Which of the call's inputs are bound.
  Outputs results;
  /// `results`, if any, are those of all later runs as well: bound memory alone, of fixed shapes.
  bool same_results = false;
};

/// A run is in the call of a binding.
class BoundRun {
 public:
  explicit BoundRun(BindingState& state) noexcept : state_(state) {
    state.running = state.call.get();
  }
  ~BoundRun() {
    state_.running = nullptr;
    state_.begun = nullptr;
  }
  BoundRun(const BoundRun&) = delete;
  BoundRun& operator=(const BoundRun&) = delete;

 private:
  BindingState& state_;
};

/// Whether the session made the binding, without a count of references.
inline bool is_of(const BindingState& state, const std::shared_ptr<SessionCore>& core) noexcept {
  return !state.core.owner_before(core) && !core.owner_before(state.core);
}

}  // namespace corelane::session
