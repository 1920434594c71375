/// A batch: a call that is split into single tasks, and its outputs put together again.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/session/future.h"
#include "session/tasks/call.h"

namespace corelane::session {

class SessionModel;
struct FutureState;
struct SessionTask;

/// Guarded by its own mutex, but for what is set before the first sample is accepted.
struct BatchCall {
  std::size_t samples = 0;
  std::vector<CallOutput> outputs;  ///< Whole outputs, where their size is known before.
  std::vector<std::size_t> order;   ///< As in Call.
  std::shared_ptr<FutureState> future;
  RunCallback callback;

  std::mutex mutex;
  std::size_t accepted = 0;
  std::size_t finished = 0;
  bool closed = false;                     ///< No more samples will be accepted.
  Status failed;                           ///< The first failure.
  std::vector<std::vector<Tensor>> parts;  ///< By sample, where outputs are put together later.
  std::vector<std::weak_ptr<SessionTask>> tasks;
  std::uint64_t first_id = 0;
  std::uint64_t ticket = 0;

  /// A sample is done; true when that was the last one.
  bool finish(std::size_t sample, Call& call, const Status& status);
  /// No more samples come; true when all accepted ones are done.
  bool close(const Status& status);
  /// The outputs, or the failure. After the last sample.
  Result<Outputs> result();
};

/// How many samples a checked feed holds; kInvalidArgument where its inputs disagree, hold none, or
/// have no dimension for them.
Result<std::size_t> count_samples(const SessionModel& model, const std::vector<CallInput>& inputs);
/// Sample `k` of every input, in place.
std::vector<CallInput> sample_of(const std::vector<CallInput>& inputs, std::size_t k);

}  // namespace corelane::session
