/// A batch: a call that is split into single tasks, and its outputs put together again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/base/status.h"
#include "corelane/session/future.h"
#include "session/tasks/call.h"

namespace corelane::session {

class SessionModel;
struct FutureState;
struct SessionTask;

/// The outputs of each sample.
using BatchParts = SureVector<SureVector<Tensor>>;

class BatchCall {
 public:
  /// A sample is about to be submitted.
  void add(const std::weak_ptr<SessionTask>& task);
  /// The sample added last was refused.
  void remove_last();
  /// A sample has its number. Under the session's lock, so before it can be done.
  void accepted(const SessionTask& task);
  /// A sample is done; true when no other one is to come or to be done.
  bool complete(std::size_t sample, Call& call, const Status& status) noexcept;
  /// A sample was refused, and no more come; true when all that were added are done.
  bool end(const Status& refused);
  /// The outputs, or the failure. Once, after complete() or end() has answered true.
  Result<Outputs> result();
  SureVector<std::weak_ptr<SessionTask>> tasks() const;

  // Set before the first sample is added, and the same from then on.
  std::size_t samples = 0;
  std::vector<CallOutput> outputs;  ///< Whole outputs, where their size is known before.
  std::vector<std::size_t> order;   ///< As in Call.
  std::shared_ptr<FutureState> future;
  // Read by the thread that delivers, after the last sample was accepted.
  RunCallback callback;
  std::uint64_t first_id = 0;
  std::uint64_t ticket = 0;

 private:
  mutable Mutex mutex_{LockRank::kLeaf};
  std::size_t added_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::size_t done_ CORELANE_GUARDED_BY(mutex_) = 0;
  bool ended_ CORELANE_GUARDED_BY(mutex_) = false;
  Status failed_ CORELANE_GUARDED_BY(mutex_);  ///< The first failure.
  /// By sample, where outputs are put together when all are done.
  BatchParts parts_ CORELANE_GUARDED_BY(mutex_);
  SureVector<std::weak_ptr<SessionTask>> tasks_ CORELANE_GUARDED_BY(mutex_);
};

/// How many samples a checked feed holds; kInvalidArgument where its inputs disagree, hold none, or
/// have no dimension for them.
Result<std::size_t> count_samples(const SessionModel& model, const std::vector<CallInput>& inputs);
/// kUnsupported where samples of this tensor do not take whole bytes, so that a batch cannot be cut
/// or put together; `side` is "input" or "output".
Status check_rows(std::string_view side, const std::string& name, const Shape& shape, DType dtype);
/// Sample `k` of every input, in place.
std::vector<CallInput> sample_of(const std::vector<CallInput>& inputs, std::size_t k);

}  // namespace corelane::session
