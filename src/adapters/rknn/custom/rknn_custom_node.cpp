#include "adapters/rknn/custom/rknn_custom_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "adapters/rknn/model/rknn_attr.h"
#include "corelane/tensor/convert.h"

namespace corelane::rknn {
namespace {

template <class T>
ByteVector bytes_of(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return ByteVector(bytes.begin(), bytes.end());
}

void put_name(char* to, std::size_t room, std::string_view name) {
  const std::size_t length = std::min(name.size(), room - 1);
  if (length != 0) std::memcpy(to, name.data(), length);
  to[length] = '\0';
}

rknn_tensor_type callback_type(DType dtype) {
  return is_float(dtype) ? RKNN_TENSOR_FLOAT32 : type_of(dtype);
}

/// Elements are multiplied from `dims`, so that both agree where a rank is cut to the API's.
rknn_custom_op_tensor tensor_of(std::size_t index, std::string_view name, DType dtype,
                                const Shape& shape) {
  rknn_custom_op_tensor tensor{};
  rknn_tensor_attr& attr = tensor.attr;
  attr.index = static_cast<std::uint32_t>(index);
  put_name(attr.name, sizeof attr.name, name);
  attr.n_elems = 1;
  for (std::size_t i = 0; i < shape.rank() && i < RKNN_MAX_DIMS; ++i) {
    attr.dims[i] = static_cast<std::uint32_t>(std::max<std::int64_t>(shape[i], 0));
    attr.n_elems *= attr.dims[i];
  }
  attr.n_dims = static_cast<std::uint32_t>(std::min<std::size_t>(shape.rank(), RKNN_MAX_DIMS));
  if (attr.n_dims == 0) attr.n_dims = attr.dims[0] = 1;  // A scalar: the API has no rank 0.
  attr.fmt = shape.rank() == 4 ? RKNN_TENSOR_NCHW : RKNN_TENSOR_UNDEFINED;
  attr.type = callback_type(dtype);
  attr.qnt_type = RKNN_TENSOR_QNT_NONE;
  attr.scale = 1.0F;
  const DType stored = is_float(dtype) ? DType::kF32 : dtype;
  attr.size = static_cast<std::uint32_t>(dtype_bytes(stored, attr.n_elems));
  attr.size_with_stride = attr.size;
  tensor.mem.fd = -1;
  tensor.mem.size = attr.size;
  return tensor;
}

std::string_view name_at(const std::vector<TensorDesc>& descs, std::size_t i) {
  return i < descs.size() ? std::string_view(descs[i].name) : std::string_view();
}

/// True where the callback works on a float copy.
bool is_widened(DType dtype) { return is_float(dtype) && dtype != DType::kF32; }

Status check_rank(const device::HostOperatorCall& call, const char* what, std::size_t index,
                  const Shape& shape) {
  if (shape.rank() <= RKNN_MAX_DIMS) return {};
  return error(Code::kUnsupported, "{} {} of node '{}' has {} dimensions, this API has at most {}",
               what, index, call.name, shape.rank(), RKNN_MAX_DIMS);
}

MutableTensorView wide_view(ByteVector& memory, const Shape& shape, std::size_t elements) {
  memory.resize(dtype_bytes(DType::kF32, elements));
  return {memory.data(), memory.size(), DType::kF32, shape, {}, {}};
}

}  // namespace

/// Encoded once for each node: callbacks keep the pointers that answer() gives.
NodeAttributes::NodeAttributes(const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    Answer& answer = answers_[name];
    const auto give = [&](rknn_tensor_type type, auto values) {
      answer.type = type;
      answer.count = static_cast<std::uint32_t>(values.size());
      answer.data = bytes_of(values);
    };
    if (const auto* one = std::get_if<std::int64_t>(&value)) {
      give(RKNN_TENSOR_INT64, std::span(one, 1));
    } else if (const auto* real = std::get_if<float>(&value)) {
      give(RKNN_TENSOR_FLOAT32, std::span(real, 1));
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      give(RKNN_TENSOR_UINT8, std::span(text->data(), text->size()));
    } else if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) {
      give(RKNN_TENSOR_INT64, std::span(*ints));
    } else if (const auto* reals = std::get_if<std::vector<float>>(&value)) {
      give(RKNN_TENSOR_FLOAT32, std::span(*reals));
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      const auto joined = fmt::format("{}", fmt::join(*texts, std::string_view("\0", 1)));
      give(RKNN_TENSOR_UINT8, std::span(joined.data(), joined.size()));
    }
    answer.data.push_back(std::byte{0});  // Text ends with a zero, and no data is null.
  }
}

void NodeAttributes::answer(const char* name, rknn_custom_op_attr* out) const noexcept {
  const auto found = answers_.find(std::string_view(name, strnlen(name, RKNN_MAX_NAME_LEN)));
  if (found == answers_.end() || found->second.count == 0) return;
  out->dtype = found->second.type;
  out->n_elems = found->second.count;
  // The API has no way to say "read only".
  out->data = const_cast<std::byte*>(found->second.data.data());
}

void CallTensors::describe(const std::vector<TensorDesc>& inputs,
                           const std::vector<TensorDesc>& outputs) {
  const auto list = [](const std::vector<TensorDesc>& descs,
                       std::vector<rknn_custom_op_tensor>& to) {
    to.clear();
    for (const TensorDesc& desc : descs) {
      // An unknown tensor is described as float, without dimensions.
      const bool known = desc.dtype != DType::kUndefined && !is_opaque(desc.dtype);
      to.push_back(tensor_of(to.size(), desc.name, known ? desc.dtype : DType::kF32, desc.shape));
      if (known) continue;
      to.back().attr.n_dims = to.back().attr.n_elems = 0;
      to.back().attr.size = to.back().attr.size_with_stride = to.back().mem.size = 0;
    }
  };
  list(inputs, inputs_);
  list(outputs, outputs_);
}

Status CallTensors::fill(const device::HostOperatorCall& call,
                         const std::vector<TensorDesc>& inputs,
                         const std::vector<TensorDesc>& outputs) {
  inputs_.clear();
  outputs_.clear();
  wide_inputs_.resize(call.inputs.size());
  wide_outputs_.resize(call.outputs.size());
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorView& view = call.inputs[i];
    CORELANE_TRY(check_rank(call, "input", i, view.shape));
    rknn_custom_op_tensor tensor = tensor_of(i, name_at(inputs, i), view.dtype, view.shape);
    tensor.mem.virt_addr = const_cast<void*>(view.data);  // Callbacks only read inputs.
    if (is_widened(view.dtype) && tensor.attr.n_elems != 0) {
      const MutableTensorView wide = wide_view(wide_inputs_[i], view.shape, tensor.attr.n_elems);
      CORELANE_TRY(convert(view, wide));
      tensor.mem.virt_addr = wide.data;
    }
    inputs_.push_back(tensor);
  }
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const MutableTensorView& view = call.outputs[i];
    CORELANE_TRY(check_rank(call, "output", i, view.shape));
    rknn_custom_op_tensor tensor = tensor_of(i, name_at(outputs, i), view.dtype, view.shape);
    tensor.mem.virt_addr = view.data;
    if (is_widened(view.dtype) && tensor.attr.n_elems != 0)
      tensor.mem.virt_addr = wide_view(wide_outputs_[i], view.shape, tensor.attr.n_elems).data;
    outputs_.push_back(tensor);
  }
  return {};
}

/// FLOAT32 and integers were written in place.
Status CallTensors::store(const device::HostOperatorCall& call) {
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const MutableTensorView& view = call.outputs[i];
    const std::size_t elements = view.shape.elements().value_or(0);
    if (!is_widened(view.dtype) || elements == 0) continue;
    CORELANE_TRY(convert(wide_view(wide_outputs_[i], view.shape, elements), view));
  }
  return {};
}

}  // namespace corelane::rknn
