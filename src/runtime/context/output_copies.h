/// The end of an inference whose outputs are converted: converts, then completes it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/device.h"
#include "corelane/device/fence.h"
#include "corelane/tensor/desc.h"

namespace corelane::runtime {

/// One output to be converted into user memory. Open dimensions of `to` take the result's shape.
struct OutputCopy {
  std::size_t index = 0;
  TensorDesc desc;  ///< Of the device's memory.
  MutableTensorView to;
  std::shared_ptr<const void> keep_alive;
};

/// Converts the results. kShapeMismatch when the memory does not fit the actual shape; the outputs
/// before that one are written already.
Status copy_out(device::Bindings& bindings, std::span<const OutputCopy> copies) noexcept;

/// The end of an inference whose outputs are converted. Any thread.
class OutputConversion {
 public:
  /// `signal` are signalled with the inference, before its callbacks run.
  OutputConversion(const std::shared_ptr<Clock>& clock, std::shared_ptr<device::Bindings> bindings,
                   std::vector<OutputCopy> copies,
                   const std::vector<std::shared_ptr<device::Fence>>& signal);

  /// Once, in the thread that completes the job, before the inference counts as done. An abandoned
  /// or failed job writes nothing.
  void run(device::Completion& completion) noexcept;
  bool finished() const noexcept { return finished_.signalled(); }
  bool wait(TimePoint until) { return finished_.wait(until); }
  /// kWrongState while not finished.
  Status status() const;
  /// When the outputs were converted. Only once it is finished; TimePoint{} where they were not.
  TimePoint began() const noexcept { return began_; }
  TimePoint ended() const noexcept { return ended_; }
  /// Calls `f` when finished, at once if it is.
  void on_finished(std::function<void(const Status&)> f) noexcept;

 private:
  const std::shared_ptr<Clock> clock_;
  std::shared_ptr<device::Bindings> bindings_;  ///< Null when finished.
  std::vector<OutputCopy> copies_;
  TimePoint began_{};  ///< Both are written before it is finished, and the same from then on.
  TimePoint ended_{};
  device::Fence finished_;
};

/// Calls `f`, logging and dropping what it throws.
void call_back(const std::function<void(const Status&)>& f, const Status& status) noexcept;

}  // namespace corelane::runtime
