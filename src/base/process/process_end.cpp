#include "base/process/process_end.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <new>
#include <utility>

#include "base/fork.h"
#include "base/leaked.h"

namespace corelane {
namespace {

enum class Phase : std::uint8_t {
  kRuns,
  kEnds,  ///< The main thread's own objects are destroyed: work for later runs stops.
  kEnded  ///< Static objects of the process are destroyed: no visit begins.
};

// Initialised before any code runs, free of locks and never destroyed.
constinit std::atomic<Phase> phase{Phase::kRuns};
constinit std::atomic<std::uint64_t> visits{0};
constinit std::atomic<std::int64_t> limit_ns{5'000'000'000};
constinit std::atomic<int> handlers{0};
constinit std::atomic<bool> main_is_watched{false};
constinit std::atomic<pthread_t> ending_thread{};

/// What this thread holds of `visits`. A forked child begins anew.
struct Held {
  std::uint64_t forks;
  std::uint64_t visits;
};
thread_local Held held{0, 0};

std::uint64_t& own_visits() noexcept {
  if (held.forks != fork_count()) held = {fork_count(), 0};
  return held.visits;
}

std::int64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Looks again and again: nobody else may depend on a lock by now.
void wait_for_visits() noexcept {
  constexpr timespec kPause{0, 500'000};
  const std::uint64_t own = own_visits();
  const std::int64_t until = now_ns() + limit_ns.load();
  while (visits.load() > own && now_ns() < until) ::nanosleep(&kPause, nullptr);
}

/// Called by exit(), after all that was registered later.
void at_exit() noexcept {
  if (phase.exchange(Phase::kEnded) == Phase::kEnded) return;
  ending_thread.store(::pthread_self());
  wait_for_visits();
}

/// Destroyed by exit(), before static objects and whenever these were made, where the main thread
/// calls it. Or at the end of the main thread alone, after which others may go on.
struct EndOfMain {
  ~EndOfMain() {
    Phase runs = Phase::kRuns;
    phase.compare_exchange_strong(runs, Phase::kEnds);
    wait_for_visits();
    std::atexit(&at_exit);
  }
};
thread_local EndOfMain end_of_main;

void watch_main() noexcept {
  if (main_is_watched.load(std::memory_order_relaxed) || ::gettid() != ::getpid()) return;
  main_is_watched.store(true, std::memory_order_relaxed);
  static_cast<void>(&end_of_main);
}

/// When the library is loaded, mostly by the main thread.
[[maybe_unused]] const bool kWatches = [] {
  std::atexit(&at_exit);
  watch_main();
  call_in_forked_child([] {
    visits.store(0);
    main_is_watched.store(false, std::memory_order_relaxed);
  });
  return true;
}();

struct Kept {
  std::shared_ptr<const void> object;
  Kept* next;
};
/// Leak checkers see that it is meant.
constinit std::atomic<Kept*> kept{nullptr};

}  // namespace

bool process_ending() noexcept { return phase.load(std::memory_order_relaxed) != Phase::kRuns; }

EngineVisit::EngineVisit() noexcept : made_in_(fork_count()) {
  watch_main();
  std::uint64_t& own = own_visits();
  visits.fetch_add(1);
  in_ = phase.load() != Phase::kEnded || own > 0 ||
        ::pthread_equal(ending_thread.load(), ::pthread_self()) != 0;
  if (in_)
    ++own;
  else
    visits.fetch_sub(1);
}

EngineVisit::~EngineVisit() {
  if (!in_ || made_in_ != fork_count()) return;
  --own_visits();
  visits.fetch_sub(1);
}

void exit_waits_first() noexcept {
  constexpr int kMost = 30;  // The standard promises room for 32.
  if (handlers.load() < kMost && handlers.fetch_add(1) < kMost) std::atexit(&at_exit);
}

void never_destroy(std::shared_ptr<const void> object) noexcept {
  auto* const added = new (std::nothrow) Kept{std::move(object), kept.load()};
  if (added == nullptr) {
    const Leaked<std::shared_ptr<const void>> left(std::move(object));
    return;
  }
  while (!kept.compare_exchange_weak(added->next, added)) {
  }
}

void set_exit_limit(Duration limit) noexcept { limit_ns.store(limit.count()); }

}  // namespace corelane
