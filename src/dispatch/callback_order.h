/// In which order tasks that are done are called back. Not shared between threads.
#pragma once

#include <cstdint>
#include <utility>

#include "base/reserve.h"

namespace corelane::dispatch {

/// Each task that is to be called back draws a ticket when it is accepted and completes it once,
/// whatever became of it.
template <class T>
class CallbackOrder {
 public:
  explicit CallbackOrder(bool sequential) noexcept : sequential_(sequential) {}

  std::uint64_t draw() noexcept { return drawn_++; }
  /// What may be called back now, in order. Sequential: nothing passes an earlier ticket.
  SureVector<T> complete(std::uint64_t ticket, T value) noexcept {
    SureVector<T> ready;
    if (!sequential_) {
      ready.push_back(std::move(value));
      return ready;
    }
    held_.emplace(ticket, std::move(value));
    for (auto first = held_.begin(); first != held_.end() && first->first == next_; ++next_) {
      ready.push_back(std::move(first->second));
      first = held_.erase(first);
    }
    return ready;
  }

 private:
  const bool sequential_;
  std::uint64_t drawn_ = 0;
  std::uint64_t next_ = 0;
  SureMap<std::uint64_t, T> held_;
};

}  // namespace corelane::dispatch
