/// rknn_run, rknn_wait, and where a run goes. How runs end: rknn_complete.cpp.
#include "adapters/rknn/model/rknn_run.h"

#include <unistd.h>

#include <algorithm>

#include "adapters/rknn/api/rknn_handle.h"
#include "adapters/rknn/model/rknn_model_facts.h"
#include "adapters/rknn/model/rknn_query.h"
#include "base/guard.h"
#include "base/later.h"
#include "corelane/device/device.h"

namespace corelane::rknn {
namespace {

/// The fence that is signalled for the caller at a run's end, and its descriptor.
struct OutFence {
  std::shared_ptr<device::Fence> fence;  ///< Null: the caller wants none.
  int fd = -1;
};

Result<OutFence> make_out_fence(const ModelFacts& facts, const rknn_run_extend* extend) {
  OutFence out;
  if (!facts.has(RKNN_FLAG_FENCE_OUT_OUTSIDE) || extend == nullptr) return out;
  out.fence = std::make_shared<device::Fence>();
  CORELANE_ASSIGN(out.fd, out.fence->export_fd());
  return out;
}

}  // namespace

/// The time limit of the call, else the environment's; 0: none.
Duration Runs::timeout_of(const rknn_run_extend* extend) const {
  if (extend == nullptr || extend->timeout_ms <= 0) return facts_.timeout;
  return std::chrono::milliseconds(extend->timeout_ms);
}

TimePoint Runs::end_of(const rknn_run_extend* extend) const {
  const Duration timeout = timeout_of(extend);
  return timeout == Duration{0} ? kNever : later(facts_.device->clock()->now(), timeout);
}

/// The caller's own. A wait without one ends all the same: the run that it waits for has a limit.
TimePoint Runs::end_of_wait(const rknn_run_extend* extend) const {
  return extend == nullptr || extend->timeout_ms <= 0 ? kNever : end_of(extend);
}

/// What the frame ran before is over first; how it ended was for rknn_wait or rknn_outputs_get to
/// ask.
Status Runs::make_room(Frame& frame, const rknn_run_extend* extend) {
  if (frame.state == RunState::kOver) return {};
  const TimePoint until = end_of_wait(extend);  // Of both waits together.
  Status before = complete(frame, until);
  // One that failed has its end noted now, and lets go of its memory next.
  if (frame.state == RunState::kAbandoned) before = complete(frame, until);
  if (frame.state == RunState::kOver) return {};
  return before.wrap("this run was not started");
}

/// With two frames that take turns, inputs that were not set since the other frame ran come from
/// there.
Status Runs::bring_inputs(Frame& frame) {
  if (frames_.size() == 1) return {};
  for (std::size_t i = 0; i < input_age_.size(); ++i) {
    if (frame.input_age[i] == input_age_[i] || io_memory_.input_bound(i)) continue;
    for (Frame& other : frames_) {
      if (&other == &frame || other.input_age[i] != input_age_[i]) continue;
      (void)complete(other);  // Its run reads this memory.
      CORELANE_ASSIGN(const MutableTensorView view, other.context.input(i));
      CORELANE_TRY(frame.context.set_input(i, view));
      frame.input_age[i] = input_age_[i];
    }
  }
  return {};
}

Outcome Runs::add_in_fence(const rknn_run_extend* extend, RunOptions& options) {
  if (!facts_.has(RKNN_FLAG_FENCE_IN_OUTSIDE) || extend == nullptr || extend->fence_fd < 0)
    return {};
  CORELANE_ASSIGN(std::shared_ptr<device::Fence> fence, device::import_fence_fd(extend->fence_fd));
  const std::size_t kept = frames_.size();
  std::shared_ptr<device::Fence> oldest;  // Let go of after the lock.
  MutexLock lock(fence_mutex_);
  if (closing_) {
    lock.unlock();  // The message asks the table of handles.
    return {RKNN_ERR_CTX_INVALID, stale_handle(facts_.number)};
  }
  if (in_fences_.size() >= kept) {
    oldest = std::move(in_fences_.front());
    in_fences_.erase(in_fences_.begin());
  }
  in_fences_.push_back(fence);
  options.wait.push_back(std::move(fence));
  return {};
}

/// Runs `frame`, and leaves it running where `background`, or a deadline, asks for that.
Status Runs::start(Frame& frame, RunOptions options, bool background) {
  // A run with a deadline may be abandoned and hold bound memory; only an Inference knows when that
  // is free.
  if (!background && options.timeout == Duration{0}) return frame.context.run(options);
  auto inference = frame.context.submit(options);
  if (inference) {
    frame.inference = *std::move(inference);
    frame.state = RunState::kSubmitted;
    return {};
  }
  if (inference.error().code() != Code::kUnsupported || options.wait.empty())
    return inference.error();
  // Inputs that are converted are read by the thread that submits, after the fence.
  CORELANE_ASSIGN(frame.deferred,
                  DeferredRun::start(frame.context, std::move(options), *facts_.device->clock()));
  frame.state = RunState::kDeferred;
  return {};
}

Outcome Runs::run(rknn_run_extend* extend) {
  if (inside_operator())
    return outcome(RKNN_ERR_FAIL,
                   "called from inside a custom operator, which holds the core that this run might "
                   "wait for; run models before or after it");
  const ContextLock lock(mutex_);
  if (!lock.ok()) return lock.refused();
  CORELANE_TRY(ready());
  Frame& frame = next_frame();
  CORELANE_TRY(make_room(frame, extend));
  CORELANE_TRY(bring_inputs(frame));
  CORELANE_TRY(io_memory_.check_usable());
  // Two runs would write bound outputs at once.
  if (facts_.asynchronous() && io_memory_.binds_output()) (void)complete_all();
  RunOptions options;
  options.cores = cores_;
  options.priority = priority_of(facts_.flags);
  options.timeout = frame.timeout = timeout_of(extend);
  frame.own_timeout = extend != nullptr && extend->timeout_ms > 0;
  const bool background = facts_.asynchronous() || (extend != nullptr && extend->non_block != 0);
  if (Outcome failed = add_in_fence(extend, options); failed.code() != RKNN_SUCC) return failed;
  CORELANE_ASSIGN(const OutFence out, make_out_fence(facts_, extend));
  if (out.fence != nullptr) options.signal.push_back(out.fence);
  if (check::enabled()) [[unlikely]]
    io_memory_.check_before_run(frame);
  frame.id = options.tag = ++runs_;
  Status status = no_throw("rknn_run", [&]() CORELANE_NO_THREAD_SAFETY_ANALYSIS {
    // no_throw() calls it at once, under the lock.
    return start(frame, std::move(options), background);
  });
  if (!frame.running())
    note_end(frame, status);
  else if (!background)
    status = complete(frame);
  // A fence waiter need not call rknn_wait: what is checked ends now.
  if (!frame.checked.empty() && (!frame.running() || out.fence != nullptr)) check_after_run(frame);
  if (extend != nullptr) extend->frame_id = frame.id;
  if (out.fence == nullptr) return status;
  if (status.ok()) {
    extend->fence_fd = out.fd;
  } else {
    // On failure the caller gets no descriptor.
    ::close(out.fd);
    if (!facts_.has(RKNN_FLAG_FENCE_IN_OUTSIDE)) extend->fence_fd = -1;
  }
  return status;
}

Outcome Runs::wait(rknn_run_extend* extend) {
  const ContextLock lock(mutex_);
  if (!lock.ok()) return lock.refused();
  if (runs_ == 0)
    return outcome(RKNN_ERR_FAIL, "there is nothing to wait for; call rknn_run before");
  std::uint64_t id = extend == nullptr ? 0 : extend->frame_id;
  if (id > runs_)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "there is no frame {} yet; the last one is {}, 0 also means the last one", id,
                   runs_);
  if (id == 0) id = runs_;
  if (extend != nullptr) extend->frame_id = id;
  const auto named =
      std::find_if(frames_.begin(), frames_.end(), [&](const Frame& f) { return f.id == id; });
  if (named == frames_.end()) {
    // Later runs took its frame, so it is over; only failures are remembered.
    const auto failed = std::find_if(failed_.begin(), failed_.end(),
                                     [id](const auto& entry) { return entry.first == id; });
    if (failed != failed_.end()) return failed->second;
    if (id > forgotten_) return {};
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "how frame {} ended is no longer known: {} later runs failed; wait for a frame "
                   "before the runs that follow",
                   id, failed_.size());
  }
  if (!named->running()) return named->result;
  return complete(*named, end_of_wait(extend));
}

Outcome Runs::set_core_mask(rknn_core_mask mask) {
  device::CoreSet cores;
  if (Outcome bad = read_core_mask(mask, facts_.chip, cores); bad.code() != RKNN_SUCC) return bad;
  const ContextLock lock(mutex_);
  if (!lock.ok()) return lock.refused();
  cores_ = cores;
  return {};
}

Outcome Runs::set_batch_cores(int cores) {
  if (cores < 1 || static_cast<std::uint32_t>(cores) > facts_.chip.cores)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "core_num {} is not within 1 and {}, the cores there are", cores,
                   facts_.chip.cores);
  if (facts_.description->batch <= 1)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "the model was built for single samples, so there is no batch to spread; build "
                   "it with `corelane compile --batch N`");
  const ContextLock lock(mutex_);
  if (!lock.ok()) return lock.refused();
  cores_ = device::CoreSet::any(static_cast<std::size_t>(cores));
  return {};
}

}  // namespace corelane::rknn
