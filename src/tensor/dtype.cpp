#include "corelane/tensor/dtype.h"

#include <array>

namespace corelane {

namespace {

struct Row {
  DType type;
  std::size_t bits;
  int onnx;  ///< TensorProto.DataType of onnx.proto.
  std::string_view name;
  std::string_view alias;
};

constexpr std::array<Row, kDTypeCount> kRows = {{
    {DType::kUndefined, 0, 0, "undefined", "undefined"},
    {DType::kF32, 32, 1, "f32", "float32"},
    {DType::kF16, 16, 10, "f16", "float16"},
    {DType::kBF16, 16, 16, "bf16", "bfloat16"},
    {DType::kI4, 4, 22, "i4", "int4"},
    {DType::kI8, 8, 3, "i8", "int8"},
    {DType::kU8, 8, 2, "u8", "uint8"},
    {DType::kI16, 16, 5, "i16", "int16"},
    {DType::kU16, 16, 4, "u16", "uint16"},
    {DType::kI32, 32, 6, "i32", "int32"},
    {DType::kU32, 32, 12, "u32", "uint32"},
    {DType::kI64, 64, 7, "i64", "int64"},
    {DType::kU64, 64, 13, "u64", "uint64"},
    {DType::kBool, 8, 9, "bool", "boolean"},
    {DType::kF64, 64, 11, "f64", "float64"},
    {DType::kU4, 4, 21, "u4", "uint4"},
    {DType::kString, 0, 8, "string", "str"},
    // The longer names are those of ml_dtypes, which gives numpy these types.
    {DType::kF8E4M3FN, 8, 17, "f8e4m3fn", "float8_e4m3fn"},
    {DType::kF8E4M3FNUZ, 8, 18, "f8e4m3fnuz", "float8_e4m3fnuz"},
    {DType::kF8E5M2, 8, 19, "f8e5m2", "float8_e5m2"},
    {DType::kF8E5M2FNUZ, 8, 20, "f8e5m2fnuz", "float8_e5m2fnuz"},
    {DType::kF8E8M0, 8, 24, "f8e8m0", "float8_e8m0fnu"},
    {DType::kF4E2M1, 4, 23, "f4e2m1", "float4_e2m1fn"},
    {DType::kI2, 2, 26, "i2", "int2"},
    {DType::kU2, 2, 25, "u2", "uint2"},
}};

const Row& row_of(DType t) noexcept {
  const auto i = static_cast<std::size_t>(t);
  return i < kRows.size() ? kRows[i] : kRows[0];
}

constexpr bool rows_are_indexed_by_type() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].type) != i) return false;
  return true;
}
static_assert(rows_are_indexed_by_type());

}  // namespace

std::size_t dtype_bits(DType t) noexcept { return row_of(t).bits; }

std::size_t dtype_bytes(DType t, std::size_t count) noexcept {
  const std::size_t bits = dtype_bits(t);
  if (bits == 0) return 0;
  if (bits < 8) {
    const std::size_t in_a_byte = 8 / bits;
    // Not (count + 1) / 2, which overflows.
    return count / in_a_byte + (count % in_a_byte != 0 ? 1 : 0);
  }
  std::size_t bytes = 0;
  // Saturates: the callers compare with what there is.
  return __builtin_mul_overflow(count, bits / 8, &bytes) ? SIZE_MAX : bytes;
}

std::string_view dtype_name(DType t) noexcept { return row_of(t).name; }

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (const Row& row : kRows)
    if (name == row.name || name == row.alias) return row.type;
  // Words that models and tools use as well.
  if (name == "float") return DType::kF32;
  if (name == "double") return DType::kF64;
  if (name == "half") return DType::kF16;
  return std::nullopt;
}

int onnx_type_of(DType t) noexcept { return row_of(t).onnx; }

DType dtype_from_onnx(std::int64_t onnx_type) noexcept {
  for (const Row& row : kRows)
    if (row.onnx == onnx_type) return row.type;
  return DType::kUndefined;
}

bool is_float(DType t) noexcept {
  return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16 || t == DType::kF64;
}

bool is_integer(DType t) noexcept {
  return dtype_bits(t) != 0 && !is_float(t) && t != DType::kBool && !is_opaque(t);
}

bool is_opaque(DType t) noexcept { return t >= DType::kF8E4M3FN && t <= DType::kU2; }

}  // namespace corelane
