/// What a forked child must know: it has the parent's memory, but none of its other threads, and
/// a mutex that one of them held stays locked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "corelane/base/api.h"

namespace corelane {

/// The number of forks between the process that loaded this library and the calling one. Two
/// values that differ were read in different processes. Any thread.
CORELANE_API std::uint64_t fork_count() noexcept;

/// Calls `f` in every child that this process or its children fork from now on, in the child's
/// only thread and before fork() returns there; the latest registration first. `f` must take no
/// lock that another thread may hold, which rules out an allocation under a sanitizer, and must not
/// throw. Registrations are never removed, so the code of `f` must stay loaded. Any thread.
CORELANE_API void call_in_forked_child(void (*f)());

/// The one T of this process, never destroyed. A forked child gets a new one when it asks; the
/// parent's stays in memory, for references that were taken before the fork. Any thread.
template <class T>
T& per_process() {
  static constinit std::atomic<T*> object{nullptr};
  [[maybe_unused]] static const bool kRegistered =
      (call_in_forked_child([] { object.store(nullptr, std::memory_order_relaxed); }), true);
  T* present = object.load(std::memory_order_acquire);
  if (present != nullptr) [[likely]]
    return *present;
  auto made = std::make_unique<T>();
  return object.compare_exchange_strong(present, made.get()) ? *made.release() : *present;
}

}  // namespace corelane
