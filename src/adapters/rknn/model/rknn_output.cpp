/// rknn_outputs_get and rknn_outputs_release.
#include <cstdlib>

#include "adapters/rknn/model/rknn_model.h"

namespace corelane::rknn {

Status ModelContext::copy_output(Frame& frame, rknn_output& output) {
  CORELANE_ASSIGN(const TensorView result, frame.context.output(output.index));
  const IoTensor io = output_tensor(output.index, result.shape);
  const rknn_tensor_attr attr = normal_attr(io, chip_);
  const Form form{output.want_float != 0 ? RKNN_TENSOR_FLOAT32 : attr.type, attr.fmt, false, 0};
  CORELANE_ASSIGN(ViewPlan plan, plan_view(io, form, chip_));
  if (output.is_prealloc != 0) {
    if (output.buf == nullptr || output.size < plan.bytes)
      return error(Code::kInvalidArgument,
                   "output {} '{}' takes {} bytes as {}; is_prealloc is set, and buf is {} with "
                   "size {}",
                   output.index, io.entry->desc.name, plan.bytes, type_name(form.type), output.buf,
                   output.size);
  } else {
    output.buf = std::malloc(plan.bytes == 0 ? 1 : plan.bytes);
    if (output.buf == nullptr)
      return error(Code::kOutOfMemory, "no {} bytes for output {} '{}'", plan.bytes, output.index,
                   io.entry->desc.name);
    given_out_.insert(output.buf);
    check::buffer_given(output.buf);
  }
  output.size = static_cast<std::uint32_t>(plan.bytes);
  plan.view.data = output.buf;
  plan.view.size = plan.bytes;
  return convert(result, plan.view);
}

Outcome ModelContext::get_outputs(std::uint32_t count, rknn_output* outputs,
                                  rknn_output_extend* extend) {
  if (outputs == nullptr || count == 0)
    return outcome(RKNN_ERR_PARAM_INVALID, "no outputs given; pass an array of rknn_output");
  if (count > description_->outputs.size())
    return outcome(RKNN_ERR_PARAM_INVALID, "{} outputs given, the model has {}", count,
                   description_->outputs.size());
  for (std::uint32_t i = 0; i < count; ++i)
    if (outputs[i].index >= description_->outputs.size())
      return outcome(RKNN_ERR_OUTPUT_INVALID,
                     "outputs[{}].index {} is behind the last of {} outputs; set `index`", i,
                     outputs[i].index, description_->outputs.size());
  const Order order(*this);
  if (!order.ok()) return order.refused();
  if (runs_ == 0) return outcome(RKNN_ERR_FAIL, "there is no result yet; call rknn_run before");
  // With ASYNC_MASK the results of the frame before the last one, but for the first.
  const std::size_t back = asynchronous() && runs_ > 1 ? 2 : 1;
  // Both frames write where outputs are bound: what is there is the last one's.
  if (asynchronous() && binds_outputs()) (void)settle_all();
  Frame& frame = frames_[(runs_ - back) % frames_.size()];
  if (Status status = settle(frame); !status.ok())
    return status.wrap(fmt::format("frame {} has no result", frame.id));
  if (Status status = check_bound(); !status.ok()) return status;
  std::vector<void*> made;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Status status = copy_output(frame, outputs[i]);
    if (outputs[i].is_prealloc == 0 && outputs[i].buf != nullptr) made.push_back(outputs[i].buf);
    if (status.ok()) continue;
    for (std::uint32_t k = 0; k <= i; ++k)
      if (outputs[k].is_prealloc == 0) outputs[k].buf = nullptr;
    for (void* buffer : made) {
      given_out_.erase(buffer);
      check::buffer_back(buffer);
      std::free(buffer);
    }
    return status;
  }
  if (extend != nullptr) extend->frame_id = frame.id;
  return {};
}

Outcome ModelContext::release_outputs(std::uint32_t count, rknn_output* outputs) {
  if (outputs == nullptr && count != 0)
    return outcome(RKNN_ERR_PARAM_INVALID, "outputs is null; pass those of rknn_outputs_get");
  const Order order(*this);
  if (!order.ok()) return order.refused();
  Outcome result;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (outputs[i].is_prealloc != 0 || outputs[i].buf == nullptr) continue;
    if (given_out_.erase(outputs[i].buf) == 0) {
      result = outcome(RKNN_ERR_PARAM_INVALID,
                       "outputs[{}].buf {} is none that rknn_outputs_get of this context gave, or "
                       "was released before",
                       i, outputs[i].buf);
      continue;
    }
    check::buffer_back(outputs[i].buf);
    std::free(outputs[i].buf);
    outputs[i].buf = nullptr;
  }
  return result;
}

}  // namespace corelane::rknn
