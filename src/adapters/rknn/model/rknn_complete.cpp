/// How runs end: completion, results, and the end of the context.
#include <algorithm>
#include <cstdlib>

#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/checks/rknn_dump.h"
#include "adapters/rknn/model/rknn_model_facts.h"
#include "adapters/rknn/model/rknn_query.h"
#include "adapters/rknn/model/rknn_run.h"

namespace corelane::rknn {
namespace {

/// What the frame's run holds passes to its end: over, or abandoned and yet to be released.
void end_run(Frame& frame, const Status& status) {
  if (frame.state == RunState::kDeferred) {
    frame.inference = frame.deferred->stop();
    frame.deferred.reset();
  } else if (status.ok()) {
    frame.inference.reset();
  }
  frame.state = frame.inference ? RunState::kAbandoned : RunState::kOver;
}

/// Shapes of outputs that were open before the run.
std::vector<std::pair<std::size_t, Shape>> open_shapes(const Frame& frame,
                                                       const ProgramDescription& description) {
  std::vector<std::pair<std::size_t, Shape>> shapes;
  for (std::size_t i = 0; i < description.outputs.size(); ++i)
    if (!description.outputs[i].desc.shape.is_static())
      if (auto view = frame.context.output(i)) shapes.emplace_back(i, view->shape);
  return shapes;
}

}  // namespace

OutputBuffers::~OutputBuffers() {
  for (void* buffer : malloced) std::free(buffer);
}

Runs::Runs(const ModelFacts& facts, Queries& queries)
    : facts_(facts),
      queries_(queries),
      mutex_(
          "called from inside a custom operator while the context is running; queries are "
          "allowed there, this is not",
          [this] { return in_use(); }),
      io_memory_(facts, queries) {}

// Called with the lock held, where the analysis cannot see it.
bool Runs::in_use() const noexcept CORELANE_NO_THREAD_SAFETY_ANALYSIS {
  return std::any_of(frames_.begin(), frames_.end(), [](const Frame& f) {
    return f.state == RunState::kDeferred ||
           (f.state == RunState::kSubmitted && !f.inference->done());
  });
}

Status Runs::ready() const { return outside_.ready(facts_.flags); }

/// Ages begin at 0 in all frames: no frame's input is newer than another's.
void Runs::set_frames(std::vector<Frame> frames) {
  frames_ = std::move(frames);
  input_age_.assign(facts_.description->inputs.size(), 0);
  for (Frame& frame : frames_) frame.input_age = input_age_;
  note_shapes();
}

Status Runs::keep_shapes(const std::vector<Shape>& shapes) {
  const bool chosen = std::ranges::all_of(shapes, &Shape::is_static);
  if (!chosen ||
      std::ranges::equal(frames_.front().context.inputs(), shapes, {}, &TensorDesc::shape))
    return {};
  for (Frame& frame : frames_) CORELANE_TRY(frame.context.set_input_shapes(shapes));
  note_shapes();
  return {};
}

void Runs::note_shapes() {
  std::vector<Shape> inputs, outputs;
  for (const TensorDesc& desc : frames_.front().context.inputs()) inputs.push_back(desc.shape);
  for (const TensorDesc& desc : frames_.front().context.outputs()) outputs.push_back(desc.shape);
  outputs.resize(facts_.description->outputs.size());  // Without the values that are dumped.
  results_from_ = runs_;
  queries_.set_shapes(std::move(inputs), std::move(outputs));
}

Frame& Runs::next_frame() noexcept {
  return frames_[facts_.asynchronous() ? runs_ % frames_.size() : 0];
}

Frame* Runs::result_frame() noexcept {
  if (runs_ == 0) return nullptr;
  // With ASYNC_MASK the results of the frame before the last one, but for the first. Memory that is
  // bound holds the last one's.
  const bool before = facts_.asynchronous() && runs_ - results_from_ > 1;
  const std::size_t back = before && !io_memory_.binds_output() ? 2 : 1;
  return &frames_[(runs_ - back) % frames_.size()];
}

void Runs::note_input(Frame& frame, std::size_t index) noexcept {
  frame.input_age[index] = input_age_[index] = age_;
}

Status Runs::complete(Frame& frame, TimePoint until) {
  Status status;
  switch (frame.state) {
    case RunState::kOver:
      return frame.result;
    case RunState::kAbandoned:
      // The engine may never return from a run that hung.
      if (io_memory_.binds() && !frame.inference->wait_released(std::min(until, end_of(nullptr))))
        return error(Code::kTimeout, "frame {} was abandoned and has not let go of its memory yet",
                     frame.id);
      frame.inference.reset();
      frame.state = RunState::kOver;
      return frame.result;
    case RunState::kDeferred:
      if (!frame.deferred->wait(until))
        return error(Code::kTimeout, "frame {} is not done yet; wait for it again", frame.id);
      status = frame.deferred->status();
      break;
    case RunState::kSubmitted:
      status = frame.inference->wait(until);
      if (status.code() == Code::kTimeout && !frame.inference->done()) return status;
      break;
  }
  if (status.code() == Code::kTimeout && frame.timeout > Duration{0})
    status = over_time(frame, status);
  end_run(frame, status);
  note_end(frame, status);
  return status;
}

/// What was over its time, and whose limit that was: the device knows the core and what became of
/// it.
Status Runs::over_time(const Frame& frame, const Status& status) const {
  return status.wrap(fmt::format(
      "the run of program '{}' was over its {} ms ({}); raise the limit if the program may take "
      "longer, else its core hung: the next run starts anew",
      facts_.description->name, frame.timeout / std::chrono::milliseconds(1),
      frame.own_timeout ? "timeout_ms" : kTimeoutVariable));
}

/// Waits for all, also after one failed: their memory must be free.
Status Runs::complete_all() {
  Status first;
  for (Frame& frame : frames_) {
    Status status = complete(frame);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

/// Once for each run: queries answer from what is stored here while the frame runs again.
void Runs::note_end(Frame& frame, const Status& status) {
  frame.result = status;
  if (!frame.checked.empty()) check_after_run(frame);
  if (!status.ok()) {
    auto& place = failed_[next_failed_++ % failed_.size()];
    forgotten_ = std::max(forgotten_, place.first);
    place = {frame.id, status};
    queries_.set_run(frame.context.record(), {}, std::nullopt);
    return;
  }
  std::optional<std::vector<device::LayerTime>> layers;
  if (facts_.has(RKNN_FLAG_COLLECT_PERF_MASK) || log::enabled(log::Level::kLayers))
    if (auto times = frame.context.layer_times()) layers = *std::move(times);
  queries_.set_run(frame.context.record(), open_shapes(frame, *facts_.description),
                   std::move(layers));
  if (log::enabled(log::Level::kLayers)) log_run(facts_, queries_, io_memory_, frame);
}

/// First the fences, without the lock that a waiting run may hold; then the lock, for good.
void Runs::close() {
  std::vector<std::shared_ptr<device::Fence>> fences;
  {
    const MutexLock lock(fence_mutex_);
    closing_ = true;
    fences.swap(in_fences_);
  }
  // A run that waits for a fence of its caller may never end by itself.
  for (const auto& fence : fences)
    fence->signal(
        error(Code::kCancelled, "the context was destroyed before the fence was signalled"));
  mutex_.close(facts_.number);
  for (Frame& frame : frames_) {
    if (check::enabled() && frame.running())
      check::report(edge::current_call(),
                    "the context is destroyed while nobody has waited for frame {}", frame.id);
    if (frame.state == RunState::kSubmitted) {
      frame.inference->cancel();
      (void)frame.inference->wait();
      frame.state = RunState::kAbandoned;
    } else if (frame.state == RunState::kDeferred) {
      end_run(frame, {});
    }
    if (frame.inference && io_memory_.binds()) frame.inference->wait_released();
    frame.inference.reset();
    frame.state = RunState::kOver;
    check_after_run(frame);
  }
  if (check::enabled()) {
    io_memory_.check_close();
    for (void* buffer : buffers_.malloced) check::buffer_left(buffer);
  }
  mutex_.unlock();
}

}  // namespace corelane::rknn
