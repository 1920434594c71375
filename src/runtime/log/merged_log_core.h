/// The working part of a MergedLog: who writes, and the thread that delivers.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/sync.h"
#include "corelane/device/observer.h"
#include "corelane/runtime/merged_log.h"
#include "dispatch/callback_thread.h"
#include "runtime/log/line_merger.h"

namespace corelane::runtime {

/// The lock around a LineMerger, a timer for its first line, and a thread that calls on_line.
/// Nothing is called under the lock. All methods but end() from any thread.
class MergedLogCore final : public std::enable_shared_from_this<MergedLogCore> {
 public:
  static Result<std::shared_ptr<MergedLogCore>> create(MergedLogOptions options);
  ~MergedLogCore() { thread_->stop(); }
  MergedLogCore(const MergedLogCore&) = delete;
  MergedLogCore& operator=(const MergedLogCore&) = delete;

  /// The threads and locks of another process are not to be used.
  bool forked() const noexcept;
  void write(log::Level level, std::string_view part, std::string_view text);
  bool flush(TimePoint until);
  std::uint64_t dropped() const;
  /// Once, after all other calls: the devices' subscriptions end, and what waits is delivered.
  void end();

 private:
  using Sink = std::function<void(const MergedLine&)>;
  MergedLogCore(MergedLogOptions& options, std::shared_ptr<Clock> clock);

  Status watch(const std::shared_ptr<device::Device>& device);
  void add(MergedLine line);
  /// When a timer is to be set; it is noted as set.
  std::optional<TimePoint> next_timer() CORELANE_REQUIRES(mutex_);
  void set_timer(std::optional<TimePoint> when);
  void timer_due(TimePoint when);
  void post_delivery(bool all);
  /// In the thread. `all`: without waiting for the window.
  void deliver(bool all);
  void call(const MergedLine& line) noexcept;

  const Sink on_line_;
  const std::shared_ptr<Clock> clock_;
  const std::uint64_t process_;
  const Duration pause_;  ///< Between deliveries: each wakes a thread.
  const std::shared_ptr<dispatch::CallbackThread> thread_;
  std::vector<std::shared_ptr<device::Observation>> observations_;  ///< Fixed until end().
  bool complaining_ = false;  ///< The thread writes to the log that on_line threw.

  mutable Mutex mutex_{LockRank::kLeaf};
  LineMerger merger_ CORELANE_GUARDED_BY(mutex_);
  TimePoint timer_ CORELANE_GUARDED_BY(mutex_) = kNever;  ///< Of the next delivery.
  TimePoint delivered_ CORELANE_GUARDED_BY(mutex_){};     ///< When the last one began.
};

}  // namespace corelane::runtime
