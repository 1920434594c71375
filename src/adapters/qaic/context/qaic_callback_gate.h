/// Calls of a user's functions: none begins once the gate is closed, and closing it waits for those
/// that run or are due, so that the user may free what the functions use.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <string_view>

#include "base/sync.h"

namespace corelane::qaic {

/// All functions from any thread. No lock is held during a call.
class CallbackGate {
 public:
  /// Calls `f` and gives true, unless the gate is closed. What `f` throws is caught and counted;
  /// the first of it goes to the library's log as "`what` threw".
  template <class F>
  bool call(std::string_view what, F&& f) noexcept {
    if (!enter()) return false;
    guarded(what, f);
    return true;
  }
  /// A call is due, which call_due() makes, maybe in another thread; false once the gate is closed.
  bool reserve() noexcept;
  /// call() of one that was reserved: once for each. Not made where the gate was closed in a call.
  template <class F>
  bool call_due(std::string_view what, F&& f) noexcept {
    const bool open = enter_due();
    if (open) guarded(what, f);
    return open;
  }
  /// No call begins from here on, but those that are due. Waits for those and for the ones that
  /// run, but not in a call of any gate: two calls that wait for each other would never end. What
  /// is due is not called then.
  void close() noexcept;
  /// How many calls threw.
  std::uint64_t thrown() const noexcept { return thrown_.load(std::memory_order_relaxed); }
  /// Whether this thread is in a call of any gate.
  static bool in_call() noexcept;

 private:
  template <class F>
  void guarded(std::string_view what, F& f) noexcept {
    try {
      f();
    } catch (...) {
      caught(what);
    }
    leave();
  }
  bool enter() noexcept;
  bool enter_due() noexcept;
  void leave() noexcept;
  void caught(std::string_view what) noexcept;

  Mutex mutex_{LockRank::kLeaf};
  std::condition_variable idle_;
  std::size_t running_ CORELANE_GUARDED_BY(mutex_) = 0;  ///< Those that are due included.
  bool closed_ CORELANE_GUARDED_BY(mutex_) = false;
  bool dropped_ CORELANE_GUARDED_BY(mutex_) = false;  ///< What is due is not called.
  std::atomic<std::uint64_t> thrown_{0};
};

}  // namespace corelane::qaic
