/// How reports reach a user: by files and a callback, in a thread of the handle.
#pragma once

#include <memory>
#include <string>

#include "QAicApi.h"
#include "adapters/qaic/context/qaic_callback_gate.h"
#include "corelane/base/status.h"
#include "dispatch/callback_thread.h"
#include "edge/profile_samples.h"

namespace corelane::qaic {

/// Where reports of a handle go.
struct ProfileTarget {
  QAicProfilingType type = QAIC_PROFILING_TYPE_LATENCY;
  QAicProfilingCallback callback = nullptr;
  void* user_data = nullptr;
  std::string folder;  ///< A file for each program; empty: none.
  std::string prefix;  ///< Of the files' names.
};

/// Any thread.
class ProfileDelivery {
 public:
  explicit ProfileDelivery(ProfileTarget target);
  QAicProfilingType type() const noexcept { return target_.type; }
  /// Calls `job` later, in the handle's thread; here where the system gives none. No lock of a
  /// rank below kCallbackThread's may be held, and none at all that `job` takes.
  void post(dispatch::CallbackThread::Job job) const noexcept {
    thread_->post_or_call(std::move(job));
  }
  /// The same under a lock: kIo, and `job` is not taken.
  Status try_post(dispatch::CallbackThread::Job& job) const noexcept { return thread_->post(job); }
  /// Writes the files and calls the user. In the handle's thread.
  void deliver(const edge::ProfileReport& report) noexcept;
  /// Until all that was posted is delivered. False in a callback, which would wait for itself.
  bool wait() const { return thread_->wait_idle(kNever); }
  /// wait(); no callback begins from here on.
  void close() noexcept;

 private:
  Status write_files(const edge::ProfileReport& report) const;

  const ProfileTarget target_;
  const std::shared_ptr<dispatch::CallbackThread> thread_;
  CallbackGate gate_;
};

}  // namespace corelane::qaic
