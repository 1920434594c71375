/// A batch submitted to a session: one task for each sample.
#pragma once

#include <memory>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/session/future.h"
#include "session/tasks/call.h"

namespace corelane {
struct CallOptions;
}

namespace corelane::session {

class BatchCall;
class SessionCore;
struct FutureState;

/// Splits dimension 0 of checked inputs into tasks. Without a callback the result goes to the
/// future. When a sample is refused, those before it are cancelled; memory of the caller that they
/// may still read is waited for.
Result<std::shared_ptr<FutureState>> submit_batch(SessionCore& core, std::vector<CallInput> inputs,
                                                  const CallOptions& options, Caller caller,
                                                  RunCallback callback);
/// Cancels each sample; true when one of them had not started.
bool cancel_batch(SessionCore& core, BatchCall& batch);

}  // namespace corelane::session
