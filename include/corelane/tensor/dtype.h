/// Element types: f32 f16 bf16 f64 i4 i8 u8 i16 u16 i32 u32 i64 u64 bool.
///
/// The numbers are stored in program files; adapters translate them. Sizes are in bits
/// because i4 packs two elements to a byte, the even element in the low nibble.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "corelane/base/api.h"

namespace corelane {

enum class DType : std::uint8_t {
  kUndefined = 0,
  kF32 = 1,
  kF16 = 2,   ///< IEEE-754 binary16.
  kBF16 = 3,  ///< The upper 16 bits of an f32.
  kI4 = 4,
  kI8 = 5,
  kU8 = 6,
  kI16 = 7,
  kU16 = 8,
  kI32 = 9,
  kU32 = 10,
  kI64 = 11,
  kU64 = 12,
  kBool = 13,  ///< One byte, 0 or 1.
  kF64 = 14,   ///< Only as input or output of a model; the engine computes in f32.
  kU4 = 15,
  kString = 16,  ///< Known from ONNX, refused by every device.
};

/// Bits of one element; 0 for kUndefined and kString.
CORELANE_API std::size_t dtype_bits(DType t) noexcept;
/// Bytes of `count` elements, the last byte of 4-bit types padded.
CORELANE_API std::size_t dtype_bytes(DType t, std::size_t count) noexcept;
/// "f32", "i8", ...; "undefined".
CORELANE_API std::string_view dtype_name(DType t) noexcept;
/// The inverse of dtype_name; also accepts "float32", "int8", "float16", "uint8", "boolean", ....
CORELANE_API std::optional<DType> dtype_from_name(std::string_view name) noexcept;
/// The number of the type in ONNX (TensorProto.DataType, 1 for f32); 0 for kUndefined.
CORELANE_API int onnx_type_of(DType t) noexcept;
/// The inverse of onnx_type_of; kUndefined for numbers of types that Corelane has none for.
CORELANE_API DType dtype_from_onnx(std::int64_t onnx_type) noexcept;
/// True for f16, bf16, f32 and f64.
CORELANE_API bool is_float(DType t) noexcept;
/// Integers of any width; not bool.
CORELANE_API bool is_integer(DType t) noexcept;

}  // namespace corelane
