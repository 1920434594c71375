/// rknn_run and rknn_wait.
#include <algorithm>

#include "adapters/rknn/rknn_model.h"
#include "corelane/device/fence.h"

namespace corelane::rknn {
namespace {

Duration timeout_of(const rknn_run_extend* extend) {
  if (extend == nullptr || extend->timeout_ms <= 0) return Duration{0};
  return std::chrono::milliseconds(extend->timeout_ms);
}

}  // namespace

void ModelContext::finish(Frame& frame, const Status& status) {
  frame.result = status;
  const device::JobRecord record = frame.context.record();
  note_run(frame, record);
  if (status.ok() && log::enabled(log::Level::kLayers)) tell_run(frame);
}

/// What queries tell of the last run.
void ModelContext::note_run(Frame& frame, const device::JobRecord& record) {
  const std::lock_guard lock(state_);
  last_record_ = record;
  if (!frame.result.ok()) return;
  // Outputs with open dimensions have their shape now.
  for (std::size_t i = 0; i < output_shapes_.size(); ++i)
    if (!output_shapes_[i].is_static() || !description_->outputs[i].desc.shape.is_static())
      if (auto view = frame.context.output(i)) output_shapes_[i] = view->shape;
  if ((flags_ & RKNN_FLAG_COLLECT_PERF_MASK) != 0 || log::enabled(log::Level::kLayers))
    if (auto layers = frame.context.layer_times()) layers_ = *std::move(layers);
}

Status ModelContext::settle(Frame& frame, TimePoint until) {
  if (!frame.flight) return frame.result;
  Status status = frame.flight->wait(until);
  if (status.code() == Code::kTimeout && !frame.flight->done()) return status;
  frame.flight.reset();
  finish(frame, status);
  return status;
}

Status ModelContext::settle_all() {
  Status first;
  for (Frame& frame : frames_) {
    Status status = settle(frame);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

/// With two frames that take turns, inputs that were not set since the other frame ran come from
/// there.
Status ModelContext::bring_inputs(Frame& frame) {
  if (frames_.size() == 1) return {};
  for (std::size_t i = 0; i < input_age_.size(); ++i) {
    if (frame.input_age[i] == input_age_[i] || bound_inputs_[i]) continue;
    for (Frame& other : frames_) {
      if (&other == &frame || other.input_age[i] != input_age_[i]) continue;
      CORELANE_ASSIGN_OR_STATUS(const MutableTensorView view, other.context.input(i));
      CORELANE_RETURN_IF_ERROR(frame.context.set_input(i, view));
      frame.input_age[i] = input_age_[i];
    }
  }
  return {};
}

RunOptions ModelContext::run_options(const rknn_run_extend* extend) const {
  RunOptions options;
  options.cores = cores_;
  options.priority = priority_of(flags_);
  options.timeout = timeout_of(extend);
  options.tag = last_run_;
  return options;
}

Outcome ModelContext::run(rknn_run_extend* extend) {
  if (inside_operator != nullptr)
    return outcome(RKNN_ERR_FAIL,
                   "called from inside a custom operator, which holds the core that this run might "
                   "wait for; run models before or after it");
  const Order order(*this);
  if (!order.status().ok()) return order.status();
  if (Status status = ready(); !status.ok()) return status;
  Frame& frame = next_frame();
  // What ran before is over first; how it ended was for rknn_wait or rknn_outputs_get to ask.
  if (frame.flight) (void)settle(frame);
  if (Status status = bring_inputs(frame); !status.ok()) return status;
  RunOptions options = run_options(extend);
  const bool background = asynchronous() || (extend != nullptr && extend->non_block != 0);
  std::shared_ptr<device::Fence> in, out;
  if ((flags_ & RKNN_FLAG_FENCE_IN_OUTSIDE) != 0 && extend != nullptr && extend->fence_fd >= 0) {
    auto fence = device::import_fence_fd(extend->fence_fd);
    if (!fence) return fence.error();
    in = *std::move(fence);
  }
  int out_fd = -1;
  if ((flags_ & RKNN_FLAG_FENCE_OUT_OUTSIDE) != 0 && extend != nullptr) {
    out = std::make_shared<device::Fence>();
    auto fd = out->export_fd();
    if (!fd) return fd.error();
    out_fd = *fd;
    options.signal.push_back(out);
  }
  Status status;
  frame.id = ++last_run_;
  options.tag = frame.id;
  if (in) options.wait.push_back(in);
  if (background) {
    auto flight = frame.context.submit(options);
    if (!flight && flight.error().code() == Code::kUnsupported && in) {
      // Inputs that are converted are read in this thread, after the fence.
      in->wait();
      options.wait.clear();
      flight = frame.context.submit(options);
    }
    if (flight) {
      frame.flight = *std::move(flight);
    } else {
      status = flight.error();
    }
  } else {
    status = frame.context.run(options);
    finish(frame, status);
  }
  if (!status.ok() && !frame.flight) frame.result = status;
  ++runs_;
  if (extend != nullptr) {
    extend->frame_id = frame.id;
    if (out) {
      if (!status.ok()) out->signal(status);
      extend->fence_fd = out_fd;
    }
  }
  return status;
}

Outcome ModelContext::wait(rknn_run_extend* extend) {
  const Order order(*this);
  if (!order.status().ok()) return order.status();
  if (runs_ == 0)
    return outcome(RKNN_ERR_FAIL, "there is nothing to wait for; call rknn_run before");
  Frame* frame = &frames_[(runs_ - 1) % frames_.size()];
  if (extend != nullptr && extend->frame_id != 0 && extend->frame_id != frame->id) {
    const auto named = std::find_if(frames_.begin(), frames_.end(),
                                    [&](const Frame& f) { return f.id == extend->frame_id; });
    if (named == frames_.end())
      return outcome(
          RKNN_ERR_PARAM_INVALID,
          "frame {} is none of those that can be waited for; the last one is {}, 0 names "
          "it as well",
          extend->frame_id, frame->id);
    frame = &*named;
  }
  const Duration timeout = timeout_of(extend);
  const TimePoint until = timeout == Duration{0} ? kNever : device_->clock()->now() + timeout;
  const Status status = settle(*frame, until);
  if (extend != nullptr) extend->frame_id = frame->id;
  return status;
}

}  // namespace corelane::rknn
