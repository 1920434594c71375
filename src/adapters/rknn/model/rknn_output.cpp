/// rknn_outputs_get and rknn_outputs_release.
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "adapters/rknn/model/rknn_model_facts.h"
#include "adapters/rknn/model/rknn_query.h"
#include "adapters/rknn/model/rknn_run.h"
#include "adapters/rknn/model/rknn_tensors.h"

namespace corelane::rknn {

namespace {

/// A count beyond the model's outputs is not that of the caller's array.
Outcome check_count(const ModelFacts& facts, std::uint32_t count) {
  const std::size_t outputs = facts.description->outputs.size();
  if (count <= outputs) return {};
  return outcome(RKNN_ERR_PARAM_INVALID, "{} outputs given, the model has {}", count, outputs);
}

/// Where the library allocates, the vendor's header says that what follows `is_prealloc` need not
/// be set, and clients leave `index` alone: then the outputs are meant in their order. Distinct
/// numbers are the caller's.
void number_outputs(const ModelFacts& facts, std::span<rknn_output> outputs) {
  const std::size_t known = facts.description->outputs.size();
  std::vector<bool> seen(known, false);
  bool distinct = true;
  bool all_known = true;
  for (const rknn_output& output : outputs) {
    if (output.is_prealloc != 0) return;
    all_known = all_known && output.index < known;
    if (output.index >= known) continue;
    distinct = distinct && !seen[output.index];
    seen[output.index] = true;
  }
  // Of some of the outputs, a number past the last is a mistake.
  if (all_known ? distinct : outputs.size() < known) return;
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].index = static_cast<std::uint32_t>(i);
}

/// Frees what copy_output() allocated; false for any other address, which stays.
bool free_buffer(OutputBuffers& buffers, rknn_output& output) {
  if (buffers.malloced.erase(output.buf) == 0) return false;
  check::buffer_back(output.buf);
  std::free(output.buf);
  output.buf = nullptr;
  return true;
}

/// A buffer that the context knows, or null.
void* take_buffer(OutputBuffers& buffers, std::size_t size) {
  constexpr auto give_back = [](void* buffer) {
    check::buffer_back(buffer);
    std::free(buffer);
  };
  std::unique_ptr<void, decltype(give_back)> buffer(std::malloc(size == 0 ? 1 : size));
  if (buffer == nullptr) return nullptr;
  check::buffer_given(buffer.get());
  buffers.malloced.insert(buffer.get());
  return buffer.release();
}

/// One result into memory of the caller, or into a new buffer: null where it fails before.
Status copy_output(const ModelFacts& facts, const Frame& frame, OutputBuffers& buffers,
                   rknn_output& output) {
  if (output.is_prealloc == 0) output.buf = nullptr;
  CORELANE_ASSIGN(const TensorView result, frame.context.output(output.index));
  const IoTensor io = facts.output(output.index, result.shape);
  const rknn_tensor_attr attr = normal_attr(io, facts.chip);
  const Form form{output.want_float != 0 ? RKNN_TENSOR_FLOAT32 : attr.type, attr.fmt, false, 0};
  CORELANE_ASSIGN(ViewPlan plan, plan_view(io, form, facts.chip));
  if (output.is_prealloc != 0) {
    if (output.buf == nullptr || output.size < plan.bytes)
      return error(Code::kInvalidArgument,
                   "output {} '{}' takes {} bytes as {}; is_prealloc is set, and buf is {} with "
                   "size {}",
                   output.index, io.entry->desc.name, plan.bytes, type_name(form.type), output.buf,
                   output.size);
  } else {
    output.buf = take_buffer(buffers, plan.bytes);
    if (output.buf == nullptr)
      return error(Code::kOutOfMemory, "no {} bytes for output {} '{}'", plan.bytes, output.index,
                   io.entry->desc.name);
  }
  output.size = static_cast<std::uint32_t>(plan.bytes);
  plan.view.data = output.buf;
  plan.view.size = plan.bytes;
  return convert(result, plan.view);
}

}  // namespace

/// All or nothing: where one output fails, the buffers of this call are freed.
Outcome Tensors::get_outputs(std::uint32_t count, rknn_output* outputs,
                             rknn_output_extend* extend) {
  if (outputs == nullptr || count == 0)
    return outcome(RKNN_ERR_PARAM_INVALID, "no outputs given; pass an array of rknn_output");
  if (Outcome bad = check_count(facts_, count); bad.code() != RKNN_SUCC) return bad;
  number_outputs(facts_, {outputs, count});
  for (std::uint32_t i = 0; i < count; ++i)
    if (outputs[i].index >= facts_.description->outputs.size())
      return outcome(RKNN_ERR_OUTPUT_INVALID,
                     "outputs[{}].index {} is past the last of {} outputs; set `index`", i,
                     outputs[i].index, facts_.description->outputs.size());
  const ContextLock lock(runs_.mutex());
  if (!lock.ok()) return lock.refused();
  Frame* const frame = runs_.result_frame();
  if (frame == nullptr)
    return outcome(RKNN_ERR_FAIL, "there is no result yet; call rknn_run before");
  // Both frames write to the memory that is bound: wait for the last, whose results it holds.
  if (facts_.asynchronous() && runs_.io_memory().binds_output()) (void)runs_.complete_all();
  if (const Status status = runs_.complete(*frame); !status.ok())
    return status.wrap(fmt::format("frame {} has no result", frame->id));
  CORELANE_TRY(runs_.io_memory().check_outputs_usable());
  OutputBuffers& buffers = runs_.buffers();
  for (std::uint32_t i = 0; i < count; ++i) {
    const Status status = copy_output(facts_, *frame, buffers, outputs[i]);
    if (status.ok()) continue;
    for (std::uint32_t k = 0; k <= i; ++k)
      if (outputs[k].is_prealloc == 0) (void)free_buffer(buffers, outputs[k]);
    return status;
  }
  if (extend != nullptr) extend->frame_id = frame->id;
  return {};
}

/// Goes on after a wrong address, so that the right ones are not leaked.
Outcome Tensors::release_outputs(std::uint32_t count, rknn_output* outputs) {
  if (outputs == nullptr && count != 0)
    return outcome(RKNN_ERR_PARAM_INVALID, "outputs is null; pass those of rknn_outputs_get");
  if (Outcome bad = check_count(facts_, count); bad.code() != RKNN_SUCC) return bad;
  const ContextLock lock(runs_.mutex());
  if (!lock.ok()) return lock.refused();
  OutputBuffers& buffers = runs_.buffers();
  Outcome result;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (outputs[i].is_prealloc != 0 || outputs[i].buf == nullptr) continue;
    if (!free_buffer(buffers, outputs[i]))
      result = outcome(RKNN_ERR_PARAM_INVALID,
                       "outputs[{}].buf {} is not a buffer that rknn_outputs_get of this context "
                       "gave, or was released before",
                       i, outputs[i].buf);
  }
  return result;
}

}  // namespace corelane::rknn
