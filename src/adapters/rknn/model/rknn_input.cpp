/// rknn_inputs_set: data of the caller into the context's own input memory.
#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/model/rknn_model_facts.h"
#include "adapters/rknn/model/rknn_query.h"
#include "adapters/rknn/model/rknn_run.h"
#include "adapters/rknn/model/rknn_tensors.h"

namespace corelane::rknn {
namespace {

/// Checks the size that every buffer must have, with pass_through or without.
Status check_buffer(const IoTensor& io, const rknn_input& input) {
  const std::string& name = io.entry->desc.name;
  if (input.buf == nullptr)
    return error(Code::kInvalidArgument, "input {} '{}': buf is null", io.index, name);
  const Result<DType> dtype = dtype_of(input.type);
  if (!dtype) return dtype.error().wrap(fmt::format("input {} '{}'", io.index, name));
  const std::size_t needed = dtype_bytes(*dtype, io.shape.elements().value_or(0));
  if (input.size < needed)
    return error(Code::kInvalidArgument,
                 "param input size({}) < model input size({}): input {} '{}' takes {} elements, "
                 "{} bytes as {}{}",
                 input.size, needed, io.index, name, io.shape.elements().value_or(0), needed,
                 type_name(input.type),
                 input.type == RKNN_TENSOR_FLOAT32
                     ? "; a zeroed rknn_input says FLOAT32: set `type` to that of the data"
                     : "");
  return {};
}

/// Checks the buffer and plans how it becomes the input; the input is not written yet.
Outcome plan_input(const IoTensor& io, const rknn_input& input, const Chip& chip, ViewPlan& plan) {
  const bool pass_through = input.pass_through != 0;
  const Form form = pass_through ? native_form(io, chip) : Form{input.type, input.fmt, false, 0};
  CORELANE_ASSIGN(plan, plan_view(io, form, chip));
  CORELANE_TRY(check_buffer(io, input));
  if (input.size < plan.bytes && pass_through)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "input {} '{}': pass_through takes the native form, {} bytes with rows of {} "
                   "pixels; size is {}",
                   io.index, io.entry->desc.name, plan.bytes, form.w_stride, input.size);
  if (input.size < plan.bytes)
    return outcome(
        RKNN_ERR_PARAM_INVALID,
        "input {} '{}' takes {} bytes in NC1HWC2, whose last block of channels is whole; "
        "size is {}",
        io.index, io.entry->desc.name, plan.bytes, input.size);
  plan.view.data = input.buf;
  plan.view.size = input.size;
  return {};
}

}  // namespace

Outcome Tensors::set_inputs(std::uint32_t count, const rknn_input* inputs) {
  const std::size_t known = facts_.description->inputs.size();
  if (inputs == nullptr || count == 0)
    return outcome(RKNN_ERR_PARAM_INVALID, "no inputs given; pass an array of rknn_input");
  if (count > known)
    return outcome(RKNN_ERR_PARAM_INVALID, "{} inputs given, the model has {}", count, known);
  const ContextLock lock(runs_.mutex());
  if (!lock.ok()) return lock.refused();
  CORELANE_TRY(runs_.ready());
  Frame& frame = runs_.next_frame();
  // A run in progress reads this memory.
  const bool ran = frame.running();
  if (const Status status = runs_.complete(frame); ran && !status.ok())
    log::line(log::Level::kWarn, "rknn_inputs_set: the run before failed: {}", status.to_string());
  std::vector<std::pair<IoTensor, ViewPlan>> plans(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (inputs[i].index >= known)
      return outcome(RKNN_ERR_INPUT_INVALID, "inputs[{}].index {} is past the last of {} inputs", i,
                     inputs[i].index, known);
    auto& [io, plan] = plans[i];
    io = queries_.input(inputs[i].index);
    if (Outcome bad = plan_input(io, inputs[i], facts_.chip, plan); bad.code() != RKNN_SUCC)
      return bad;
  }
  // Another run may be using the memory that is bound where data are set now.
  if (facts_.asynchronous() && runs_.io_memory().binds()) (void)runs_.complete_all();
  runs_.begin_inputs();
  for (const auto& [io, plan] : plans) {
    CORELANE_TRY(frame.context.set_input(io.index, plan.view, plan.convert));
    runs_.io_memory().forget_input(io.index);
    runs_.note_input(frame, io.index);
  }
  return {};
}

}  // namespace corelane::rknn
