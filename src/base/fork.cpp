#include "base/fork.h"

#include <pthread.h>

#include <atomic>

namespace corelane {
namespace {

struct Registration {
  void (*call)();
  Registration* next;
};

// Initialised before any code runs, and free of locks: in the child, a lock could be held by a
// thread that does not exist there.
constinit std::atomic<std::uint64_t> forks{0};
constinit std::atomic<Registration*> registrations{nullptr};

void in_child() {
  forks.fetch_add(1, std::memory_order_relaxed);
  for (const Registration* r = registrations.load(std::memory_order_acquire); r != nullptr;
       r = r->next) {
    r->call();
  }
}

// When the library is loaded, so that no fork is missed.
[[maybe_unused]] const int kRegistered = pthread_atfork(nullptr, nullptr, &in_child);

}  // namespace

std::uint64_t fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

void call_in_forked_child(void (*f)()) {
  auto* const added = new Registration{f, registrations.load(std::memory_order_relaxed)};
  while (!registrations.compare_exchange_weak(added->next, added, std::memory_order_release,
                                              std::memory_order_relaxed)) {
  }
}

}  // namespace corelane
