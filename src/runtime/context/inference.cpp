#include "base/reserve.h"
#include "corelane/runtime/context.h"
#include "runtime/context/inference_state.h"

namespace corelane {
namespace {

Status no_inference() { return error(Code::kWrongState, "this inference was never submitted"); }

}  // namespace

/// The job is done first, and its outputs are converted then: until that is over the inference is
/// not.
bool Inference::done() const noexcept {
  if (state_ == nullptr) return false;
  return state_->conversion != nullptr ? state_->conversion->finished()
                                       : state_->completion->done();
}

Status Inference::wait(TimePoint until) {
  if (state_ == nullptr) return no_inference();
  // The device's wait may run the job in this thread; the second only waits for the conversion.
  const bool done = state_->completion->wait(until) &&
                    (state_->conversion == nullptr || state_->conversion->wait(until));
  if (!done)
    return error(Code::kTimeout, "the inference is not done yet; it goes on, wait for it again");
  runtime::end_run(state_->run_end, *state_->completion);
  return state_->conversion != nullptr ? state_->conversion->status()
                                       : state_->completion->status();
}

bool Inference::run_here() { return state_ != nullptr && state_->completion->run_here(); }

bool Inference::wait_released(TimePoint until) {
  if (state_ == nullptr) return true;
  return state_->completion->wait_released(until) &&
         (state_->conversion == nullptr || state_->conversion->wait(until));
}

/// A job that was removed completes like any other, so its fences and callbacks follow.
bool Inference::cancel() { return state_ != nullptr && state_->completion->cancel(); }

void Inference::on_done(std::function<void(const Status&)> f) {
  if (state_ == nullptr) {
    runtime::call_back(f, no_inference());
    return;
  }
  if (state_->conversion != nullptr) {
    state_->conversion->on_finished(std::move(f));
    return;
  }
  // No output is converted, so the device's own completion is the end.
  state_->completion->on_done(sure_once<void(device::Completion&)>(
      [call = std::move(f), end = state_->run_end](device::Completion& c) {
        runtime::end_run(end, c);
        runtime::call_back(call, c.status());
      }));
}

device::JobRecord Inference::record() const {
  return state_ == nullptr ? device::JobRecord{} : state_->completion->record();
}

RunTimes Inference::times() const {
  if (state_ == nullptr) return {};
  return runtime::run_times(state_->completion->record(), stamps());
}

RunStamps Inference::stamps() const {
  return state_ == nullptr ? RunStamps{}
                           : runtime::stamps_of(state_->stamps, state_->conversion.get());
}

}  // namespace corelane
