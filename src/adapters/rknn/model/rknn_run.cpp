/// rknn_run and rknn_wait.
#include <unistd.h>

#include <algorithm>

#include "adapters/rknn/model/rknn_model.h"
#include "base/later.h"

namespace corelane::rknn {
namespace {

Duration timeout_of(const rknn_run_extend* extend) {
  if (extend == nullptr || extend->timeout_ms <= 0) return Duration{0};
  return std::chrono::milliseconds(extend->timeout_ms);
}

TimePoint end_of(Duration timeout, const Clock& clock) {
  return timeout == Duration{0} ? kNever : later(clock.now(), timeout);
}

constexpr std::size_t kFailuresKept = 16;

}  // namespace

DeferredRun::DeferredRun(Context context, RunOptions options, const Clock& clock)
    : in_(options.wait) {
  const TimePoint until = end_of(options.timeout, clock);
  thread_ = std::thread(
      [this, context = std::move(context), options = std::move(options), until]() mutable {
        const std::vector<std::shared_ptr<device::Fence>> out = options.signal;
        Status status;
        try {
          status = run(context, std::move(options), until);
        } catch (...) {
          status = current_exception_outcome().status();
        }
        for (const auto& fence : out) fence->signal(status);
        over_.signal(std::move(status));
      });
}

Status DeferredRun::run(Context& context, RunOptions options, TimePoint until) {
  for (const auto& fence : in_) {
    if (!fence->wait(until))
      return error(Code::kTimeout, "the fence did not come before the run's time was over");
    if (Status status = fence->status(); !status.ok()) return status;
  }
  // What is left of the time begins to count anew: the fence came within it.
  options.wait.clear();
  options.signal.clear();
  auto flight = context.submit(options);
  if (!flight) return flight.error();
  Status status = flight->wait();
  if (!status.ok()) abandoned_ = *std::move(flight);
  return status;
}

std::optional<Inference> DeferredRun::finish() {
  for (const auto& fence : in_)
    fence->signal(error(Code::kCancelled, "the context was destroyed before the fence came"));
  over_.wait();
  return std::move(abandoned_);
}

DeferredRun::~DeferredRun() {
  (void)finish();
  thread_.join();
}

void ModelContext::finish(Frame& frame, const Status& status) {
  frame.result = status;
  if (!frame.checked.empty()) check_after_run(frame);
  if (!status.ok()) {
    if (failed_.size() == kFailuresKept) failed_.pop_front();
    failed_.emplace_back(frame.id, status);
  }
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
  // One that was given up at its deadline may use bound memory until the device
  // lets go of it.
  if (frame.abandoned) {
    if (binds_memory() && !frame.abandoned->wait_released(until))
      return error(Code::kTimeout, "frame {} was given up and is not over yet", frame.id);
    frame.abandoned.reset();
  }
  if (!open(frame)) return frame.result;
  Status status;
  if (frame.deferred) {
    if (!frame.deferred->wait(until))
      return error(Code::kTimeout, "frame {} is not done yet; wait for it again", frame.id);
    status = frame.deferred->status();
    frame.abandoned = frame.deferred->finish();
    frame.deferred.reset();
  } else {
    status = frame.flight->wait(until);
    if (status.code() == Code::kTimeout && !frame.flight->done()) return status;
    if (!status.ok()) frame.abandoned = std::move(frame.flight);
    frame.flight.reset();
  }
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

/// With two frames that take turns, inputs that were not set since the other
/// frame ran come from there.
Status ModelContext::bring_inputs(Frame& frame) {
  if (frames_.size() == 1) return {};
  for (std::size_t i = 0; i < input_age_.size(); ++i) {
    if (frame.input_age[i] == input_age_[i] || bound_inputs_[i]) continue;
    for (Frame& other : frames_) {
      if (&other == &frame || other.input_age[i] != input_age_[i]) continue;
      (void)settle(other);  // Its memory is its run's.
      CORELANE_ASSIGN(const MutableTensorView view, other.context.input(i));
      CORELANE_TRY(frame.context.set_input(i, view));
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
  return options;
}

/// A run of `frame`, over on return unless it goes on in the background.
Status ModelContext::start(Frame& frame, RunOptions options, bool background) {
  // With a deadline what is given up may hold bound memory; only Inference
  // tells when it is free.
  const bool submits = background || options.timeout != Duration{0};
  if (!submits) {
    const Status status = frame.context.run(options);
    finish(frame, status);
    return status;
  }
  auto flight = frame.context.submit(options);
  if (flight) {
    frame.flight = *std::move(flight);
    return background ? Status() : settle(frame);
  }
  if (flight.error().code() != Code::kUnsupported || options.wait.empty()) {
    finish(frame, flight.error());
    return flight.error();
  }
  // Inputs that are converted are read by the thread that submits, after the
  // fence.
  frame.deferred =
      std::make_shared<DeferredRun>(frame.context, std::move(options), *device_->clock());
  return background ? Status() : settle(frame);
}

Outcome ModelContext::run(rknn_run_extend* extend) {
  if (inside_operator != nullptr)
    return outcome(RKNN_ERR_FAIL,
                   "called from inside a custom operator, which "
                   "holds the core that this run might "
                   "wait for; run models before or after it");
  const Order order(*this);
  if (!order.ok()) return order.refused();
  if (Status status = ready(); !status.ok()) return status;
  Frame& frame = next_frame();
  if (open(frame) || frame.abandoned) {
    // What ran before is over first; how it ended was for rknn_wait or
    // rknn_outputs_get to ask.
    const Status before = settle(frame, end_of(timeout_of(extend), *device_->clock()));
    if (open(frame) || frame.abandoned) return before.wrap("this run was not started");
  }
  if (Status status = bring_inputs(frame); !status.ok()) return status;
  if (Status status = check_bound(); !status.ok()) return status;
  // Two runs would write bound outputs at once.
  if (asynchronous() && binds_outputs()) (void)settle_all();
  RunOptions options = run_options(extend);
  const bool background = asynchronous() || (extend != nullptr && extend->non_block != 0);
  if ((flags_ & RKNN_FLAG_FENCE_IN_OUTSIDE) != 0 && extend != nullptr && extend->fence_fd >= 0) {
    auto fence = device::import_fence_fd(extend->fence_fd);
    if (!fence) return fence.error();
    const std::lock_guard lock(state_);
    if (closing_) return {RKNN_ERR_CTX_INVALID, stale_handle(number_)};
    if (in_fences_.size() >= frames_.size()) in_fences_.erase(in_fences_.begin());
    in_fences_.push_back(*fence);
    options.wait.push_back(*std::move(fence));
  }
  std::shared_ptr<device::Fence> out;
  int out_fd = -1;
  if ((flags_ & RKNN_FLAG_FENCE_OUT_OUTSIDE) != 0 && extend != nullptr) {
    out = std::make_shared<device::Fence>();
    auto fd = out->export_fd();
    if (!fd) return fd.error();
    out_fd = *fd;
    options.signal.push_back(out);
  }
  if (check::enabled()) [[unlikely]]
    check_before_run(frame);
  frame.id = options.tag = ++last_run_;
  ++runs_;
  Status status;
  try {
    status = start(frame, std::move(options), background);
  } catch (...) {
    status = current_exception_outcome().status();
    finish(frame, status);
  }
  // Who waits on a fence knows the end without telling.
  if (!frame.checked.empty() && (!open(frame) || out)) check_after_run(frame);
  if (extend != nullptr) extend->frame_id = frame.id;
  if (out == nullptr) return status;
  if (status.ok()) {
    extend->fence_fd = out_fd;
  } else {
    // Who is told of a failure has no reason to look for a descriptor.
    ::close(out_fd);
    if ((flags_ & RKNN_FLAG_FENCE_IN_OUTSIDE) == 0) extend->fence_fd = -1;
  }
  return status;
}

Status ModelContext::check_bound() const {
  for (const auto* bounds : {&bound_inputs_, &bound_outputs_})
    for (std::size_t i = 0; i < bounds->size(); ++i) {
      const std::optional<Bound>& bound = (*bounds)[i];
      if (!bound || bound->memory->buffer != nullptr ||
          !bound->memory->destroyed.load(std::memory_order_acquire))
        continue;
      return error(Code::kWrongState,
                   "mem of {} {} was destroyed by rknn_destroy_mem, and its memory is the "
                   "caller's; call rknn_set_io_mem with another before the run",
                   bounds == &bound_inputs_ ? "input" : "output", i);
    }
  return {};
}

Status ModelContext::past_result(std::uint64_t id) const {
  const auto found = std::find_if(failed_.begin(), failed_.end(),
                                  [id](const auto& failed) { return failed.first == id; });
  return found == failed_.end() ? Status() : found->second;
}

Outcome ModelContext::wait(rknn_run_extend* extend) {
  const Order order(*this);
  if (!order.ok()) return order.refused();
  if (runs_ == 0)
    return outcome(RKNN_ERR_FAIL, "there is nothing to wait for; call rknn_run before");
  std::uint64_t id = extend == nullptr ? 0 : extend->frame_id;
  if (id > last_run_)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "there is no frame {} yet; the last one is {}, 0 names it as well", id,
                   last_run_);
  if (id == 0) id = last_run_;
  if (extend != nullptr) extend->frame_id = id;
  const auto named =
      std::find_if(frames_.begin(), frames_.end(), [&](const Frame& f) { return f.id == id; });
  // Frames that later ones took the place of are over.
  if (named == frames_.end()) return past_result(id);
  if (!open(*named)) return named->result;
  return settle(*named, end_of(timeout_of(extend), *device_->clock()));
}

}  // namespace corelane::rknn
