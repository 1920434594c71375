/// The one thread in which a session calls its users back.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "corelane/base/clock.h"

namespace corelane::session {

/// Runs what is posted, in order, in a thread that starts with the first post. Any thread.
class CallbackThread final : public std::enable_shared_from_this<CallbackThread> {
 public:
  explicit CallbackThread(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}
  ~CallbackThread();

  /// Takes `job` and runs it later; what it throws goes to the log. False, and not taken, where the
  /// system gives no thread: it is to be called in place, once no lock is held.
  bool post(std::function<void()>& job);
  /// True in the thread itself.
  bool is_current() const noexcept;
  /// True in the callback thread of any session: two that wait for each other wait for ever.
  static bool any_is_current() noexcept;
  /// Waits until nothing is posted or running; false when `until` came first. In a callback thread
  /// it does not wait.
  bool wait_idle(TimePoint until);
  /// Lets the thread end when nothing is left. What is posted later gets one that ends likewise.
  void stop();
  /// stop(), and waits for the end unless this is the thread.
  void finish();

 private:
  void work();
  void start_locked();

  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable idle_;
  std::deque<std::function<void()>> jobs_;
  bool running_ = false;  ///< A job is being called.
  bool alive_ = false;    ///< There is a thread.
  bool stop_ = false;
  std::thread thread_;
};

/// Calls `f`; what it throws goes to the log.
void call_guarded(const std::function<void()>& f) noexcept;

}  // namespace corelane::session
