/// The right to use an object that has one user at a time.
#pragma once

#include <atomic>

namespace corelane::qaic {

/// Holds the right while it lives; false where another thread has it.
class OneUser {
 public:
  explicit OneUser(std::atomic<bool>& in_use) noexcept
      : in_use_(in_use), held_(!in_use.exchange(true, std::memory_order_acquire)) {}
  ~OneUser() { release(); }
  OneUser(const OneUser&) = delete;
  OneUser& operator=(const OneUser&) = delete;
  explicit operator bool() const noexcept { return held_; }
  /// Before its end.
  void release() noexcept {
    if (held_) in_use_.store(false, std::memory_order_release);
    held_ = false;
  }

 private:
  std::atomic<bool>& in_use_;
  bool held_;
};

}  // namespace corelane::qaic
