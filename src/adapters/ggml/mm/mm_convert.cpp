#include "adapters/ggml/mm/mm_convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// One version of a function for each width of vectors, chosen when the library is loaded: too early
// for the sanitizers, whose builds define MM_ONE_VERSION.
#if defined(__x86_64__) && !defined(MM_ONE_VERSION)
#define MM_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define MM_CLONES
#endif

namespace corelane::ggml {
namespace {

constexpr std::size_t kWidth = 16;
using Floats = float __attribute__((vector_size(kWidth * sizeof(float))));

/// From and to any address: where an alias says that it is aligned to less than its size, compilers
/// drop that in one place or another.
__attribute__((always_inline)) inline void load(const float* from, Floats& x) {
  std::memcpy(&x, from, sizeof x);
}
__attribute__((always_inline)) inline void store(const Floats& x, float* to) {
  std::memcpy(to, &x, sizeof x);
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Adding 2^-14 * 2^k shifts a small number so that the FPU rounds it to the half's last bit.
std::uint16_t half_of(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half;
  if (magnitude >= 0x47800000U)  // 65536 and more, infinity, NaN.
    half = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
  else if (magnitude < 0x38800000U)  // Subnormal as a half: 0.5 has its last bit at 2^-24.
    half = bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F);
  else
    half = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  return static_cast<std::uint16_t>(sign | half);
}

float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fU;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t wide = exponent == 31 ? 0xffU : exponent + 112;
  return float_of(sign | (wide << 23) | (mantissa << 13));
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) std::size_t halves_by_eight(const float* in, std::size_t count,
                                                                std::uint16_t* out) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}

__attribute__((target("avx,f16c"))) std::size_t floats_by_eight(const std::uint16_t* in,
                                                                std::size_t count, float* out) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  return i;
}

/// Every CPU with AVX2 has it; clang's builtin does not know the name f16c.
bool has_f16c() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
#endif

}  // namespace

void floats_to_halves(const float* in, std::size_t count, std::uint16_t* out) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (has_f16c()) i = halves_by_eight(in, count, out);
#endif
  for (; i < count; ++i) out[i] = half_of(in[i]);
}

void halves_to_floats(const std::uint16_t* in, std::size_t count, float* out) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (has_f16c()) i = floats_by_eight(in, count, out);
#endif
  for (; i < count; ++i) out[i] = float_of_half(in[i]);
}

namespace {

MM_CLONES std::uint32_t largest_bits(const float* row, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, row + i, sizeof bits);
    bits &= 0x7fffffffU;
    largest = largest < bits ? bits : largest;
  }
  return largest;
}

}  // namespace

float scale_for_halves(const float* row, std::size_t count) {
  const float largest = float_of(largest_bits(row, count));  // Magnitudes in order of their bits.
  const bool held = largest == 0 || (largest >= 0x1p-10F && largest <= 65504.0F);
  if (held || !std::isfinite(largest)) return 1;
  return std::ldexp(1.0F, std::clamp(std::ilogb(largest) - 11, -100, 120));
}

namespace {

constexpr std::size_t kLongestBlock = 512;

using Signs = std::array<float, kLongestBlock>;

/// By the number of pairs of neighbouring bits that are both set, of those in `pairs`.
constexpr Signs signs_of(std::size_t pairs) {
  Signs made{};
  for (std::size_t i = 0; i < kLongestBlock; ++i) {
    made[i] = 1;
    for (std::size_t both = i & (i >> 1) & pairs; both != 0; both &= both - 1) made[i] = -made[i];
  }
  return made;
}

/// Spread every row of the Hadamard matrix evenly, the one of equal elements first of all: those of
/// x0 x1 + x2 x3 + x4 x5 + x6 x7 in the bits of a place.
constexpr Signs kSigns = signs_of(0x55);
/// The signs of a last block over elements that another block has turned: with the same signs it
/// would gather again what that block has spread.
constexpr Signs kLastSigns = signs_of(0xff);

/// A butterfly of blocks shorter than a vector.
void rotate_short(float* row, std::size_t count, std::size_t block, const Signs& signs) {
  const float norm = 1.0F / std::sqrt(static_cast<float>(block));
  for (std::size_t begin = 0; begin + block <= count; begin += block) {
    float* at = row + begin;
    for (std::size_t i = 0; i < block; ++i) at[i] *= signs[i];
    for (std::size_t half = 1; half < block; half *= 2)
      for (std::size_t i = 0; i < block; i += half * 2)
        for (std::size_t j = i; j < i + half; ++j) {
          const float a = at[j];
          const float b = at[j + half];
          at[j] = a + b;
          at[j + half] = a - b;
        }
    for (std::size_t i = 0; i < block; ++i) at[i] *= norm;
  }
}

/// The steps within a vector by exchanging its elements, the others vector by vector.
MM_CLONES void rotate_by_vectors(float* row, std::size_t count, std::size_t block,
                                 const Signs& of_block) {
  const float norm = 1.0F / std::sqrt(static_cast<float>(block));
  for (std::size_t begin = 0; begin + block <= count; begin += block) {
    float* const at = row + begin;
    for (std::size_t i = 0; i < block; i += kWidth) {
      Floats x, signs;
      load(at + i, x);
      load(of_block.data() + i, signs);
      x *= signs;
      x = x * Floats{1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1} +
          __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
      x = x * Floats{1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1} +
          __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
      x = x * Floats{1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1} +
          __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
      x = x * Floats{1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1} +
          __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
      store(x * norm, at + i);
    }
    for (std::size_t half = kWidth; half < block; half *= 2)
      for (std::size_t i = 0; i < block; i += half * 2)
        for (std::size_t j = i; j < i + half; j += kWidth) {
          Floats a, b;
          load(at + j, a);
          load(at + j + half, b);
          store(a + b, at + j);
          store(a - b, at + j + half);
        }
  }
}

/// The whole vectors of a row, and what is left of it with zeros after it.
struct Vectors {
  const float* row;
  std::size_t whole;
  Floats rest{};
  Vectors(const float* in, std::size_t count) : row(in), whole(count / kWidth * kWidth) {
    std::memcpy(&rest, in + whole, (count - whole) * sizeof(float));
  }
};

/// The largest magnitude; NaN where an element is infinite or NaN. Whole vectors.
MM_CLONES float largest_of(const float* in, std::size_t count) {
  Floats largest{};
  Floats sums{};  // NaN where one of the elements is not finite.
  for (std::size_t i = 0; i < count; i += kWidth) {
    Floats x;
    load(in + i, x);
    const Floats magnitude = x < 0 ? -x : x;
    largest = magnitude > largest ? magnitude : largest;
    sums += x * 0.0F;
  }
  float result = 0;
  float sum = 0;
  for (std::size_t i = 0; i < kWidth; ++i) {
    result = std::max(result, largest[i]);
    sum += sums[i];
  }
  return sum == 0 ? result : std::numeric_limits<float>::quiet_NaN();
}

float largest_of(const Vectors& row) {
  const float first = largest_of(row.row, row.whole);
  const float last = largest_of(reinterpret_cast<const float*>(&row.rest), kWidth);
  return std::isnan(first) || std::isnan(last) ? first + last : std::max(first, last);
}

/// The least value of a row's largest element: the inverse of a smaller scale is beyond floats.
constexpr float kLeastScaled = 0x1p-120F;

MM_CLONES void round_all(const float* in, std::size_t count, float factor, std::int8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = in[i] * factor;
    out[i] =
        static_cast<std::int8_t>(static_cast<std::int32_t>(value + (value < 0 ? -0.5F : 0.5F)));
  }
}

constexpr std::int32_t kMostInt4 = 7;
/// Elements that lie in a cache between two loops, of which each is made of whole vectors.
constexpr std::size_t kAtOnce = 256;
/// Fractions of the scale that holds the largest element: they err least for rows that rotate()
/// has turned, short or long, whose elements are spread as by a normal distribution.
constexpr float kScalesOfInt4[] = {1, 0.85F, 0.72F, 0.6F};

/// Bounded as an integer: of floats compilers make branches, which random signs mislead.
__attribute__((always_inline)) inline std::int32_t int4_of(float value) {
  const auto step = static_cast<std::int32_t>(value + (value < 0 ? -0.5F : 0.5F));
  const std::int32_t below = step < kMostInt4 ? step : kMostInt4;
  return below > -kMostInt4 ? below : -kMostInt4;
}

/// What is left of elements that became int4, squared and added up. Whole vectors.
MM_CLONES float left_by_int4(const float* in, std::size_t count, float scale) {
  const float factor = 1 / scale;
  float left[kAtOnce];
  Floats sums{};
  for (std::size_t begin = 0; begin < count; begin += kAtOnce) {
    const std::size_t length = std::min(kAtOnce, count - begin);
    for (std::size_t i = 0; i < length; ++i)
      left[i] = in[begin + i] - static_cast<float>(int4_of(in[begin + i] * factor)) * scale;
    for (std::size_t i = 0; i < length; i += kWidth) {
      Floats x;
      load(left + i, x);
      sums += x * x;
    }
  }
  float sum = 0;
  for (std::size_t i = 0; i < kWidth; ++i) sum += sums[i];
  return sum;
}

float best_scale_of_int4(const Vectors& row, float largest) {
  const float whole = largest / static_cast<float>(kMostInt4);
  float best = whole;
  float least = std::numeric_limits<float>::infinity();
  for (const float part : kScalesOfInt4) {
    const float scale = whole * part;
    const float left = left_by_int4(row.row, row.whole, scale) +
                       left_by_int4(reinterpret_cast<const float*>(&row.rest), kWidth, scale);
    if (left >= least) continue;
    least = left;
    best = scale;
  }
  return best;
}

MM_CLONES void round_pairs(const float* in, std::size_t count, float factor, std::uint8_t* out) {
  std::int8_t steps[kAtOnce];
  for (std::size_t begin = 0; begin < count; begin += kAtOnce) {
    const std::size_t length = std::min(kAtOnce, count - begin);
    for (std::size_t i = 0; i < length; ++i)
      steps[i] = static_cast<std::int8_t>(int4_of(in[begin + i] * factor));
    for (std::size_t i = 0; i < length / 2; ++i)
      out[begin / 2 + i] =
          static_cast<std::uint8_t>((steps[2 * i] & 15) | ((steps[2 * i + 1] & 15) << 4));
  }
}

/// Inlined into what is made for each width of vectors.
template <class Sum>
__attribute__((always_inline)) inline void scale_all(const Sum* sums, std::size_t count,
                                                     float row_scale, const float* column_scales,
                                                     bool add, float* out) {
  if (add)
    for (std::size_t i = 0; i < count; ++i)
      out[i] += static_cast<float>(sums[i]) * row_scale * column_scales[i];
  else
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<float>(sums[i]) * row_scale * column_scales[i];
}

}  // namespace

void rotate(float* row, std::size_t count) {
  std::size_t block = 1;
  while (block < kLongestBlock && block * 2 <= count) block *= 2;
  const auto blocks = block < kWidth ? rotate_short : rotate_by_vectors;
  blocks(row, count, block, kSigns);
  if (count % block != 0) blocks(row + count - block, block, block, kLastSigns);
}

float floats_to_int8(const float* in, std::size_t count, std::int8_t* out) {
  const float largest = largest_of(Vectors(in, count));
  if (largest < kLeastScaled || std::isnan(largest)) {
    std::memset(out, std::isnan(largest) ? 1 : 0, count);
    return std::isnan(largest) ? largest : 0;
  }
  round_all(in, count, 127.0F / largest, out);
  return largest / 127.0F;
}

float floats_to_int4(const float* in, std::size_t count, std::uint8_t* out) {
  const Vectors row(in, count);
  const float largest = largest_of(row);
  if (largest < kLeastScaled || std::isnan(largest)) {
    std::memset(out, std::isnan(largest) ? 0x11 : 0, count / 2);
    return std::isnan(largest) ? largest : 0;
  }
  const float scale = best_scale_of_int4(row, largest);
  round_pairs(in, count, 1 / scale, out);
  return scale;
}

MM_CLONES void scale_sums(const std::int32_t* sums, std::size_t count, float row_scale,
                          const float* column_scales, bool add, float* out) {
  scale_all(sums, count, row_scale, column_scales, add, out);
}

MM_CLONES void scale_sums(const std::int16_t* sums, std::size_t count, float row_scale,
                          const float* column_scales, bool add, float* out) {
  scale_all(sums, count, row_scale, column_scales, add, out);
}

}  // namespace corelane::ggml
