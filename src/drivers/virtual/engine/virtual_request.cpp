#include "drivers/virtual/engine/virtual_request.h"

#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "drivers/virtual/engine/heap_growth.h"
#include "drivers/virtual/engine/request_errors.h"
#include "drivers/virtual/engine/virtual_program.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// True when the engine has this memory in this shape already.
bool same_memory(const device::TensorRef& a, const device::TensorRef& b) {
  return a.data == b.data && a.shape == b.shape;
}

/// Frames of their own, this one and infer(): tools/sanitizers/tsan.supp names infer() to leave out
/// what lies below this call.
[[gnu::noinline]] void call_engine(ov::InferRequest& request, bool through_queue) {
  if (through_queue) {
    request.start_async();
    request.wait();
  } else {
    request.infer();
  }
}

/// The caller's memory or, where there is none, a new tensor's. It replaces the tensor that the
/// request was made with, which would double the memory of every context.
ov::Tensor wrap(const TensorDesc& desc, const device::TensorRef& tensor) {
  if (tensor.data == nullptr) return {engine_type(desc.dtype), engine_shape(desc.shape)};
  return {engine_type(desc.dtype), engine_shape(tensor.shape), tensor.data};
}

/// Positions of the tensors with open dimensions.
std::vector<std::size_t> open_ones(const std::vector<TensorDesc>& descs) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < descs.size(); ++i)
    if (!descs[i].shape.is_static()) result.push_back(i);
  return result;
}

}  // namespace

VirtualRequest::VirtualRequest(std::shared_ptr<VirtualProgram> program,
                               std::shared_ptr<const CompiledCopy> copy)
    : program_(std::move(program)),
      copy_(std::move(copy)),
      inputs_(program_->inputs().size()),
      outputs_(program_->outputs().size()),
      open_inputs_(open_ones(program_->inputs())),
      open_outputs_(open_ones(program_->outputs())) {}

Result<std::unique_ptr<device::LaneRequest>> VirtualRequest::create(
    std::shared_ptr<VirtualProgram> program, std::shared_ptr<const CompiledCopy> copy,
    bool never_throws) {
  try {
    std::unique_ptr<VirtualRequest> request(
        new VirtualRequest(std::move(program), std::move(copy)));
    const CopySettings& settings = request->copy_->settings();
    // With one stream and one thread infer() runs here and swallows exceptions (network.h).
    request->through_queue_ = !never_throws && settings.streams == 1 && settings.threads == 1;
    ov::CompiledModel model = request->copy_->model();  // create_infer_request() is not const.
    request->request_ = model.create_infer_request();
    return request;
  } catch (...) {
    return error(status_of_exception(Code::kEngineFailed, "making a request of the engine"));
  }
}

/// An input that no node reads has no port: it is remembered, not passed on.
Status VirtualRequest::set_input(std::size_t index, const device::TensorRef& tensor) {
  if (index >= inputs_.size()) return bad_index("input", index, inputs_.size());
  Slot& slot = inputs_[index];
  if (same_memory(slot.bound, tensor)) {
    slot.bound.keep_alive = tensor.keep_alive;
    return {};
  }
  const int port = program_->engine_inputs()[index];
  const TensorDesc& desc = program_->inputs()[index];
  try {
    if (port >= 0 && (tensor.data != nullptr || desc.shape.is_static()))
      request_.set_input_tensor(static_cast<std::size_t>(port), wrap(desc, tensor));
    slot.bound = tensor;
    return {};
  } catch (...) {
    return status_of_exception(
        Code::kShapeMismatch,
        "input '" + desc.name + "' " + desc.shape.to_string() + " does not take this tensor");
  }
}

/// An open output is not bound: the engine must be free to allocate the size that comes out.
Status VirtualRequest::set_output(std::size_t index, const device::TensorRef& tensor) {
  if (index >= outputs_.size()) return bad_index("output", index, outputs_.size());
  Slot& slot = outputs_[index];
  const TensorDesc& desc = program_->outputs()[index];
  try {
    if (desc.shape.is_static() && slot.bound.data != tensor.data) {
      slot.own = {};
      request_.set_output_tensor(index, wrap(desc, {tensor.data, tensor.size, desc.shape, {}}));
    }
    slot.bound = tensor;
    return {};
  } catch (...) {
    return status_of_exception(
        Code::kShapeMismatch,
        "output '" + desc.name + "' " + desc.shape.to_string() + " does not take this memory");
  }
}

/// The engine itself would compute with shapes that contradict each other (see ShapeCheck). Shapes
/// that are the same as in the last run are not checked again.
Status VirtualRequest::check_inputs() {
  for (const std::size_t index : open_inputs_)
    if (inputs_[index].bound.data == nullptr)
      return error(Code::kWrongState, "input '{}' has open dimensions {} and no tensor is bound",
                   program_->inputs()[index].name, program_->inputs()[index].shape.to_string());
  if (open_inputs_.empty()) return {};
  bool known = !checked_.empty();
  checked_.resize(inputs_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Shape& declared = program_->inputs()[i].shape;
    const Shape& shape = declared.is_static() ? declared : inputs_[i].bound.shape;
    if (checked_[i] == shape && known) continue;
    checked_[i] = shape;
    known = false;
  }
  if (known) return {};
  const Status status = program_->check_shapes(checked_);
  if (!status.ok()) checked_.clear();
  return status;
}

/// A custom operator's failure comes as an exception's text; the table has the Status for it.
[[gnu::noinline]] Status VirtualRequest::infer() {
  try {
    call_engine(request_, through_queue_);
    return {};
  } catch (const std::exception& e) {
    if (HostOperators* operators = program_->host_operators())
      if (Status status = operators->take(e.what()); !status.ok()) return status;
    return status_of_exception(Code::kEngineFailed, "the engine failed while it ran the job");
  } catch (...) {
    return status_of_exception(Code::kEngineFailed, "the engine failed while it ran the job");
  }
}

/// Static programs run without any check. With open shapes the first run's growth of the heap
/// counts as the program's memory, which the engine does not report.
Status VirtualRequest::run(std::uint64_t) {
  const bool open = !open_inputs_.empty() || !open_outputs_.empty();
  if (!open) {
    ran_ = true;
    return infer();
  }
  CORELANE_TRY(check_inputs());
  const std::size_t before = measured_ ? 0 : heap_bytes();
  CORELANE_TRY(infer());
  if (!measured_) {
    const std::size_t after = heap_bytes();
    if (after > before) program_->note_run_memory(after - before);
    measured_ = true;
  }
  ran_ = true;
  return fetch_open_outputs();
}

/// Results whose size was not known before: they lie in the engine's memory, and are copied where
/// memory is bound. Nothing is written beyond its size.
Status VirtualRequest::fetch_open_outputs() {
  for (const std::size_t index : open_outputs_) {
    device::TensorRef& bound = outputs_[index].bound;
    try {
      const ov::Tensor result = request_.get_output_tensor(index);
      outputs_[index].own = result;
      if (bound.data == nullptr) continue;
      const Shape shape = shape_of(result.get_shape());
      if (result.get_byte_size() > bound.size)
        return memory_too_small(program_->outputs()[index], result.get_byte_size(), shape,
                                bound.size);
      if (result.get_byte_size() > 0)
        std::memcpy(bound.data, result.data(), result.get_byte_size());
    } catch (...) {
      return status_of_exception(Code::kEngineFailed,
                                 "output '" + program_->outputs()[index].name + "'");
    }
  }
  return {};
}

/// The engine's tensor is kept once it was asked for.
Result<device::TensorRef> VirtualRequest::output(std::size_t index) {
  if (index >= outputs_.size()) return error(bad_index("output", index, outputs_.size()));
  Slot& slot = outputs_[index];
  const TensorDesc& desc = program_->outputs()[index];
  const bool open = !desc.shape.is_static();
  if (open && !ran_) return error(no_shape_yet(desc));
  try {
    if (!slot.own && (open || slot.bound.data == nullptr))
      slot.own = request_.get_output_tensor(index);
    device::TensorRef result;
    result.shape = open ? shape_of(slot.own.get_shape()) : desc.shape;
    if (slot.bound.data != nullptr) {
      result.data = slot.bound.data;
      result.keep_alive = slot.bound.keep_alive;
      result.size = open ? slot.own.get_byte_size()
                         : dtype_bytes(desc.dtype, desc.shape.elements().value_or(0));
    } else {
      result.size = slot.own.get_byte_size();
      result.data = result.size == 0 ? nullptr : slot.own.data();
    }
    return result;
  } catch (...) {
    return error(status_of_exception(Code::kEngineFailed, "output '" + desc.name + "'"));
  }
}

Result<std::vector<device::LayerTime>> VirtualRequest::layer_times() const {
  if (!program_->profiled()) return error(not_profiled());
  if (!ran_) return error(Code::kWrongState, "no layer times before the first run");
  try {
    std::vector<device::LayerTime> times;
    for (const ov::ProfilingInfo& info : request_.get_profiling_info()) {
      device::LayerTime time;
      time.name = info.node_name;
      time.type = info.node_type;
      time.kernel = info.exec_type;
      time.dtype = kernel_dtype(info.exec_type);
      time.duration = std::chrono::duration_cast<Duration>(info.real_time);
      time.executed = info.status == ov::ProfilingInfo::Status::EXECUTED;
      times.push_back(std::move(time));
    }
    return times;
  } catch (...) {
    return error(status_of_exception(Code::kEngineFailed, "the engine's layer times"));
  }
}

/// From the ending of the kernel's name, in upper or lower case.
DType kernel_dtype(std::string_view kernel) noexcept {
  static constexpr std::array<std::pair<std::string_view, DType>, 16> kNames = {{
      {"FP32", DType::kF32},
      {"F32", DType::kF32},
      {"FP16", DType::kF16},
      {"F16", DType::kF16},
      {"BF16", DType::kBF16},
      {"I8", DType::kI8},
      {"U8", DType::kU8},
      {"I16", DType::kI16},
      {"U16", DType::kU16},
      {"I32", DType::kI32},
      {"U32", DType::kU32},
      {"I64", DType::kI64},
      {"U64", DType::kU64},
      {"I4", DType::kI4},
      {"U4", DType::kU4},
      {"BOOL", DType::kBool},
  }};
  const auto underscore = kernel.rfind('_');
  if (underscore == std::string_view::npos) return DType::kUndefined;
  const std::string_view ending = kernel.substr(underscore + 1);
  for (const auto& [name, dtype] : kNames) {
    if (ending.size() != name.size()) continue;
    bool equal = true;
    for (std::size_t i = 0; i < name.size(); ++i)
      equal &=
          name[i] == (ending[i] >= 'a' && ending[i] <= 'z' ? ending[i] - 'a' + 'A' : ending[i]);
    if (equal) return dtype;
  }
  return DType::kUndefined;
}

}  // namespace corelane::drivers::virtual_npu
