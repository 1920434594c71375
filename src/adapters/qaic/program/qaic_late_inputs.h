/// Inputs that are copied when an inference's turn in its queue comes, not when it is enqueued:
/// the inference before it may write what they are copied from.
#pragma once

#include <utility>
#include <vector>

#include "adapters/qaic/program/qaic_padding.h"
#include "base/sync.h"

namespace corelane::qaic {

/// Any thread.
class LateInputs {
 public:
  explicit LateInputs(Puts puts) noexcept : puts_(std::move(puts)) {}
  LateInputs(const LateInputs&) = delete;
  LateInputs& operator=(const LateInputs&) = delete;
  /// Copies them, once. After drop() it does nothing.
  void put() noexcept;
  /// The inference has ended, or was refused: from here on the user's memory is not read.
  void drop() noexcept;

 private:
  Mutex mutex_{LockRank::kLeaf};
  Puts puts_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::qaic
