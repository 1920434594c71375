// From f32 to integers: division by a scale, rounding and bounds; included once per instruction
// set.
#if defined(CORELANE_TENSOR_CONVERT_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORELANE_TENSOR_CONVERT_QUANTIZE_INL_H_
#undef CORELANE_TENSOR_CONVERT_QUANTIZE_INL_H_
#else
#define CORELANE_TENSOR_CONVERT_QUANTIZE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tensor/convert/convert_blocks_inl.h"
#include "tensor/convert/convert_float16_inl.h"
#include "tensor/convert/convert_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

/// Stores a vector; with a non-temporal store where `stream` asks for it and it is a whole line.
template <class D>
HWY_INLINE void store_line(D d, hn::Vec<D> v, std::byte* p, bool stream) {
  stream = HWY_UNLIKELY(stream) && reinterpret_cast<std::uintptr_t>(p) % kLine == 0;
  store(d, v, typed<hn::TFromD<D>>(p), stream);
}
HWY_INLINE void store_f32(VF x, std::byte* p, bool stream) { store_line(DF(), x, p, stream); }

/// Applies f(source, destination) to vectors of Lanes(d) elements. The last one overlaps its
/// neighbour, or goes through a buffer where there is none.
template <std::size_t kSrc, std::size_t kDst, class D, class F>
HWY_INLINE void for_vectors_of(D d, const std::byte* src, std::byte* dst, std::size_t count, F f) {
  constexpr std::size_t kUnrolled = 4;  // A branch costs as much as a short f.
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + kUnrolled * lanes <= count; i += kUnrolled * lanes) {
#pragma GCC unroll 4
    for (std::size_t k = i; k < i + kUnrolled * lanes; k += lanes)
      f(src + k * kSrc, dst + k * kDst);
  }
  if (count >= lanes) {
    for (; i < count; i += lanes) {
      i = std::min(i, count - lanes);
      f(src + i * kSrc, dst + i * kDst);
    }
    return;
  }
  std::byte in[hn::MaxLanes(D()) * kSrc] = {};
  std::byte out[hn::MaxLanes(D()) * kDst];
  std::memcpy(in, src, count * kSrc);
  f(in, out);
  std::memcpy(dst, out, count * kDst);
}

/// Calls `f` for vectors of as many elements as a vector has f32s.
template <std::size_t kSrc, std::size_t kDst, class F>
HWY_INLINE void for_vectors(const std::byte* src, std::byte* dst, std::size_t count, F f) {
  for_vectors_of<kSrc, kDst>(DF(), src, dst, count, f);
}

/// Loads f32s and prefetches those that are read later.
HWY_INLINE VF load_f32(const std::byte* p, std::ptrdiff_t prefetch) {
  if (HWY_UNLIKELY(prefetch != 0)) __builtin_prefetch(p + prefetch, 0, 3);
  return load_at(DF(), p);
}

#if HWY_TARGET != HWY_SCALAR
/// f16s, or bf16s, of the two vectors of f32 at `p`.
using DW = hn::Repartition<std::uint16_t, DF>;
HWY_INLINE hn::Vec<DW> load_as_f16(const std::byte* p, std::ptrdiff_t prefetch) {
  const VH lower = to_f16(load_f32(p, prefetch));
  return hn::Combine(DW(), to_f16(load_f32(p + hn::Lanes(DF()) * sizeof(float), prefetch)), lower);
}
HWY_INLINE hn::Vec<DW> load_as_bf16(const std::byte* p, std::ptrdiff_t prefetch) {
  const VU lower = round_to_bf16(load_f32(p, prefetch));
  const VU upper = round_to_bf16(load_f32(p + hn::Lanes(DF()) * sizeof(float), prefetch));
  return hn::ConcatOdd(DW(), hn::BitCast(DW(), upper), hn::BitCast(DW(), lower));
}
#endif

// ---- division by a constant

/// a / b, rounded as a division rounds it, given y = RN(1 / b): one correction brings the product
/// within one unit of the quotient, and a second one, from an exact remainder, rounds it correctly
/// (Markstein). Holds while nothing overflows or is denormal, and needs a fused multiply-add.
HWY_INLINE VF divide(VF a, VF b, VF y) {
#if HWY_NATIVE_FMA
  const VF q0 = hn::Mul(a, y);
  const VF q1 = hn::MulAdd(hn::NegMulAdd(q0, b, a), y, q0);
  return hn::MulAdd(hn::NegMulAdd(q1, b, a), y, q1);
#else
  (void)y;
  return hn::Div(a, b);
#endif
}

// ---- integers

/// Vectors of f32 that have as many lanes as a whole one of I.
template <class I>
constexpr std::size_t kVectorsOfWhole = sizeof(float) / sizeof(I);
template <class I>
using Whole = hn::Repartition<std::make_unsigned_t<I>, DF>;

/// True where whole() bounds bytes of shifted integers itself.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
template <class I>
constexpr bool whole_saturates = sizeof(I) == 1;
#else
template <class I>
constexpr bool whole_saturates = false;
#endif

/// Bounds, rounding and zero point of an integer type. Within 2^22 an f32 is rounded to an integer,
/// half to even, by adding 1.5 * 2^23, after which the integer lies in the lower bits.
template <class I>
class Rounding {
 public:
  HWY_INLINE explicit Rounding(const RowParams& params)
      : low_(hn::Set(DF(), params.low)),
        high_(hn::Set(DF(), params.high)),
        shift_(hn::Set(DF(), kShift)),
        offset_(hn::Sub(hn::Set(DI(), params.dst_zero), hn::BitCast(DI(), shift_))),
        low_bits_(hn::BitCast(DI(), hn::Add(low_, shift_))),
        high_bits_(hn::BitCast(DI(), hn::Add(high_, shift_))),
        zero_(params.dst_zero) {}

  HWY_INLINE VF clamp(VF x) const { return hn::Min(hn::Max(x, low_), high_); }
  HWY_INLINE VF zero_if_nan(VF x) const { return hn::IfThenElseZero(hn::Eq(x, x), x); }
  /// Clamps a shifted value; values out of range are in order as integers, too.
  HWY_INLINE VF clamp_shifted(VF s) const {
    return hn::BitCast(DF(), hn::Min(hn::Max(hn::BitCast(DI(), s), low_bits_), high_bits_));
  }
  HWY_INLINE VF shifted(VF x) const { return hn::Add(x, shift_); }
  HWY_INLINE VF shifted_product(VF a, VF b) const { return hn::MulAdd(a, b, shift_); }
  HWY_INLINE void store(VF shifted, std::byte* p) const {
    const VI q = hn::Add(hn::BitCast(DI(), shifted), offset_);
    const hn::Rebind<I, DF> d;
    store_at(d, hn::DemoteTo(d, q), p);
  }
#if HWY_TARGET != HWY_SCALAR
  /// The integers of as many vectors as make a whole one.
  HWY_INLINE hn::Vec<Whole<I>> whole(const VF (&shifted)[kVectorsOfWhole<I>]) const {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    if constexpr (whole_saturates<I>) return saturated(shifted);
#endif
    const hn::Repartition<std::uint16_t, DF> d16;
    const auto half = [&](std::size_t i) HWY_ATTR {
      return hn::ConcatEven(d16, hn::BitCast(d16, shifted[2 * i + 1]),
                            hn::BitCast(d16, shifted[2 * i]));
    };
    const Whole<I> d;
    // The zero point is added to what is left of the integers: the bits above do not reach down.
    const auto zero = hn::Set(d, static_cast<std::make_unsigned_t<I>>(zero_));
    if constexpr (sizeof(I) == 2)
      return hn::Add(half(0), zero);
    else
      return hn::Add(hn::ConcatEven(d, hn::BitCast(d, half(1)), hn::BitCast(d, half(0))), zero);
  }
#endif

 private:
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  /// Bytes by the instructions that saturate. They take shifted values from 0 to inf, and -inf;
  /// between -1.5 * 2^23 and 0 the sum would overflow.
  HWY_INLINE hn::Vec<Whole<I>> saturated(const VF (&shifted)[4]) const {
    __m512i q[4];
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) q[k] = hn::Add(hn::BitCast(DI(), shifted[k]), offset_).raw;
    const __m512i lower = _mm512_packs_epi32(q[0], q[1]);
    const __m512i upper = _mm512_packs_epi32(q[2], q[3]);
    const __m512i bytes =
        std::is_signed_v<I> ? _mm512_packs_epi16(lower, upper) : _mm512_packus_epi16(lower, upper);
    // Block by block: four bytes of each vector.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return hn::Vec<Whole<I>>{_mm512_permutexvar_epi32(order, bytes)};
  }
#endif
  static constexpr float kShift = 12582912.0F;
  VF low_, high_, shift_;
  VI offset_, low_bits_, high_bits_;
  std::int32_t zero_;
};

/// Stores f(source), which makes shifted integers of a vector of elements of kSrc bytes, and
/// whole(source), which makes integers of as many vectors as fill a whole one.
template <class I, std::size_t kSrc, class F, class W>
HWY_INLINE void store_integers(const Rounding<I>& r, const RowParams& params, const std::byte* src,
                               std::byte* dst, std::size_t count, F f, W whole) {
#if HWY_TARGET != HWY_SCALAR
  const std::size_t lanes = hn::Lanes(Whole<I>());
  for (std::size_t i = 0; count >= lanes; i = count - lanes) {
    for (; i + lanes <= count; i += lanes)
      store_line(Whole<I>(), whole(src + i * kSrc), dst + i * sizeof(I), params.stream);
    if (i == count) return;
  }
#endif
  (void)params, (void)whole;
  for_vectors<kSrc, sizeof(I)>(
      src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR { r.store(f(in), out); });
}

/// The same where each vector is made by itself.
template <class I, std::size_t kSrc, class F>
HWY_INLINE void store_integers(const Rounding<I>& r, const RowParams& params, const std::byte* src,
                               std::byte* dst, std::size_t count, F f) {
  store_integers<I, kSrc>(r, params, src, dst, count, f, [&](const std::byte* in) HWY_ATTR {
    VF v[kVectorsOfWhole<I>];
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kVectorsOfWhole<I>; ++k) v[k] = f(in + k * hn::Lanes(DF()) * kSrc);
#if HWY_TARGET != HWY_SCALAR
    return r.whole(v);
#endif
  });
}

/// x / scale as a division rounds it, given the scale's reciprocal.
template <class I>
class Quantize {
 public:
  HWY_INLINE explicit Quantize(const RowParams& params)
      : rounding(params),
        scale_(hn::Set(DF(), params.dst_scale)),
        reciprocal_(hn::Set(DF(), params.dst_reciprocal)),
        low_(hn::Set(DF(), params.low * params.dst_scale)),
        high_(hn::Set(DF(), params.high * params.dst_scale)),
        smaller_(hn::Set(DF(), params.dst_reciprocal * (1 - 0x1p-22F))),
        larger_(hn::Set(DF(), params.dst_reciprocal * (1 + 0x1p-22F))),
        prefetch_(params.prefetch) {}

  /// True where whole() may be used: the products are precise enough up to 512 only.
  static bool has_products(const RowParams& params) {
    constexpr float kMost = 512;
    return has_reciprocal(params) && params.low >= -kMost && params.high <= kMost;
  }
  static bool has_reciprocal(const RowParams& params) {
    return params.quantize && params.dst_reciprocal != 0 && !params.exact_reciprocal;
  }

  /// Bounded before the division, so that no lane overflows: the quotient of a bound rounds to it.
  /// A lane that underflows rounds to zero whatever its last places are.
  HWY_INLINE VF exact(const std::byte* in) const {
    const VF x = rounding.zero_if_nan(load_f32(in, prefetch_));
    return rounding.shifted(divide(hn::Min(hn::Max(x, low_), high_), scale_, reciprocal_));
  }

#if HWY_TARGET != HWY_SCALAR
  HWY_INLINE hn::Vec<Whole<I>> whole(const std::byte* in) {
    VF v[kVectorsOfWhole<I>];
    if (!try_products(in, v)) {
#pragma GCC unroll 4
      for (std::size_t k = 0; k < kVectorsOfWhole<I>; ++k)
        v[k] = exact(in + k * hn::Lanes(DF()) * sizeof(float));
    }
    return rounding.whole(v);
  }
#endif

  const Rounding<I> rounding;

 private:
  /// The quotient lies between the products with reciprocals that are a little too small and too
  /// large. Where both round to the same integer so does the quotient; up to 512 that fails only
  /// near ties. Beyond the bounds all are bounded.
  HWY_INLINE bool try_products(const std::byte* in, VF (&v)[kVectorsOfWhole<I>]) {
    if (untried_ > 0) {
      --untried_;
      return false;
    }
    auto sure = hn::Eq(scale_, scale_);
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kVectorsOfWhole<I>; ++k) {
      const VF x = load_f32(in + k * hn::Lanes(DF()) * sizeof(float), prefetch_);
      const VF s = rounding.shifted_product(x, smaller_);
      sure = hn::And(sure, hn::Eq(s, rounding.shifted_product(x, larger_)));  // Not if NaN.
      // Where both products are equal they are infinite, or the value is within 1.25 * 2^22: the
      // products differ by 2^-21 of it, and f32s around it by less.
      v[k] = whole_saturates<I> ? s : rounding.clamp_shifted(s);
    }
    if (hn::AllTrue(DF(), sure)) {
      penalty_ /= 2;
      return true;
    }
    penalty_ = std::min<std::size_t>(2 * penalty_ + 1, 63);
    untried_ = penalty_;
    return false;
  }

  const VF scale_, reciprocal_, low_, high_, smaller_, larger_;
  const std::ptrdiff_t prefetch_;
  // Where ties are frequent, trying costs more than it gains: after each failure twice as many
  // vectors are divided untried.
  std::size_t untried_ = 0;
  std::size_t penalty_ = 0;
};

template <class I>
void quantize_row(const RowParams& params, const std::byte* src, std::byte* dst,
                  std::size_t count) {
  Quantize<I> q(params);
  const auto exact = [&](const std::byte* in) HWY_ATTR { return q.exact(in); };
#if HWY_TARGET != HWY_SCALAR
  if (Quantize<I>::has_products(params)) {
    const auto whole = [&](const std::byte* in) HWY_ATTR { return q.whole(in); };
    store_integers<I, 4>(q.rounding, params, src, dst, count, exact, whole);
    return;
  }
#endif
  store_integers<I, 4>(q.rounding, params, src, dst, count, exact);
}

template <class I>
void pass_f32_to_integer(const RowParams& params, const std::byte* src, std::byte* dst,
                         std::size_t count) {
  if (Quantize<I>::has_reciprocal(params)) {
    quantize_row<I>(params, src, dst, count);
    return;
  }
  const DF df;
  const Rounding<I> r(params);
  const auto store = [&](auto quotient) HWY_ATTR {
    const auto round = [&](const std::byte* in) HWY_ATTR {
      return r.shifted(r.clamp(r.zero_if_nan(quotient(load_f32(in, params.prefetch)))));
    };
    store_integers<I, 4>(r, params, src, dst, count, round);
  };
  const VF scale = hn::Set(df, params.dst_scale);
  const VF reciprocal = hn::Set(df, params.dst_reciprocal);
  if (!params.quantize)
    store([](VF x) HWY_ATTR { return x; });
  else if (params.dst_reciprocal == 0)
    store([&](VF x) HWY_ATTR { return hn::Div(x, scale); });
  else
    store([&](VF x) HWY_ATTR { return hn::Mul(x, reciprocal); });
}

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#endif  // per target
