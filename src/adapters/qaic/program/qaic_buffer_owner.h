/// What a user keeps memory with, in the library's hands.
#pragma once

#include <memory>
#include <utility>

#include "QAicApi.h"
#include "adapters/qaic/api/qaic_edge.h"
#include "base/guard.h"

namespace corelane::qaic {

/// Is shared by those that use the memory: buffers that are set, and inferences. The last of them
/// releases it.
class BufferOwner {
 public:
  BufferOwner() = default;
  ~BufferOwner() {
    if (release_ != nullptr)
      run_callback("qaic", "the release of an owner of buffers", release_, owner_);
  }
  BufferOwner(const BufferOwner&) = delete;
  BufferOwner& operator=(const BufferOwner&) = delete;
  /// From here on it is this one's to release. Once.
  void take(void* owner, QAicOwnerRelease release) noexcept {
    owner_ = owner;
    release_ = release;
  }

 private:
  void* owner_ = nullptr;
  QAicOwnerRelease release_ = nullptr;
};

/// Calls `set` with a shared BufferOwner, which has `owner` where that went well.
template <class Set>
Outcome set_with_owner(void* owner, QAicOwnerRelease release, Set&& set) {
  if (owner == nullptr || release == nullptr) return outcome(QS_INVAL, "owner or release is null");
  const auto shared = std::make_shared<BufferOwner>();
  Outcome done = std::forward<Set>(set)(shared);
  if (done.code() == QS_SUCCESS) shared->take(owner, release);
  return done;
}

}  // namespace corelane::qaic
