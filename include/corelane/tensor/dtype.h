/// Element types: f32 f16 bf16 f64 i4 i8 u8 i16 u16 i32 u32 i64 u64 bool, and types that are
/// carried from a caller to an engine and back without being read: f8 in five forms, f4, i2, u2.
///
/// The numbers are stored in program files; adapters translate them. Sizes are in bits because
/// types of 4 and 2 bits pack two and four elements to a byte, the first one in the low bits.
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
  // Carried, not read: is_opaque().
  kF8E4M3FN = 17,    ///< 8 bits, 4 of them exponent; no infinity.
  kF8E4M3FNUZ = 18,  ///< The same without a negative zero, its exponent biased by one more.
  kF8E5M2 = 19,      ///< 8 bits, 5 of them exponent, as the upper half of an f16.
  kF8E5M2FNUZ = 20,  ///< The same without infinity and negative zero, biased by one more.
  kF8E8M0 = 21,      ///< 8 bits of exponent: a power of two.
  kF4E2M1 = 22,      ///< 4 bits, 2 of them exponent.
  kI2 = 23,
  kU2 = 24,
};
/// How many element types there are, kUndefined among them.
inline constexpr std::size_t kDTypeCount = 25;

/// Bits of one element; 0 for kUndefined and kString.
CORELANE_API std::size_t dtype_bits(DType t) noexcept;
/// Bytes of `count` elements, the last byte of 4-bit and 2-bit types padded.
CORELANE_API std::size_t dtype_bytes(DType t, std::size_t count) noexcept;
/// "f32", "i8", "f8e4m3fn", ...; "undefined".
CORELANE_API std::string_view dtype_name(DType t) noexcept;
/// The inverse of dtype_name; also accepts "float32", "int8", "boolean", "float8_e4m3fn", ....
CORELANE_API std::optional<DType> dtype_from_name(std::string_view name) noexcept;
/// The number of the type in ONNX (TensorProto.DataType, 1 for f32); 0 for kUndefined.
CORELANE_API int onnx_type_of(DType t) noexcept;
/// The inverse of onnx_type_of; kUndefined for numbers of types that Corelane has none for.
CORELANE_API DType dtype_from_onnx(std::int64_t onnx_type) noexcept;
/// True for f16, bf16, f32 and f64: the floats that conversions read.
CORELANE_API bool is_float(DType t) noexcept;
/// Integers of 4 to 64 bits; not bool.
CORELANE_API bool is_integer(DType t) noexcept;
/// True for f8, f4, i2 and u2: no conversion reads or writes them, so that memory of such a tensor
/// has the tensor's own type.
CORELANE_API bool is_opaque(DType t) noexcept;

}  // namespace corelane
