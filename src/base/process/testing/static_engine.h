/// For tests that end a process while threads of it are in an engine.
#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/process/process_end.h"

namespace corelane::testing {

/// What an engine's library has: a static object, made at its first use. The process ends with code
/// 3 where it is destroyed in use.
class StaticEngine {
 public:
  static StaticEngine& instance() {
    static StaticEngine engine;
    return engine;
  }
  ~StaticEngine() {
    if (in_use_) _exit(3);
    if (at_end) at_end();
  }
  /// Uses it from now until the process ends, and a moment longer.
  void use() {
    in_use_ = true;
    while (!process_ending()) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    in_use_ = false;
  }
  /// Until another thread uses it.
  void await_use() const {
    while (!in_use_) std::this_thread::yield();
  }
  std::function<void()> at_end;  ///< Called when it is destroyed.

 private:
  std::atomic<bool> in_use_{false};
};

/// To be called first in such a process: a wait without end is ended by a signal.
inline void begin_process_that_ends() {
  constexpr unsigned kSeconds = 60;  // Well above what a test takes.
  ::alarm(kSeconds);
  set_exit_limit(std::chrono::hours(1));
}

}  // namespace corelane::testing
