/// The end of a process, as threads of the library see it.
///
/// exit() destroys the static objects of all libraries, an engine's among them, while other threads
/// go on. So a thread makes a visit while it is in an engine, exit() waits for the visits that are
/// under way, and later ones are refused. How that is done: docs/decisions/0020-exit.md.
#pragma once

#include <cstdint>
#include <memory>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"

namespace corelane {

/// True from when the main thread has ended or exit() has begun, and before static objects are
/// destroyed: who works for later runs stops. Any thread.
CORELANE_API bool process_ending() noexcept;

/// A thread is in an engine while it holds one. One thread may hold several.
class CORELANE_API EngineVisit {
 public:
  EngineVisit() noexcept;
  ~EngineVisit();
  EngineVisit(const EngineVisit&) = delete;
  EngineVisit& operator=(const EngineVisit&) = delete;
  /// False: it is too late, the engine must be left alone. Never in the thread that called exit(),
  /// nor in one that holds another visit.
  explicit operator bool() const noexcept { return in_; }

 private:
  const std::uint64_t made_in_;  ///< As fork_count().
  bool in_ = false;
};

/// Static objects that this process has made so far are destroyed after exit() has waited,
/// whichever thread calls it. To be called after a visit that may have loaded a library; the first
/// 30 calls count. Any thread.
CORELANE_API void exit_waits_first() noexcept;

/// Keeps what came too late to be destroyed. Any thread.
CORELANE_API void never_destroy(std::shared_ptr<const void> object) noexcept;

/// For tests: how long each of exit()'s two waits takes at most; 5 s before.
CORELANE_API void set_exit_limit(Duration limit) noexcept;

}  // namespace corelane
