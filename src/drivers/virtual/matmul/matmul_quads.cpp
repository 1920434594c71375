/// Few rows of 8-bit integers by B in quads. Highway 1.0 has no sums of four products.
#include <algorithm>
#include <cstring>

#include "drivers/virtual/matmul/matmul_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace corelane::drivers::virtual_npu {

void quads_i8(const std::int8_t* in, std::size_t count, std::int32_t* quads) {
  std::memset(quads, 0, quads_of(count) * sizeof(std::int32_t));
  auto* bytes = reinterpret_cast<std::uint8_t*>(quads);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(in[i] + 128);
}

#if defined(__x86_64__)
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kVectors = kQuadColumns / kLanes;

/// Rows [row, row + R) by a panel. Bytes of A are a + 128, as the instruction wants one side
/// without a sign: 128 times the sum of a column is too much.
template <std::size_t R>
__attribute__((target("avx512f,avx512vnni"))) void quad_rows(const MultiplyQuads& p,
                                                             std::size_t panel, std::size_t row) {
  const std::size_t quads = quads_of(p.k);
  const std::int8_t* b = p.panels + panel * quads * kQuadColumns * 4;
  const std::int32_t* a = p.quads + row * quads;
  __m512i sums[R][kVectors];
  for (auto& of_row : sums)
    for (auto& sum : of_row) sum = _mm512_setzero_si512();
  for (std::size_t q = 0; q < quads; ++q, b += kQuadColumns * 4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const __m512i w = _mm512_loadu_si512(b + v * 64);
      for (std::size_t r = 0; r < R; ++r)
        sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], _mm512_set1_epi32(a[r * quads + q]), w);
    }
  const std::size_t first = panel * kQuadColumns;
  const std::size_t count = std::min(kQuadColumns, p.n - first);
  std::int32_t line[kQuadColumns];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) _mm512_storeu_si512(line + v * kLanes, sums[r][v]);
    std::int32_t* const out = p.c + (row + r) * p.n + first;
    for (std::size_t i = 0; i < count; ++i) out[i] = line[i] - 128 * p.column_sums[first + i];
  }
}

}  // namespace

bool can_multiply_quads() {
  static const bool can = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni");
  return can;
}

void multiply_quads(const MultiplyQuads& p, std::size_t first, std::size_t last) {
  for (std::size_t panel = first; panel < last; ++panel) {
    std::size_t row = 0;
    for (; row + 4 <= p.rows; row += 4) quad_rows<4>(p, panel, row);
    for (; row < p.rows; ++row) quad_rows<1>(p, panel, row);
  }
}
#else
bool can_multiply_quads() { return false; }
void multiply_quads(const MultiplyQuads&, std::size_t, std::size_t) {}
#endif

}  // namespace corelane::drivers::virtual_npu
