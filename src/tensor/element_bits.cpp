#include "corelane/tensor/element_bits.h"

namespace corelane {
namespace {

/// How many elements lie in a byte.
Result<std::size_t> in_a_byte(DType dtype) {
  const std::size_t bits = dtype_bits(dtype);
  if (bits > 0 && bits <= 8) return 8 / bits;
  return error(Code::kUnsupported, "elements of {} do not lie in a byte", dtype_name(dtype));
}

constexpr std::byte mask_of(std::size_t bits) { return std::byte{0xFF} >> (8 - bits); }

}  // namespace

Result<ByteVector> unpack_bits(const TensorView& tensor) {
  CORELANE_ASSIGN(const std::size_t together, in_a_byte(tensor.dtype));
  if (tensor.layout != Layout{}) {
    return error(Code::kInvalidArgument, "elements of layout {} are not unpacked; use plain",
                 layout_name(tensor.layout.kind));
  }
  CORELANE_ASSIGN(const std::size_t bytes, storage_bytes(tensor.shape, tensor.dtype, {}));
  if (tensor.size < bytes || (tensor.data == nullptr && bytes > 0)) {
    return error(Code::kOutOfRange, "{} {} takes {} bytes, {} were given", dtype_name(tensor.dtype),
                 tensor.shape.to_string(), bytes, tensor.data == nullptr ? 0 : tensor.size);
  }
  const std::size_t bits = 8 / together;
  const auto* const from = static_cast<const std::byte*>(tensor.data);
  ByteVector elements(tensor.shape.elements().value_or(0));
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = from[i / together] >> (i % together * bits) & mask_of(bits);
  return elements;
}

Result<ByteVector> pack_bits(ByteSpan elements, DType dtype) {
  CORELANE_ASSIGN(const std::size_t together, in_a_byte(dtype));
  const std::size_t bits = 8 / together;
  ByteVector packed(dtype_bytes(dtype, elements.size()));
  for (std::size_t i = 0; i < elements.size(); ++i)
    packed[i / together] |= (elements[i] & mask_of(bits)) << (i % together * bits);
  return packed;
}

}  // namespace corelane
