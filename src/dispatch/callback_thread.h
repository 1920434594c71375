/// A thread of the library's own in which users are called back.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/reserve.h"
#include "base/sync.h"
#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"

namespace corelane::dispatch {

/// Calls jobs one at a time in the order in which they were posted. The thread starts with the
/// first post. Held by a shared_ptr, which the thread shares. Any thread.
class CORELANE_API CallbackThread final : public std::enable_shared_from_this<CallbackThread> {
 public:
  using Job = std::function<void()>;

  /// `name`: of the thread, at most 15 characters. `log_part`: of the lines about jobs that throw.
  /// Both are string literals.
  CallbackThread(std::shared_ptr<Clock> clock, const char* name, const char* log_part) noexcept
      : clock_(std::move(clock)), name_(name), log_part_(log_part) {}
  ~CallbackThread();

  /// Takes `job` and calls it later; an exception that it throws goes to the log. Calls nobody, so
  /// a caller may hold a lock. kIo when the system gives no thread, or kOutOfMemory: the job is not
  /// taken, and the caller calls it in place once it holds no lock.
  Status post(Job& job) noexcept;
  /// As post(), but calls the job in place when the system gives no thread. Not under a lock. The
  /// job's number, from 1, for withdraw(); 0 where it was called in place.
  std::uint64_t post_or_call(Job job) noexcept;
  /// Takes a job out of the line and calls it here; nothing where it has begun, or for 0. For jobs
  /// that have nothing to do any more. Not under a lock.
  void withdraw(std::uint64_t number) noexcept;
  /// Whether the caller runs in this thread.
  bool is_current() const noexcept;
  /// Whether the caller runs in a callback thread of any object. Such a thread must not wait for
  /// another one: two that wait for each other would never end.
  static bool any_is_current() noexcept;
  /// Waits until no job is posted or running; false when `until` came first. Does not wait in a
  /// callback thread.
  bool wait_idle(TimePoint until);
  /// Lets the thread end when no job is left. A later post starts one that ends likewise.
  void stop();
  /// stop(), and waits for the end of the thread unless the caller runs in it.
  void stop_and_join();

 private:
  void work() noexcept;
  Status start() CORELANE_REQUIRES(mutex_);
  /// The number of the job that it takes.
  Result<std::uint64_t> add(Job& job) noexcept;
  bool idle() const CORELANE_REQUIRES(mutex_) { return jobs_.empty() && !running_; }

  const std::shared_ptr<Clock> clock_;
  const char* const name_;
  const char* const log_part_;
  Mutex mutex_{LockRank::kCallbackThread};
  std::condition_variable changed_;  ///< A job was posted, or stop() was called.
  std::condition_variable idle_;
  SureMap<std::uint64_t, Job> jobs_ CORELANE_GUARDED_BY(mutex_);  ///< By number.
  std::uint64_t last_ CORELANE_GUARDED_BY(mutex_) = 0;
  bool running_ CORELANE_GUARDED_BY(mutex_) = false;  ///< A job is being called.
  bool alive_ CORELANE_GUARDED_BY(mutex_) = false;    ///< The thread takes jobs.
  bool stop_ CORELANE_GUARDED_BY(mutex_) = false;
  std::thread thread_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::dispatch
