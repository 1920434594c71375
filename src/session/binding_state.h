/// What an IoBinding holds.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "corelane/session/future.h"
#include "session/tasks/call.h"

namespace corelane::session {

class SessionCore;

struct BindingState {
  std::weak_ptr<SessionCore> core;
  std::vector<std::optional<CallInput>> inputs;  ///< By position in the model.
  std::vector<CallOutput> outputs;               ///< In order of binding.
  Outputs results;
};

}  // namespace corelane::session
