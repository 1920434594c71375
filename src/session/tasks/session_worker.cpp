#include "session/tasks/session_worker.h"

#include <algorithm>
#include <iterator>

#include "base/later.h"
#include "base/leaked.h"
#include "corelane/tensor/convert.h"
#include "runtime/program/shape_choice.h"

namespace corelane::session {
namespace {

/// The caller may leave out, or open, what only the run tells, or bind more of it.
Status check_bound(const TensorDesc& output, const Shape& result, const Shape& bound) {
  if (bound.rank() == 0 || !bound.is_static() || runtime::fits_in(result, bound)) return {};
  return error(Code::kShapeMismatch, "output '{}' is {}, the bound memory is {}", output.name,
               result.to_string(), bound.to_string())
      .with(Detail::kOutput, output.name)
      .with(Detail::kGiven, bound.to_string())
      .with(Detail::kAllowed, result.to_string());
}

/// A view that has the tensor's shape until it is gone: a copy would be an allocation of each run.
struct LentView {
  explicit LentView(Tensor& t)
      : tensor(t),
        view{t.data.get(), t.size, t.dtype, std::move(t.shape), t.layout, std::move(t.quant)} {}
  ~LentView() {
    tensor.shape = std::move(view.shape);
    tensor.quant = std::move(view.quant);
  }
  LentView(const LentView&) = delete;
  LentView& operator=(const LentView&) = delete;

  Tensor& tensor;
  MutableTensorView view;
};

}  // namespace

SessionWorker::SessionWorker(Context context, const SessionModel& model,
                             const SessionOptions& options, device::CoreSet cores,
                             std::int32_t core, std::size_t index)
    : context_(std::move(context)),
      model_(model),
      options_(options),
      cores_(cores),
      core_(core),
      index_(index),
      outputs_(context_.outputs()),
      bound_(outputs_.size()),
      wanted_(outputs_.size()) {
  // The shapes of now, which may differ from the declared ones.
  for (const TensorDesc& desc : context_.inputs()) shapes_.push_back(desc.shape);
}

Status SessionWorker::set_limits(RunOptions& options, TimePoint deadline, const Clock& clock) {
  options.cores = wide_.value_or(cores_);
  const bool limited = options_.run_timeout > Duration{0};
  if (deadline == kNever && !limited) return {};
  const TimePoint now = clock.now();
  if (limited) run_end_ = later(now, options_.run_timeout);
  // What is left of it: the runtime counts from the submission.
  options.timeout = std::min(deadline, run_end_) - now;
  if (options.timeout > Duration{0}) return {};
  return error(Code::kTimeout, "the task's time was over before it started");
}

Status SessionWorker::choose_shapes(const Call& call) {
  if (!model_.has_open_shapes()) return {};
  const auto shape = [](const CallInput& input) -> const Shape& { return input.view.shape; };
  if (std::ranges::equal(call.inputs, shapes_, {}, shape)) return {};
  std::vector<Shape> shapes;
  std::ranges::transform(call.inputs, std::back_inserter(shapes), shape);
  // Old bindings may be of freed memory: they must not be kept for new shapes.
  std::fill(wanted_.begin(), wanted_.end(), false);
  CORELANE_TRY(unbind_unwanted());
  CORELANE_TRY(context_.set_input_shapes(shapes));
  shapes_ = std::move(shapes);
  outputs_ = context_.outputs();
  return {};
}

Status SessionWorker::unbind_unwanted() {
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    if (!bound_[i] || wanted_[i]) continue;
    CORELANE_TRY(context_.unbind_output(i));
    bound_[i] = false;
  }
  return {};
}

Status SessionWorker::bind_inputs(const Call& call) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const CallInput& input = call.inputs[i];
    if (input.buffer != nullptr) {
      CORELANE_TRY(context_.bind_input(i, input.buffer, input.offset));
      continue;
    }
    // Mean and std are applied once.
    static Leaked<const ConvertOptions> as_it_is;
    const ConvertOptions& convert = input.captured ? *as_it_is : model_.convert(i);
    CORELANE_TRY(context_.bind_input(i, input.view, convert));
  }
  return {};
}

Status SessionWorker::bind_memory(CallOutput& output) {
  if (output.buffer != nullptr)
    return context_.bind_output(output.index, output.buffer, output.offset);
  const LentView lent(output.tensor);
  return context_.bind_output(output.index, lent.view);
}

Status SessionWorker::bind_output(CallOutput& output) {
  const std::size_t i = output.index;
  const TensorDesc& desc = outputs_[i];
  if (output.given) {
    if (desc.shape.is_static()) CORELANE_TRY(check_bound(desc, desc.shape, output.tensor.shape));
    bound_[i] = true;
    return bind_memory(output);
  }
  if (!desc.shape.is_static()) {  // Known after the run.
    if (bound_[i]) CORELANE_TRY(context_.unbind_output(i));
    bound_[i] = false;
    return {};
  }
  CORELANE_ASSIGN(output.tensor,
                  pool_.allocate(desc.name, model_.result_dtype(i, desc.dtype), desc.shape));
  output.tensor.quant = model_.result_quant(i);
  bound_[i] = true;
  return bind_memory(output);
}

Status SessionWorker::bind(Call& call) {
  CORELANE_TRY(choose_shapes(call));
  CORELANE_TRY(bind_inputs(call));
  // Usually all outputs are wanted, and none is to be unbound.
  if (call.outputs.size() != outputs_.size()) {
    std::fill(wanted_.begin(), wanted_.end(), false);
    for (const CallOutput& output : call.outputs) wanted_[output.index] = true;
    CORELANE_TRY(unbind_unwanted());
  }
  for (CallOutput& output : call.outputs) CORELANE_TRY(bind_output(output));
  return {};
}

Status SessionWorker::bind_or_renew(Call& call) {
  Status status = bind(call);
  if (status.code() != Code::kBusy) return status;
  // An abandoned inference keeps this context.
  CORELANE_ASSIGN(context_, context_.duplicate());
  std::fill(bound_.begin(), bound_.end(), false);
  return bind(call);
}

Status SessionWorker::of_run(Status status, TimePoint deadline, const Clock& clock) {
  switch (status.code()) {
    case Code::kTimeout:
      if (deadline != kNever && clock.now() >= deadline) return status;
      break;
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kOutOfRange:
    case Code::kWrongState:
    case Code::kUnsupported:
      break;
    default:
      return status;
  }
  return status.wrap(Code::kEngineFailed, "the device failed the run");
}

Status SessionWorker::ended(Status status, TimePoint deadline, const Clock& clock) const {
  const bool over =
      status.code() == Code::kTimeout && run_end_ < deadline && clock.now() >= run_end_;
  if (!over) return of_run(std::move(status), deadline, clock);
  return status.wrap(fmt::format(
      "the run was over the {} ms of {}; raise it if the model may take longer, else "
      "its core hung: later runs start anew",
      options_.run_timeout / std::chrono::milliseconds(1), options_.load.timeout_option));
}

Result<Inference> SessionWorker::start(Call& call, RunOptions options, TimePoint deadline,
                                       const Clock& clock) {
  CORELANE_TRY(bind_or_renew(call));
  CORELANE_TRY(set_limits(options, deadline, clock));
  Result<Inference> inference = context_.submit(options);
  if (!inference) return error(ended(inference.error(), deadline, clock));
  return inference;
}

Status SessionWorker::run(Call& call, RunOptions options, TimePoint deadline, const Clock& clock) {
  times_ = {};
  CORELANE_TRY(bind_or_renew(call));
  CORELANE_TRY(set_limits(options, deadline, clock));
  Status status = context_.run(options);
  times_ = context_.times();
  return ended(std::move(status), deadline, clock);
}

Status SessionWorker::collect(Call& call) {
  for (CallOutput& output : call.outputs) {
    const std::size_t i = output.index;
    const TensorDesc& desc = outputs_[i];
    if (desc.shape.is_static() && output.buffer == nullptr) continue;
    CORELANE_ASSIGN(const TensorView result, context_.output(i));
    if (output.given) {  // Written in place; now its shape is known.
      CORELANE_TRY(check_bound(desc, result.shape, output.tensor.shape));
      output.tensor.shape = result.shape;
      continue;
    }
    CORELANE_ASSIGN(output.tensor,
                    pool_.allocate(desc.name, model_.result_dtype(i, result.dtype), result.shape));
    output.tensor.quant = model_.result_quant(i);
    output.tensor.value = desc.value;
    const Status status = corelane::convert(result, output.tensor.mutable_view());
    if (!status.ok()) return status.wrap("output '" + desc.name + "'");
  }
  return {};
}

}  // namespace corelane::session
