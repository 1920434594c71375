/// Attributes of inputs and outputs as the API reports them, and the way back: from what a caller
/// says of its memory to a view of a tensor.
#pragma once

#include <cstdint>
#include <string>

#include "corelane/program/description.h"
#include "corelane/tensor/convert.h"
#include "corelane/tensor/desc.h"
#include "rknn_api.h"

namespace corelane::rknn {

struct Chip;

enum class Side : unsigned char { kInput, kOutput };

/// "input" or "output".
constexpr const char* side_name(Side side) noexcept {
  return side == Side::kInput ? "input" : "output";
}

/// One input or output: what the program says of it, its shape now, its place.
struct IoTensor {
  const IoEntry* entry = nullptr;
  Shape shape;  ///< Open dimensions count as 0.
  Side side = Side::kInput;
  std::uint32_t index = 0;
};

/// The type the API has for a dtype: f64 as FLOAT32, u64 as INT64, u4 as INT4.
rknn_tensor_type type_of(DType dtype) noexcept;
/// kInvalidArgument for a number that is not a type.
Result<DType> dtype_of(rknn_tensor_type type);
const char* type_name(rknn_tensor_type type) noexcept;

/// Drops the integer form of a tensor whose scales or zero points differ by channel, since an attr
/// has room for one of each. Clients then see, read and write FLOAT16.
void keep_one_scale(IoEntry& entry);

/// INPUT_ATTR and OUTPUT_ATTR: 4-D inputs as NHWC (bool, integers of 64 and 4 bits as NCHW), 4-D
/// outputs as NCHW, other ranks in model order, UNDEFINED.
rknn_tensor_attr normal_attr(const IoTensor& io, const Chip& chip);
/// NATIVE_*: 4-D inputs of 1, 3 or 4 channels as NHWC, other 4-D tensors as NC1HWC2 (5 dims); other
/// ranks as normal_attr().
rknn_tensor_attr native_attr(const IoTensor& io, const Chip& chip);
/// NATIVE_NHWC_*: 4-D tensors as NHWC.
rknn_tensor_attr native_nhwc_attr(const IoTensor& io, const Chip& chip);

/// False too where a caller's attr has more dimensions than the API.
bool same_dims(const rknn_tensor_attr& a, const rknn_tensor_attr& b) noexcept;

/// What a caller says of memory that holds a tensor.
struct Form {
  rknn_tensor_type type = RKNN_TENSOR_FLOAT32;
  rknn_tensor_format fmt = RKNN_TENSOR_UNDEFINED;
  bool pass_through = false;
  std::uint32_t w_stride = 0;  ///< Pixels of a row; 0: the width.
  std::uint32_t c2 = 0;        ///< NC1HWC2: channels of a block; 0: those of `type`.
};
/// C2 of an attr of rknn_set_io_mem, by its dims: of the tensor's own type, as native queries
/// report it, or of the type that the attr names. 0 where it says none. kInvalidArgument for other
/// dims.
Result<std::uint32_t> blocks_said(const rknn_tensor_attr& attr, const IoTensor& io,
                                  const Chip& chip);
/// The type of bytes that pass through and are said to be of `said`: integers of the width of the
/// tensor's own type, or of its integer form, are those.
rknn_tensor_type passed_type(const IoTensor& io, rknn_tensor_type said);
/// The native form in which bytes pass through untouched.
Form native_form(const IoTensor& io, const Chip& chip);

/// How memory in that form is read or written: dtype, layout and quantization of a view, with mean
/// and std where the form asks for them. Data and size are left to the caller.
struct ViewPlan {
  MutableTensorView view;
  ConvertOptions convert;
  std::size_t bytes = 0;  ///< Bytes that the view takes.
};
/// kTypeMismatch when the tensor is not offered in that type, kInvalidArgument for a layout it does
/// not have, kWrongState when dimensions are open.
Result<ViewPlan> plan_view(const IoTensor& io, const Form& form, const Chip& chip);

}  // namespace corelane::rknn
