/// Loops of the matrix product that oneDNN does not have, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace corelane::drivers::virtual_npu {

/// Two 4-bit integers to a byte, the even one in the low nibble, to one byte each. `count` integers
/// from the integer `first` on.
void unpack_i4(const std::uint8_t* packed, std::size_t first, std::size_t count, std::int8_t* out);

/// IEEE-754 binary16 to binary32.
void widen_f16(const std::uint16_t* in, std::size_t count, float* out);

std::int32_t sum_i8(const std::int8_t* in, std::size_t count);
/// sums[i] += in[i].
void add_i8(const std::int8_t* in, std::size_t count, std::int32_t* sums);

/// B in panels of 16 columns, [panel][pair of k][column][2], zeros beyond K and N: what
/// multiply_i8() reads.
inline constexpr std::size_t kPanelColumns = 16;
inline std::size_t panel_bytes(std::size_t k) { return (k + 1) / 2 * 2 * kPanelColumns; }
inline std::size_t panels_of(std::size_t n) { return (n + kPanelColumns - 1) / kPanelColumns; }

/// C[rows, N] = A x B in i32 for the columns of the panels [first, last). Exact: products are added
/// in pairs of 16 x 16 bits. `pairs` is A as [row][pair of k], two i16 in an i32 (low: even k).
struct MultiplyI8 {
  const std::int32_t* pairs = nullptr;
  const std::int8_t* panels = nullptr;
  std::int32_t* c = nullptr;
  std::size_t rows = 0;
  std::size_t k = 0;
  std::size_t n = 0;
};
void multiply_i8(const MultiplyI8& product, std::size_t first, std::size_t last);
/// One row of A as multiply_i8() takes it: (count + 1) / 2 values.
void pair_i8(const std::int8_t* in, std::size_t count, std::int32_t* pairs);

/// B in panels of 64 columns, [panel][k / 4][column][4], zeros up to whole panels and to a K of
/// whole 64: what multiply_quads() reads, and oneDNN's "BA16a64b4a".
inline constexpr std::size_t kQuadColumns = 64;
inline std::size_t quads_of(std::size_t k) { return (k + 63) / 64 * 16; }

/// C[rows, N] = A x B in i32 for the columns of the panels [first, last), for few rows: exact, and
/// B is read once. `quads` is A as [row][k / 4], four bytes in an i32, each a + 128.
struct MultiplyQuads {
  const std::int32_t* quads = nullptr;
  const std::int8_t* panels = nullptr;
  const std::int32_t* column_sums = nullptr;  ///< Of B.
  std::int32_t* c = nullptr;
  std::size_t rows = 0;
  std::size_t k = 0;
  std::size_t n = 0;
};
/// Whether this CPU has the instruction: four products of bytes added to 32 bits ("VNNI").
bool can_multiply_quads();
/// Only where it can.
void multiply_quads(const MultiplyQuads& product, std::size_t first, std::size_t last);
/// One row of A as multiply_quads() takes it: quads_of(count) values.
void quads_i8(const std::int8_t* in, std::size_t count, std::int32_t* quads);

/// B in panels of 64 columns, [panel][k][column], as it was given (i8, or f16), zeros beyond N:
/// what multiply_lean() reads.
inline constexpr std::size_t kLeanColumns = 64;
inline std::size_t lean_columns(std::size_t n) {
  return (n + kLeanColumns - 1) / kLeanColumns * kLeanColumns;
}

/// C[rows, N] = A x ((B - zero) * scale) in f32 for the columns of the panels [first, last), for
/// few rows: B is read once, at the size it has.
struct MultiplyLean {
  const float* a = nullptr;  ///< [row][k].
  const void* panels = nullptr;
  float* c = nullptr;  ///< [row][n].
  std::size_t rows = 0;
  std::size_t k = 0;
  std::size_t n = 0;
  bool halves = false;                  ///< B is f16 and has neither scales nor zero points.
  std::size_t group = 0;                ///< k to a scale, for i8.
  const float* scales = nullptr;        ///< [k / group][lean_columns(n)].
  const std::int32_t* zeros = nullptr;  ///< The same, or null.
};
void multiply_lean(const MultiplyLean& product, std::size_t first, std::size_t last);

/// How a row of sums becomes a row of C. With s = sum[i] + add[i] - zero[i] * row_sum for sums of
/// integers (add and zero may be null), or s = sum[i] for f32. `add`, `zero` and the factors may be
/// read up to kFinishSlack elements beyond `count`.
struct FinishRow {
  const void* sums = nullptr;  ///< i32, or f32 where said.
  std::size_t count = 0;
  const std::int32_t* add = nullptr;
  const std::int32_t* zero = nullptr;
  std::int32_t row_sum = 0;
  const double* factors = nullptr;       ///< One for each element, for finish_i8,
  const float* float_factors = nullptr;  ///< and for finish_f32;
  double factor = 1;                     ///< without them, this for all.
  std::int32_t zero_point = 0;           ///< Of C, i8 only.
};
inline constexpr std::size_t kFinishSlack = 16;
/// s. `out` may be the sums.
void finish_i32(const FinishRow& row, std::int32_t* out);
/// s, saturated.
void finish_i16(const FinishRow& row, std::int16_t* out);
/// s * factor. `out` may be the sums.
void finish_f32(const FinishRow& row, float* out);
/// round_half_even(s * factor) + zero_point, saturated, in f64.
void finish_i8(const FinishRow& row, std::int8_t* out);
/// s * factor and round_half_even(s * factor) + zero_point for sums of f32; one factor for all.
void scale_f32(const FinishRow& row, float* out);
void scale_f32_to_i8(const FinishRow& row, std::int8_t* out);

}  // namespace corelane::drivers::virtual_npu
