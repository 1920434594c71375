// Rows of bytes in one pass: out of a table, or by arithmetic that is shorter than the exact one
// and gives the same for most parameters, which RowKernel::shorten() finds out with all 256 bytes;
// included once per instruction set.
#if defined(CORELANE_TENSOR_CONVERT_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORELANE_TENSOR_CONVERT_BYTES_INL_H_
#undef CORELANE_TENSOR_CONVERT_BYTES_INL_H_
#else
#define CORELANE_TENSOR_CONVERT_BYTES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "tensor/convert/convert_quantize_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

template <class I>
HWY_INLINE VI load_integer(const std::byte* p) {
  const hn::Rebind<I, DF> d;
  return hn::PromoteTo(DI(), load_at(d, p));
}

/// A byte of type B as it is, without zero point and scale.
template <class B>
HWY_INLINE VF load_byte(const std::byte* p) {
  return hn::ConvertTo(DF(), load_integer<B>(p));
}

/// a / b with one correction, given y = RN(1 / b): hardly ever another one than the nearest.
HWY_INLINE VF divide_once(VF a, VF b, VF y) {
#if HWY_NATIVE_FMA
  const VF q = hn::Mul(a, y);
  return hn::MulAdd(hn::NegMulAdd(q, b, a), y, q);
#else
  (void)y;
  return hn::Div(a, b);
#endif
}

/// (x - mean) / std of bytes without quantization.
class Normalise {
 public:
  HWY_INLINE explicit Normalise(const RowParams& params)
      : mean_(hn::Set(DF(), params.mean)),
        std_(hn::Set(DF(), params.std)),
        reciprocal_(hn::Set(DF(), params.std_reciprocal)) {}
  HWY_INLINE VF operator()(VF x) const { return divide_once(hn::Sub(x, mean_), std_, reciprocal_); }

 private:
  VF mean_, std_, reciprocal_;
};

template <class B>
void bytes_to_f32(const RowParams& params, const std::byte* src, std::byte* dst,
                  std::size_t count) {
  const Normalise normalised(params);
  const bool stream = params.stream;
  for_vectors<1, 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    store_f32(normalised(load_byte<B>(in)), out, stream);
  });
}

template <class B>
void bytes_to_f16(const RowParams& params, const std::byte* src, std::byte* dst,
                  std::size_t count) {
  const Normalise normalised(params);
  for_vectors<1, 2>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    store_f16(normalised(load_byte<B>(in)), out);
  });
}

/// One multiplication and one addition for all the steps. Fails where results lie next to a tie.
template <class B, class I>
void bytes_to_integer(const RowParams& params, const std::byte* src, std::byte* dst,
                      std::size_t count) {
  const Rounding<I> r(params);
  const VF factor = hn::Set(DF(), params.factor);
  const VF offset = hn::Set(DF(), params.offset);
  const auto f = [&](const std::byte* in) HWY_ATTR {
    return r.clamp_shifted(r.shifted(hn::MulAdd(load_byte<B>(in), factor, offset)));
  };
  store_integers<I, 1>(r, params, src, dst, count, f);
}

/// Both divisions.
template <class B, class I>
void normalised_bytes_to_integer(const RowParams& params, const std::byte* src, std::byte* dst,
                                 std::size_t count) {
  const Rounding<I> r(params);
  const Normalise normalised(params);
  const VF scale = hn::Set(DF(), params.dst_scale);
  const VF reciprocal = hn::Set(DF(), params.dst_reciprocal);
  const auto f = [&](const std::byte* in) HWY_ATTR {
    const VF q = divide_once(normalised(load_byte<B>(in)), scale, reciprocal);
    return r.clamp_shifted(r.shifted(q));
  };
  store_integers<I, 1>(r, params, src, dst, count, f);
}

#if HWY_TARGET == HWY_AVX3_DL
using Bytes = hn::ScalableTag<std::uint8_t>;

/// The results of the 256 bytes where they are bytes, too.
class ResultsOfBytes {
 public:
  HWY_INLINE explicit ResultsOfBytes(const RowParams& params) {
    for (std::size_t i = 0; i < 4; ++i)
      results_[i] = load_at(Bytes(), params.results + i * hn::Lanes(Bytes())).raw;
  }
  /// Of the bytes `x`; `is_upper` has those from 128 on.
  HWY_INLINE __m512i of(__m512i x, __mmask64 is_upper) const {
    const __m512i lower = _mm512_permutex2var_epi8(results_[0], x, results_[1]);
    const __m512i upper = _mm512_permutex2var_epi8(results_[2], x, results_[3]);
    return _mm512_mask_blend_epi8(is_upper, lower, upper);
  }
  HWY_INLINE hn::Vec<Bytes> operator()(hn::Vec<Bytes> x) const {
    return hn::Vec<Bytes>{of(x.raw, _mm512_movepi8_mask(x.raw))};
  }

 private:
  __m512i results_[4];
};

inline void look_bytes_up(const RowParams& params, const std::byte* src, std::byte* dst,
                          std::size_t count) {
  const ResultsOfBytes results(params);
  const auto f = [&](const std::byte* in, std::byte* out) HWY_ATTR {
    store_line(Bytes(), results(load_at(Bytes(), in)), out, params.stream);
  };
  for_vectors_of<1, 1>(Bytes(), src, dst, count, f);
}
#endif

/// The ways from bytes of type B to a type, the shortest first.
template <class B>
RowKernel::Shortcuts shortcuts_to(DType dst) {
#if HWY_TARGET == HWY_AVX3_DL
  if (dtype_bits(dst) == 8) return {look_bytes_up};
#endif
  switch (dst) {
    case DType::kF32:
      return {bytes_to_f32<B>};
    case DType::kF16:
      return {bytes_to_f16<B>};
    case DType::kI8:
      return {bytes_to_integer<B, std::int8_t>, normalised_bytes_to_integer<B, std::int8_t>};
    case DType::kU8:
      return {bytes_to_integer<B, std::uint8_t>, normalised_bytes_to_integer<B, std::uint8_t>};
    default:
      return {};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#endif  // per target
