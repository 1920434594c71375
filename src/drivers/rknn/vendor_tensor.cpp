#include "drivers/rknn/vendor_tensor.h"

#include <algorithm>
#include <limits>
#include <string>

namespace corelane::drivers::rknn {
namespace {

struct Pair {
  rknn_tensor_type type;
  DType dtype;
};
/// Types that this device passes both ways.
constexpr Pair kPairs[] = {{RKNN_TENSOR_FLOAT32, DType::kF32},   {RKNN_TENSOR_FLOAT16, DType::kF16},
                           {RKNN_TENSOR_BFLOAT16, DType::kBF16}, {RKNN_TENSOR_INT8, DType::kI8},
                           {RKNN_TENSOR_UINT8, DType::kU8},      {RKNN_TENSOR_INT16, DType::kI16},
                           {RKNN_TENSOR_UINT16, DType::kU16},    {RKNN_TENSOR_INT32, DType::kI32},
                           {RKNN_TENSOR_UINT32, DType::kU32},    {RKNN_TENSOR_INT64, DType::kI64},
                           {RKNN_TENSOR_BOOL, DType::kBool}};

/// The name of a tensor: the library need not have ended it.
std::string name_of(const rknn_tensor_attr& attr) {
  return {attr.name, std::find(attr.name, attr.name + sizeof(attr.name), '\0')};
}

bool is_nhwc(const rknn_tensor_attr& attr) {
  return number_in(attr.fmt) == RKNN_TENSOR_NHWC && attr.n_dims == 4;
}

/// Elements are reals: floats, and small integers with a quantization.
bool stands_for_reals(const rknn_tensor_attr& attr, DType dtype) {
  if (is_float(dtype)) return true;
  const bool small = dtype_bits(dtype) <= 16 && is_integer(dtype);
  return small && number_in(attr.qnt_type) != RKNN_TENSOR_QNT_NONE;
}

/// Whether elements of the one, in order, are those of the other: of shapes of one rank only where
/// no more than dimensions of 1 lie elsewhere. 480x640 is not 640x480.
bool same_elements(const Shape& declared, const Shape& reported) {
  if (declared.rank() != reported.rank()) return declared.elements() == reported.elements();
  std::vector<std::int64_t> ours = declared.dims();
  std::vector<std::int64_t> theirs = reported.dims();
  std::erase(ours, 1);
  std::erase(theirs, 1);
  return ours == theirs;
}

/// What both directions share: name, shape, and the type that is offered.
Result<Port> start(const rknn_tensor_attr& attr, const TensorDesc* declared, const char* what) {
  Port port;
  port.attr = attr;
  const auto own = dtype_of(number_in(attr.type));
  if (!own)
    return error(Code::kUnsupported, "{} '{}' is of element type {}, which this device cannot pass",
                 what, name_of(attr), number_in(attr.type));
  CORELANE_ASSIGN(const Shape shape, shape_of(attr));
  port.desc.name = name_of(attr);
  port.desc.shape = shape;
  port.shape = shape;
  port.desc.dtype = stands_for_reals(attr, *own) ? DType::kF32 : *own;
  if (declared != nullptr) {
    if (declared->shape.is_static() && !same_elements(declared->shape, shape))
      return error(Code::kShapeMismatch,
                   "{} '{}' is declared as {}, but the library reports '{}' as {}; compile or "
                   "attach the image again",
                   what, declared->name, declared->shape.to_string(), name_of(attr),
                   shape.to_string());
    port.desc.name = declared->name;
    port.desc.dtype = declared->dtype;
    if (declared->shape.is_static()) port.desc.shape = declared->shape;
  }
  return port;
}

/// Sizes, once type and layout are decided.
Result<Port> finish(Port port, const char* what) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  CORELANE_ASSIGN(port.bytes, port.desc.bytes());
  CORELANE_ASSIGN(port.wire_bytes, storage_bytes(port.shape, port.wire_dtype, port.wire_layout));
  if (port.wire_bytes > kMost || port.bytes > kMost)
    return error(Code::kUnsupported, "{} '{}' of {} bytes; the RKNN API carries at most {}", what,
                 port.desc.name, std::max(port.wire_bytes, port.bytes), kMost);
  return port;
}

Status type_mismatch(const Port& port, const char* what) {
  return error(Code::kTypeMismatch,
               "{} '{}' is declared as {}, which the library cannot pass for its {} tensor", what,
               port.desc.name, dtype_name(port.desc.dtype), get_type_string(port.attr.type));
}

}  // namespace

std::optional<DType> dtype_of(int type) noexcept {
  for (const Pair& pair : kPairs)
    if (pair.type == type) return pair.dtype;
  return std::nullopt;
}

std::optional<rknn_tensor_type> type_of(DType dtype) noexcept {
  for (const Pair& pair : kPairs)
    if (pair.dtype == dtype) return pair.type;
  return std::nullopt;
}

/// Attributes come from outside: ranks and dimensions are checked before they are used.
Result<Shape> shape_of(const rknn_tensor_attr& attr) {
  if (attr.n_dims > RKNN_MAX_DIMS)
    return error(Code::kMalformed, "tensor '{}' is reported with {} dimensions; at most {} can be",
                 name_of(attr), attr.n_dims, RKNN_MAX_DIMS);
  if (number_in(attr.fmt) == RKNN_TENSOR_NC1HWC2)
    return error(Code::kUnsupported, "tensor '{}' is reported in the blocked layout NC1HWC2",
                 name_of(attr));
  std::vector<std::int64_t> dims(attr.dims, attr.dims + attr.n_dims);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end())
    return error(Code::kMalformed, "tensor '{}' is reported as {}; every dimension is 1 at least",
                 name_of(attr), Shape(std::move(dims)).to_string());
  if (is_nhwc(attr)) dims = {dims[0], dims[3], dims[1], dims[2]};
  Shape shape(std::move(dims));
  if (!shape.elements())
    return error(Code::kMalformed, "tensor '{}' is reported as {}, too many elements",
                 name_of(attr), shape.to_string());
  return shape;
}

Result<rknn_tensor_attr> reshaped(const rknn_tensor_attr& like, const Shape& shape) {
  if (shape.rank() != like.n_dims)
    return error(Code::kShapeMismatch, "input '{}' was given shape {}; it has {} dimensions",
                 name_of(like), shape.to_string(), like.n_dims);
  rknn_tensor_attr attr = like;
  std::vector<std::int64_t> dims = shape.dims();
  if (is_nhwc(like)) dims = {dims[0], dims[2], dims[3], dims[1]};
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 1 || dims[d] > std::numeric_limits<std::int32_t>::max())
      return error(Code::kShapeMismatch,
                   "input '{}' was given shape {}; every dimension must be given, from 1 on",
                   name_of(like), shape.to_string());
    attr.dims[d] = static_cast<std::uint32_t>(dims[d]);
  }
  return attr;
}

Result<Port> input_port(const rknn_tensor_attr& attr, const TensorDesc* declared) {
  CORELANE_ASSIGN(Port port, start(attr, declared, "input"));
  const auto type = type_of(port.desc.dtype);
  const bool real = is_float(port.desc.dtype) && is_float(*dtype_of(attr.type));
  // Reals go to floats and to quantised tensors; everything else only to its own kind, but for
  // bytes, which the library takes as pixels.
  const bool fits =
      port.desc.dtype == dtype_of(attr.type) || real ||
      (port.desc.dtype == DType::kF32 && stands_for_reals(attr, *dtype_of(attr.type))) ||
      port.desc.dtype == DType::kU8;
  if (!type || !fits) return error(type_mismatch(port, "input"));
  port.type = *type;
  port.wire_dtype = port.desc.dtype;
  if (declared != nullptr) {
    if (is_nhwc(attr)) port.wire_layout.kind = LayoutKind::kNHWC;
  } else if (attr.n_dims == 4 && number_in(attr.fmt) != RKNN_TENSOR_UNDEFINED) {
    port.fmt = RKNN_TENSOR_NCHW;
  }
  return finish(std::move(port), "input");
}

/// As f32 wherever the tensor stands for reals: the library knows its quantization best.
Result<Port> output_port(const rknn_tensor_attr& attr, const TensorDesc* declared) {
  CORELANE_ASSIGN(Port port, start(attr, declared, "output"));
  const DType own = *dtype_of(attr.type);
  port.as_float = port.desc.dtype != own || own == DType::kF32;
  if (port.as_float && (!is_float(port.desc.dtype) || !stands_for_reals(attr, own)))
    return error(type_mismatch(port, "output"));
  port.wire_dtype = port.as_float ? DType::kF32 : own;
  // As floats the library gives model order; raw elements are in the reported order.
  if (!port.as_float && is_nhwc(attr)) port.wire_layout.kind = LayoutKind::kNHWC;
  return finish(std::move(port), "output");
}

Result<Port> as_nhwc(Port port) {
  port.fmt = RKNN_TENSOR_NHWC;
  port.wire_layout.kind = LayoutKind::kNHWC;
  return finish(std::move(port), "input");
}

}  // namespace corelane::drivers::rknn
