/// What makes the engine's optimised session of a program that began without one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/sync.h"
#include "corelane/base/status.h"

namespace corelane::drivers::virtual_npu::ort {

/// Runs of a program before its network is optimised: what runs once or twice is not worth it.
inline constexpr std::uint32_t kRunsBeforeOptimising = 3;

/// Calls a function once, in a thread of its own. Any thread. The end of this object waits for the
/// call that is under way, but in a forked child, where there is none.
class OrtLaterCopy {
 public:
  /// What the optimised session takes the place of.
  struct Replaced {
    std::weak_ptr<const void> session;
    bool is_large = false;  ///< Its memory goes back to the system once nobody uses it.
  };
  using Make = std::function<Result<Replaced>()>;
  /// Where `make` fails it is not called again. It must not log, since a callback of the log could
  /// end this object in its thread, and must not use this object.
  explicit OrtLaterCopy(Make make);
  ~OrtLaterCopy();
  OrtLaterCopy(const OrtLaterCopy&) = delete;
  OrtLaterCopy& operator=(const OrtLaterCopy&) = delete;

  /// A run begins. The last one of kRunsBeforeOptimising starts the thread.
  void note_run();
  /// Waits for a call that has begun.
  void wait();
  /// True once `make` has succeeded. Costs no lock.
  bool done() const noexcept { return done_.load(std::memory_order_acquire); }

 private:
  void start();
  void work() noexcept;

  const Make make_;
  const std::uint64_t made_in_;  ///< fork_count().
  std::atomic<std::uint32_t> runs_{0};
  std::atomic<bool> done_{false};
  Mutex mutex_{LockRank::kLeaf};
  std::condition_variable ended_;
  bool running_ CORELANE_GUARDED_BY(mutex_) = false;
  bool stop_ CORELANE_GUARDED_BY(mutex_) = false;
  std::thread thread_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::drivers::virtual_npu::ort
