// Conversion of rows between element types, compiled once per instruction set. Every step gives
// the bits that the step of convert_reference.cpp gives.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tensor/convert_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/convert_rows_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "tensor/convert_halves_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

/// Stores a vector, past the caches where it is a whole line of a far tensor.
template <class D>
HWY_INLINE void store_line(D d, hn::Vec<D> v, std::byte* p, bool far) {
  constexpr std::size_t kLine = 64;
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == kLine) {
    if (far && reinterpret_cast<std::uintptr_t>(p) % kLine == 0) {
      hn::Stream(v, d, reinterpret_cast<hn::TFromD<D>*>(p));
      return;
    }
  }
  (void)far;
  store_at(d, v, p);
}
HWY_INLINE void store_f32(VF x, std::byte* p, bool far) { store_line(DF(), x, p, far); }

/// Applies f(source, destination) to whole vectors of Lanes(DF()) elements. The last one overlaps
/// its neighbour, or goes through a buffer where there is none.
template <std::size_t kSrc, std::size_t kDst, class F>
HWY_INLINE void for_vectors(const std::byte* src, std::byte* dst, std::size_t count, F f) {
  const std::size_t lanes = hn::Lanes(DF());
  if (count >= lanes) {
    for (std::size_t i = 0;; i = count - lanes) {
      for (; i + lanes <= count; i += lanes) f(src + i * kSrc, dst + i * kDst);
      if (i == count) return;
    }
  }
  std::byte in[hn::MaxLanes(DF()) * kSrc] = {};
  std::byte out[hn::MaxLanes(DF()) * kDst];
  std::memcpy(in, src, count * kSrc);
  f(in, out);
  std::memcpy(dst, out, count * kDst);
}

// ---- f16 and bf16

void pass_f16_to_f32(const RowParams& params, const std::byte* src, std::byte* dst,
                     std::size_t count) {
  const bool far = params.far;
  for_vectors<2, 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    store_f32(load_f16(in), out, far);
  });
}
void pass_bf16_to_f32(const RowParams& params, const std::byte* src, std::byte* dst,
                      std::size_t count) {
  const bool far = params.far;
  for_vectors<2, 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    store_f32(load_bf16(in), out, far);
  });
}
void pass_f32_to_f16(const RowParams&, const std::byte* src, std::byte* dst, std::size_t count) {
  for_vectors<4, 2>(src, dst, count, [](const std::byte* in, std::byte* out) HWY_ATTR {
    store_f16(load_at(DF(), in), out);
  });
}
void pass_f32_to_bf16(const RowParams&, const std::byte* src, std::byte* dst, std::size_t count) {
  for_vectors<4, 2>(src, dst, count, [](const std::byte* in, std::byte* out) HWY_ATTR {
    store_bf16(load_at(DF(), in), out);
  });
}

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

template <class I>
HWY_INLINE VI load_integer(const std::byte* p) {
  const hn::Rebind<I, DF> d;
  return hn::PromoteTo(DI(), load_at(d, p));
}

template <class I>
void pass_integer_to_f32(const RowParams& params, const std::byte* src, std::byte* dst,
                         std::size_t count) {
  const DF df;
  const bool far = params.far;
  if (!params.dequantize) {
    for_vectors<sizeof(I), 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
      store_f32(hn::ConvertTo(df, load_integer<I>(in)), out, far);
    });
    return;
  }
  const VI zero = hn::Set(DI(), params.src_zero);
  const VF scale = hn::Set(df, params.src_scale);
  for_vectors<sizeof(I), 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    const VF q = hn::ConvertTo(df, hn::Sub(load_integer<I>(in), zero));
    store_f32(hn::Mul(q, scale), out, far);
  });
}

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
        zero_(params.dst_zero) {}

  HWY_INLINE VF clamp(VF x) const { return hn::Min(hn::Max(x, low_), high_); }
  HWY_INLINE VF zero_if_nan(VF x) const { return hn::IfThenElseZero(hn::Eq(x, x), x); }
  HWY_INLINE VF shifted(VF x) const { return hn::Add(x, shift_); }
  HWY_INLINE VF unshifted(VF s) const { return hn::Sub(s, shift_); }
  HWY_INLINE void store(VF shifted, std::byte* p) const {
    const VI q = hn::Add(hn::BitCast(DI(), shifted), offset_);
    const hn::Rebind<I, DF> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    // In range already, so the lower bits are the value.
    store_at(d, hn::BitCast(d, hn::TruncateTo(du, hn::BitCast(DU(), q))), p);
  }
#if HWY_TARGET != HWY_SCALAR
  /// As many vectors as make a whole one of the integers; `past` the caches where it is a line.
  HWY_INLINE void store_whole(const VF (&shifted)[4 / sizeof(I)], std::byte* p, bool past) const {
    const hn::Repartition<std::uint16_t, DF> d16;
    const auto half = [&](std::size_t i) HWY_ATTR {
      return hn::ConcatEven(d16, hn::BitCast(d16, shifted[2 * i + 1]),
                            hn::BitCast(d16, shifted[2 * i]));
    };
    const hn::Repartition<std::make_unsigned_t<I>, DF> d;
    // The zero point is added to what is left of the integers: the bits above do not reach down.
    const auto zero = hn::Set(d, static_cast<std::make_unsigned_t<I>>(zero_));
    if constexpr (sizeof(I) == 2) {
      store_line(d, hn::Add(half(0), zero), p, past);
    } else {
      const auto q = hn::ConcatEven(d, hn::BitCast(d, half(1)), hn::BitCast(d, half(0)));
      store_line(d, hn::Add(q, zero), p, past);
    }
  }
#endif

 private:
  static constexpr float kShift = 12582912.0F;
  VF low_, high_, shift_;
  VI offset_;
  std::int32_t zero_;
};

/// Stores f(x) for all x, of which f makes shifted integers.
template <class I, class F>
HWY_INLINE void store_integers(const Rounding<I>& r, const RowParams& params, const std::byte* src,
                               std::byte* dst, std::size_t count, F f) {
#if HWY_TARGET != HWY_SCALAR
  constexpr std::size_t kVectors = 4 / sizeof(I);
  const std::size_t lanes = hn::Lanes(DF());
  const std::size_t whole = kVectors * lanes;
  for (std::size_t i = 0; count >= whole; i = count - whole) {
    for (; i + whole <= count; i += whole) {
      VF v[kVectors];
#pragma GCC unroll 4
      for (std::size_t k = 0; k < kVectors; ++k) {
        v[k] = f(load_at(DF(), src + (i + k * lanes) * sizeof(float)));
      }
      r.store_whole(v, dst + i * sizeof(I), params.far);
    }
    if (i == count) return;
  }
#endif
  (void)params;
  for_vectors<4, sizeof(I)>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    r.store(f(load_at(DF(), in)), out);
  });
}

template <class I>
void pass_f32_to_integer(const RowParams& params, const std::byte* src, std::byte* dst,
                         std::size_t count) {
  const DF df;
  const Rounding<I> r(params);
  const VF scale = hn::Set(df, params.dst_scale);
  const VF reciprocal = hn::Set(df, params.dst_reciprocal);
  const auto exact = [&](VF quotient)
                         HWY_ATTR { return r.shifted(r.clamp(r.zero_if_nan(quotient))); };
  if (!params.quantize) {
    store_integers(r, params, src, dst, count, exact);
  } else if (params.dst_reciprocal == 0) {
    store_integers(r, params, src, dst, count,
                   [&](VF x) HWY_ATTR { return exact(hn::Div(x, scale)); });
  } else if (params.exact_reciprocal) {
    store_integers(r, params, src, dst, count,
                   [&](VF x) HWY_ATTR { return exact(hn::Mul(x, reciprocal)); });
  } else {
    // Bounded before the division, so that no lane overflows: the quotient of a bound rounds to it.
    // A lane that underflows rounds to zero whatever its last places are.
    const VF low = hn::Set(df, params.low * params.dst_scale);
    const VF high = hn::Set(df, params.high * params.dst_scale);
    store_integers(r, params, src, dst, count, [&](VF v) HWY_ATTR {
      const VF x = hn::Min(hn::Max(r.zero_if_nan(v), low), high);
      return r.shifted(divide(x, scale, reciprocal));
    });
  }
}

// ---- normalisation

/// (x - mean) / std.
void pass_normalise(const RowParams& params, const std::byte* src, std::byte* dst,
                    std::size_t count) {
  const DF df;
  const VF mean = hn::Set(df, params.mean);
  const VF b = hn::Set(df, params.std);
  if (params.std_reciprocal == 0) {
    for_vectors<4, 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
      store_at(df, hn::Div(hn::Sub(load_at(df, in), mean), b), out);
    });
    return;
  }
  const bool far = params.far;
  const VF y = hn::Set(df, params.std_reciprocal);
  const VF least = hn::Set(df, 0x1p-60F);
  const VF most = hn::Set(df, 0x1p60F);
  for_vectors<4, 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    const VF a = hn::Sub(load_at(df, in), mean);
    const VF size = hn::Abs(a);
    const auto zero = hn::Eq(a, hn::Zero(df));
    const auto usual = hn::And(hn::Gt(size, least), hn::Lt(size, most));
    if (HWY_LIKELY(hn::AllTrue(df, hn::Or(usual, zero)))) {
      // Of a zero the product has the right sign, the corrected quotient has not.
      store_f32(hn::IfThenElse(zero, hn::Mul(a, y), divide(a, b, y)), out, far);
    } else {
      store_at(df, hn::Div(a, b), out);
    }
  });
}

RowKernel::Pass load_pass(DType src) {
  switch (src) {
    case DType::kF16:
      return pass_f16_to_f32;
    case DType::kBF16:
      return pass_bf16_to_f32;
    case DType::kI8:
      return pass_integer_to_f32<std::int8_t>;
    case DType::kU8:
      return pass_integer_to_f32<std::uint8_t>;
    case DType::kI16:
      return pass_integer_to_f32<std::int16_t>;
    case DType::kU16:
      return pass_integer_to_f32<std::uint16_t>;
    default:
      return nullptr;
  }
}

RowKernel::Pass store_pass(DType dst) {
  switch (dst) {
    case DType::kF16:
      return pass_f32_to_f16;
    case DType::kBF16:
      return pass_f32_to_bf16;
    case DType::kI8:
      return pass_f32_to_integer<std::int8_t>;
    case DType::kU8:
      return pass_f32_to_integer<std::uint8_t>;
    case DType::kI16:
      return pass_f32_to_integer<std::int16_t>;
    case DType::kU16:
      return pass_f32_to_integer<std::uint16_t>;
    default:
      return nullptr;
  }
}

RowKernel row_kernel(DType src, DType dst) {
  RowKernel kernel;
  kernel.load = load_pass(src);
  kernel.store = store_pass(dst);
  if ((kernel.load == nullptr && src != DType::kF32) ||
      (kernel.store == nullptr && dst != DType::kF32)) {
    return {};
  }
  kernel.normalise = pass_normalise;
  kernel.src_size = dtype_bits(src) / 8;
  kernel.dst_size = dtype_bits(dst) / 8;
  return kernel;
}

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace corelane::detail {

HWY_EXPORT(row_kernel);

RowKernel find_row_kernel(DType src, DType dst) noexcept {
  return HWY_DYNAMIC_DISPATCH(row_kernel)(src, dst);
}

void RowKernel::operator()(const RowParams& params, const std::byte* src, std::byte* dst,
                           std::size_t count, bool far) const {
  RowParams last = params;
  last.far = far;
  if (!params.normalise && (load == nullptr || store == nullptr)) {
    (load != nullptr ? load : store)(last, src, dst, count);
    return;
  }
  constexpr std::size_t kPart = 512;
  std::byte reals[kPart * sizeof(float)];
  std::byte normalised[kPart * sizeof(float)];  // Passes do not work in place.
  for (std::size_t i = 0; i < count; i += kPart) {
    const std::size_t n = std::min(kPart, count - i);
    const std::byte* in = src + i * src_size;
    std::byte* const out = dst + i * dst_size;
    if (load != nullptr) {
      load(params, in, reals, n);
      in = reals;
    }
    if (params.normalise) {
      std::byte* const result = store == nullptr ? out : normalised;
      normalise(store == nullptr ? last : params, in, result, n);
      in = result;
    }
    if (store != nullptr) store(last, in, out, n);
  }
}

void finish_far_rows() noexcept { hwy::FlushStream(); }

}  // namespace corelane::detail
#endif
