#include "session/session_worker.h"

#include <algorithm>

#include "corelane/tensor/convert.h"

namespace corelane::session {

SessionWorker::SessionWorker(Context context, const SessionModel& model, device::CoreSet cores,
                             std::int32_t core, std::size_t index)
    : context_(std::move(context)),
      model_(model),
      cores_(cores),
      core_(core),
      index_(index),
      outputs_(context_.outputs()),
      bound_(outputs_.size()),
      wanted_(outputs_.size()) {
  for (const TensorDesc& desc : context_.inputs()) shapes_.push_back(desc.shape);
}

RunOptions SessionWorker::options_of(const CallTerms& terms) const {
  RunOptions options;
  options.cores = wide_.value_or(cores_);
  options.timeout = terms.timeout;
  options.priority = terms.priority;
  options.tag = terms.tag;
  return options;
}

Status SessionWorker::choose_shapes(const Call& call) {
  if (!model_.has_open_shapes()) return {};
  bool same = true;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const CallInput& input = call.inputs[i];
    same = same && (input.buffer != nullptr || input.view.shape == shapes_[i]);
  }
  if (same) return {};
  std::vector<Shape> shapes = shapes_;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].buffer == nullptr) shapes[i] = call.inputs[i].view.shape;
  }
  // Old bindings may be of freed memory: they must not be kept for new shapes.
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    if (!bound_[i]) continue;
    CORELANE_RETURN_IF_ERROR(context_.unbind_output(i));
    bound_[i] = false;
  }
  CORELANE_RETURN_IF_ERROR(context_.set_input_shapes(shapes));
  shapes_ = std::move(shapes);
  outputs_ = context_.outputs();
  return {};
}

Status SessionWorker::bind_inputs(const Call& call) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const CallInput& input = call.inputs[i];
    if (input.buffer != nullptr) {
      CORELANE_RETURN_IF_ERROR(context_.bind_input(i, input.buffer, input.offset));
      continue;
    }
    // Mean and std are applied once.
    static const ConvertOptions kAsItIs;
    const ConvertOptions& convert = input.captured ? kAsItIs : model_.convert(i);
    CORELANE_RETURN_IF_ERROR(context_.bind_input(i, input.view, convert));
  }
  return {};
}

Status SessionWorker::bind_output(CallOutput& output) {
  const std::size_t i = output.index;
  const TensorDesc& desc = outputs_[i];
  if (output.given) {
    bound_[i] = true;
    return output.buffer != nullptr ? context_.bind_output(i, output.buffer, output.offset)
                                    : context_.bind_output(i, output.tensor.mutable_view());
  }
  if (!desc.shape.is_static()) {  // Known after the run.
    if (bound_[i]) CORELANE_RETURN_IF_ERROR(context_.unbind_output(i));
    bound_[i] = false;
    return {};
  }
  CORELANE_ASSIGN_OR_STATUS(
      output.tensor, Tensor::allocate(desc.name, model_.result_dtype(i, desc.dtype), desc.shape));
  output.tensor.quant = model_.result_quant(i);
  bound_[i] = true;
  return context_.bind_output(i, output.tensor.mutable_view());
}

Status SessionWorker::bind(Call& call) {
  CORELANE_RETURN_IF_ERROR(choose_shapes(call));
  CORELANE_RETURN_IF_ERROR(bind_inputs(call));
  if (call.outputs.size() != outputs_.size()) {
    std::fill(wanted_.begin(), wanted_.end(), false);
    for (const CallOutput& output : call.outputs) wanted_[output.index] = true;
    for (std::size_t i = 0; i < bound_.size(); ++i) {
      if (!bound_[i] || wanted_[i]) continue;
      CORELANE_RETURN_IF_ERROR(context_.unbind_output(i));
      bound_[i] = false;
    }
  }
  for (CallOutput& output : call.outputs) CORELANE_RETURN_IF_ERROR(bind_output(output));
  return {};
}

Status SessionWorker::renew() {
  CORELANE_ASSIGN_OR_STATUS(context_, context_.duplicate());
  std::fill(bound_.begin(), bound_.end(), false);
  return {};
}

Result<Inference> SessionWorker::start(Call& call, const CallTerms& terms) {
  Status bound = bind(call);
  if (bound.code() == Code::kBusy) {
    CORELANE_TRY(renew());
    bound = bind(call);
  }
  CORELANE_TRY(bound);
  return context_.submit(options_of(terms));
}

Status SessionWorker::run(Call& call, const CallTerms& terms) {
  Status status = bind(call);
  if (status.code() == Code::kBusy) {
    CORELANE_RETURN_IF_ERROR(renew());
    status = bind(call);
  }
  if (!status.ok()) return status;
  return context_.run(options_of(terms));
}

Status SessionWorker::collect(Call& call, Duration& copied, const Clock& clock) {
  const bool in_place =
      std::all_of(call.outputs.begin(), call.outputs.end(), [&](const CallOutput& output) {
        return outputs_[output.index].shape.is_static() && output.buffer == nullptr;
      });
  if (in_place) return {};
  const TimePoint start = clock.now();
  for (CallOutput& output : call.outputs) {
    const std::size_t i = output.index;
    const TensorDesc& desc = outputs_[i];
    if (desc.shape.is_static() && output.buffer == nullptr) continue;
    CORELANE_ASSIGN_OR_STATUS(const TensorView result, context_.output(i));
    if (output.given) {  // Written in place; now its shape is known.
      output.tensor.shape = result.shape;
      continue;
    }
    CORELANE_ASSIGN_OR_STATUS(
        output.tensor,
        Tensor::allocate(desc.name, model_.result_dtype(i, result.dtype), result.shape));
    output.tensor.quant = model_.result_quant(i);
    const Status status = corelane::convert(result, output.tensor.mutable_view());
    if (!status.ok()) return status.wrap("output '" + desc.name + "'");
  }
  copied = clock.now() - start;
  return {};
}

}  // namespace corelane::session
