/// One inference on a chain: the jobs of its parts, and what becomes of them together.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/sync.h"
#include "corelane/device/device.h"
#include "runtime/chain/chain_device.h"
#include "runtime/chain/chain_executable.h"

namespace corelane::runtime {

/// What a queue and its jobs share.
struct ChainLine {
  /// A job or a run begins.
  void begin() noexcept {
    const MutexLock lock(mutex);
    ++depth;
  }
  /// It has ended; wakes who waits for the last one.
  void end() noexcept;

  std::uint64_t id = 0;
  std::string name;
  std::shared_ptr<Clock> clock;
  std::shared_ptr<ChainLedger> ledger;
  Mutex mutex{LockRank::kLeaf};
  std::size_t depth CORELANE_GUARDED_BY(mutex) = 0;  ///< Jobs and runs that are not done.
  /// Signalled when `depth` is 0; null where nobody waits for that.
  std::shared_ptr<device::Fence> drained CORELANE_GUARDED_BY(mutex);
};

/// It is done when all of its parts are: then nothing of it runs any more, but for a part that was
/// abandoned. Where one fails, those that have not begun are cancelled.
class ChainJob final : public device::Completion, public std::enable_shared_from_this<ChainJob> {
 public:
  ChainJob(std::shared_ptr<ChainLine> line, std::shared_ptr<ChainBindings> bindings,
           const device::Submission& submission);

  /// The parts have been submitted, and none may begin before begin(). Cannot fail from here on.
  void take(ChainBindings::Jobs parts) noexcept;

  bool done() const noexcept override { return done_.load(std::memory_order_acquire); }
  bool released() const noexcept override;
  bool wait(TimePoint until) override;
  bool wait_released(TimePoint until) override;
  Status status() const override;
  device::JobRecord record() const override;
  bool cancel() override;
  void on_done(std::function<void(device::Completion&)> f) override;

 private:
  void part_done(std::size_t part) noexcept;
  void finish() noexcept;
  void cancel_parts() noexcept;
  /// The failure that ended it: a cancelled part has another's to blame.
  Status outcome() const noexcept;

  const std::shared_ptr<ChainLine> line_;
  const std::shared_ptr<ChainBindings> bindings_;
  ChainBindings::Jobs parts_;
  std::atomic<std::size_t> pending_{0};
  device::JobRecord record_;  ///< Whole once it is done, and so is the status.
  Status status_;
  std::atomic<bool> done_{false};
  device::Fence finished_;  ///< After `done_`: calls back.
};

/// The record of parts that ran one after another, as that of one job.
device::JobRecord chain_record(const ChainExecutable& executable,
                               const std::vector<device::JobRecord>& parts);

/// The failure of a part, with its name and device.
Status part_failure(const ChainExecutable& executable, std::size_t part,
                    const Status& status) noexcept;

}  // namespace corelane::runtime
