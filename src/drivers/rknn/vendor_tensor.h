/// Inputs and outputs of an image as the library reports them, and as this device offers them.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"
#include "rknn_api.h"

namespace corelane::drivers::rknn {

/// One input or output: what the device offers, and how it travels through the API.
struct Port {
  rknn_tensor_attr attr{};  ///< As reported.
  TensorDesc desc;          ///< Model order, plain layout: what callers see.
  Shape shape;              ///< As reported, in model order; as many elements as `desc`.
  std::size_t bytes = 0;    ///< Of `desc`; fits 32 bits.
  /// Input: the element type that is handed over. Output: true takes f32 from the library, which
  /// dequantises; false takes the tensor's own type.
  rknn_tensor_type type = RKNN_TENSOR_FLOAT32;
  bool as_float = true;
  rknn_tensor_format fmt = RKNN_TENSOR_UNDEFINED;  ///< Input: the order that is said.
  /// The bytes the library gives or takes are in this form; where it is not that of `desc` the
  /// request converts.
  DType wire_dtype = DType::kF32;
  Layout wire_layout;
  std::size_t wire_bytes = 0;
  bool converts() const noexcept { return wire_dtype != desc.dtype || wire_layout != Layout{}; }
};

/// The number in a member of an attribute as the library has filled it: it need not be one of the
/// enumeration's, and is then undefined behaviour to read as such.
template <class E>
int number_in(const E& member) noexcept {
  int number = 0;
  static_assert(sizeof(number) == sizeof(member));
  std::memcpy(&number, &member, sizeof(number));
  return number;
}

/// `type` is the number of a rknn_tensor_type, or of none.
std::optional<DType> dtype_of(int type) noexcept;
std::optional<rknn_tensor_type> type_of(DType dtype) noexcept;

/// The shape in model order of a reported tensor: dimensions of NHWC are put back to N, C, H, W.
/// kUnsupported for a blocked layout or a rank that cannot be, kMalformed for an empty dimension.
Result<Shape> shape_of(const rknn_tensor_attr& attr);

/// An attribute of `shape` for rknn_set_input_shapes: `like` with the dimensions in its order.
/// kShapeMismatch when the rank differs.
Result<rknn_tensor_attr> reshaped(const rknn_tensor_attr& like, const Shape& shape);

/// The port of a reported input. Without `declared` it is offered as f32 where the tensor is
/// a float or stands for reals by a quantization, else as itself. A declared form is kept when it
/// has the reported shape, dimensions of 1 left out, or another rank and as many elements
/// (kShapeMismatch), and a type the API can carry (kTypeMismatch).
///
/// Declared inputs are the network's own: a mean and standard deviation were applied before, so
/// the library must not apply those of the image again. It leaves them out for the format
/// UNDEFINED, which means the order it reports. Of an image that declares nothing, f32 and bytes
/// mean what its compiler was configured for: pixels before normalisation.
Result<Port> input_port(const rknn_tensor_attr& attr, const TensorDesc* declared);
Result<Port> output_port(const rknn_tensor_attr& attr, const TensorDesc* declared);

/// The same port with its content handed over as NHWC, for images that refuse NCHW.
Result<Port> as_nhwc(Port port);

}  // namespace corelane::drivers::rknn
