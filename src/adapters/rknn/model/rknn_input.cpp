/// rknn_inputs_set: data of the caller into the context's own input memory.
#include "adapters/rknn/model/rknn_model.h"

namespace corelane::rknn {
namespace {

/// The size that is asked of a buffer, whether or not its bytes pass through untouched.
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

}  // namespace

Outcome ModelContext::set_inputs(std::uint32_t count, const rknn_input* inputs) {
  if (inputs == nullptr || count == 0)
    return outcome(RKNN_ERR_PARAM_INVALID, "no inputs given; pass an array of rknn_input");
  if (count > description_->inputs.size())
    return outcome(RKNN_ERR_PARAM_INVALID, "{} inputs given, the model has {}", count,
                   description_->inputs.size());
  const Order order(*this);
  if (!order.ok()) return order.refused();
  if (Status status = ready(); !status.ok()) return status;
  Frame& frame = next_frame();
  // A run in progress reads this memory.
  const bool ran = open(frame);
  if (Status status = settle(frame); ran && !status.ok())
    log::line(log::Level::kWarn, "rknn_inputs_set: the run before failed: {}", status.to_string());
  std::vector<std::pair<IoTensor, ViewPlan>> plans;
  for (std::uint32_t i = 0; i < count; ++i) {
    const rknn_input& input = inputs[i];
    if (input.index >= description_->inputs.size())
      return outcome(RKNN_ERR_INPUT_INVALID, "inputs[{}].index {} is behind the last of {} inputs",
                     i, input.index, description_->inputs.size());
    const IoTensor io = current_input(input.index);
    const bool pass_through = input.pass_through != 0;
    const Form form = pass_through ? native_form(io, chip_) : Form{input.type, input.fmt, false, 0};
    auto plan = plan_view(io, form, chip_);
    if (!plan) return plan.error();
    if (Status status = check_buffer(io, input); !status.ok()) return status;
    if (pass_through && input.size < plan->bytes)
      return outcome(RKNN_ERR_PARAM_INVALID,
                     "input {} '{}': pass_through takes the native form, {} bytes with rows of {} "
                     "pixels; size is {}",
                     io.index, io.entry->desc.name, plan->bytes, form.w_stride, input.size);
    plan->view.data = input.buf;
    plan->view.size = input.size;
    plans.emplace_back(io, *std::move(plan));
  }
  // Another run may be using the memory that is bound where data are set now.
  if (asynchronous() && binds_memory()) (void)settle_all();
  // Nothing is written before everything was checked.
  ++age_;
  for (const auto& [io, plan] : plans) {
    const Status status = frame.context.set_input(io.index, plan.view, plan.convert);
    if (!status.ok()) return status;
    bound_inputs_[io.index].reset();
    frame.input_age[io.index] = age_;
    input_age_[io.index] = age_;
  }
  return {};
}

}  // namespace corelane::rknn
