#include "runtime/context/output_copies.h"

#include <exception>
#include <new>

#include "base/guard.h"
#include "base/reserve.h"
#include "corelane/tensor/convert.h"

namespace corelane::runtime {

namespace {

/// Stops at the first output that does not fit.
Status convert_all(device::Bindings& bindings, std::span<const OutputCopy> copies) {
  for (const OutputCopy& copy : copies) {
    CORELANE_ASSIGN(const device::TensorRef from, bindings.output(copy.index));
    MutableTensorView to = copy.to;
    if (!to.shape.is_static()) {
      // Of a result with open dimensions the size is known only now.
      to.shape = from.shape;
      auto needed = storage_bytes(to.shape, to.dtype, to.layout);
      if (!needed) return std::move(needed).error();
      if (*needed > to.size) {
        return error(Code::kShapeMismatch,
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
  // In a thread of the device, which nothing may leave.
  return no_throw("converting the outputs", [&] { return convert_all(bindings, copies); });
}

OutputConversion::OutputConversion(const std::shared_ptr<Clock>& clock,
                                   std::shared_ptr<device::Bindings> bindings,
                                   std::vector<OutputCopy> copies,
                                   const std::vector<std::shared_ptr<device::Fence>>& signal)
    : clock_(clock), bindings_(std::move(bindings)), copies_(std::move(copies)), finished_(clock) {
  // Callbacks of a fence run in the order in which they came: these are the first.
  for (const auto& fence : signal)
    finished_.on_signal([fence](const Status& status) { fence->signal(status); });
}

void OutputConversion::run(device::Completion& completion) noexcept {
  Status status = completion.status();
  if (status.ok()) {
    began_ = clock_->now();
    status = copy_out(*bindings_, copies_);
    ended_ = clock_->now();
  }
  // These may be the last references to bindings and buffers: they are freed after the callbacks,
  // which may start the next inference.
  const auto bindings = std::move(bindings_);
  const auto copies = std::move(copies_);
  finished_.signal(std::move(status));
}

Status OutputConversion::status() const {
  if (!finished()) return error(Code::kWrongState, "the inference is not done yet");
  return finished_.status();
}

void OutputConversion::on_finished(std::function<void(const Status&)> f) noexcept {
  finished_.on_signal(sure_once<void(const Status&)>(
      [call = std::move(f)](const Status& status) { call_back(call, status); }));
}

void call_back(const std::function<void(const Status&)>& f, const Status& status) noexcept {
  if (f) run_callback("runtime", "a completion callback", f, status);
}

}  // namespace corelane::runtime
