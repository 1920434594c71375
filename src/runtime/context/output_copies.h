/// The end of an inference whose outputs are converted: converts, then completes it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/sync.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/device.h"
#include "corelane/tensor/desc.h"

namespace corelane::runtime {

/// One output to be converted into user memory. Open dimensions of `to` take the result's shape.
struct OutputCopy {
  std::size_t index = 0;
  TensorDesc desc;  ///< Of the device's memory.
  MutableTensorView to;
  std::shared_ptr<const void> keep_alive;
};

/// Converts the results. kShapeMismatch or kOutOfMemory when the memory does not fit the actual
/// shape; the outputs before that one are written already.
Status copy_out(device::Bindings& bindings, std::span<const OutputCopy> copies) noexcept;

/// Runs once, in the thread that completes the job, before the inference counts as done. An
/// abandoned or failed job writes nothing.
class OutputFinish {
 public:
  OutputFinish(std::shared_ptr<Clock> clock, std::shared_ptr<device::Bindings> bindings,
               std::vector<OutputCopy> copies, std::vector<std::shared_ptr<device::Fence>> signal);

  void run(device::Completion& completion);
  bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }
  bool wait(TimePoint until);
  /// kWrongState while not finished.
  Status status() const;
  Duration spent() const;
  /// Calls `f` when finished, at once if it is.
  void on_finished(std::function<void(const Status&)> f);

 private:
  const std::shared_ptr<Clock> clock_;
  std::shared_ptr<device::Bindings> bindings_;  ///< Null when finished.
  std::vector<OutputCopy> copies_;
  std::vector<std::shared_ptr<device::Fence>> signal_;
  std::atomic<bool> finished_{false};
  mutable Mutex mutex_{LockRank::kOutputFinish};
  std::condition_variable changed_;
  std::vector<std::function<void(const Status&)>> callbacks_ CORELANE_GUARDED_BY(mutex_);
  Status status_ CORELANE_GUARDED_BY(mutex_);
  Duration spent_ CORELANE_GUARDED_BY(mutex_){};
};

/// Calls `f`, logging and dropping what it throws.
void call_back(const std::function<void(const Status&)>& f, const Status& status) noexcept;

}  // namespace corelane::runtime
