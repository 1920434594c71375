#include "runtime/context/output_copies.h"

#include <exception>
#include <new>

#include "base/guard.h"
#include "corelane/tensor/convert.h"

namespace corelane::runtime {

namespace {

/// Stops at the first output that does not fit.
Status convert_all(device::Bindings& bindings, std::span<const OutputCopy> copies) {
  for (const OutputCopy& copy : copies) {
    CORELANE_ASSIGN(const device::TensorRef from, bindings.output(copy.index));
    MutableTensorView to = copy.to;
    if (!to.shape.is_static()) {
      to.shape = from.shape;
      auto needed = storage_bytes(to.shape, to.dtype, to.layout);
      if (!needed) return std::move(needed).error();
      if (*needed > to.size) {
        return error(Code::kOutOfMemory,
                     "output '{}': the result {} needs {} bytes, the bound memory has {}",
                     copy.desc.name, to.shape.to_string(), *needed, to.size);
      }
    }
    const TensorView result{from.data, from.size, copy.desc.dtype, from.shape, {}, {}};
    if (const Status status = convert(result, to); !status.ok())
      return status.wrap("output '" + copy.desc.name + "' cannot be written to the bound memory");
  }
  return {};
}

}  // namespace

Status copy_out(device::Bindings& bindings, std::span<const OutputCopy> copies) noexcept {
  return no_throw("converting the outputs", [&] { return convert_all(bindings, copies); });
}

OutputFinish::OutputFinish(std::shared_ptr<Clock> clock, std::shared_ptr<device::Bindings> bindings,
                           std::vector<OutputCopy> copies,
                           std::vector<std::shared_ptr<device::Fence>> signal)
    : clock_(std::move(clock)),
      bindings_(std::move(bindings)),
      copies_(std::move(copies)),
      signal_(std::move(signal)) {}

/// Callbacks and fences come last, without the lock: they may start the next inference.
void OutputFinish::run(device::Completion& completion) {
  Status status = completion.status();
  Duration spent{};
  if (status.ok()) {
    const TimePoint start = clock_->now();
    status = copy_out(*bindings_, copies_);
    spent = clock_->now() - start;
  }
  // These may be the last references to bindings and buffers: they are freed after the lock.
  const auto bindings = std::move(bindings_);
  const auto copies = std::move(copies_);
  std::vector<std::function<void(const Status&)>> callbacks;
  {
    const MutexLock lock(mutex_);
    status_ = status;
    spent_ = spent;
    finished_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
    changed_.notify_all();
  }
  for (const auto& fence : signal_) fence->signal(status);
  for (const auto& f : callbacks) call_back(f, status);
}

bool OutputFinish::wait(TimePoint until) {
  if (finished()) return true;
  MutexLock lock(mutex_);
  while (!finished())
    if (!clock_->wait_until(lock.native(), changed_, until)) break;
  return finished();
}

Status OutputFinish::status() const {
  const MutexLock lock(mutex_);
  if (!finished()) return error(Code::kWrongState, "the inference is not done yet");
  return status_;
}

Duration OutputFinish::spent() const {
  const MutexLock lock(mutex_);
  return spent_;
}

/// A callback that is registered later than the end is called in the registering thread.
void OutputFinish::on_finished(std::function<void(const Status&)> f) {
  Status status;
  {
    const MutexLock lock(mutex_);
    if (!finished()) {
      callbacks_.push_back(std::move(f));
      return;
    }
    status = status_;
  }
  call_back(f, status);
}

void call_back(const std::function<void(const Status&)>& f, const Status& status) noexcept {
  if (f) run_callback("runtime", "a completion callback", f, status);
}

}  // namespace corelane::runtime
