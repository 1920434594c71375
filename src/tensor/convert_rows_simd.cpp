// Conversion of rows between element types, compiled once per instruction set. Every step is the
// one of convert_reference.cpp, in the same order and precision, so results are equal bit for bit.
#include <cstring>

#include "tensor/convert_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/convert_rows_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
using VU = hn::Vec<DU>;

/// Element types as tags: storage type, and conversion from and to a vector of f32.
struct F32 {
  using T = float;
};
struct F16 {
  using T = std::uint16_t;
};
struct BF16 {
  using T = std::uint16_t;
};
template <class I>
struct Int {
  using T = I;
};

/// A vector at memory that need not be aligned for its type.
template <class D>
HWY_INLINE hn::Vec<D> load_at(D d, const std::byte* p) {
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(p));
}
template <class D>
HWY_INLINE void store_at(D d, hn::Vec<D> v, std::byte* p) {
  hn::StoreU(v, d, reinterpret_cast<hn::TFromD<D>*>(p));
}

HWY_INLINE VU load_u16(const std::byte* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  return hn::PromoteTo(DU(), load_at(d16, p));
}

/// Lanes hold at most 16 bits.
HWY_INLINE void store_u16(VU v, std::byte* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  store_at(d16, hn::DemoteTo(d16, hn::BitCast(DI(), v)), p);
}

HWY_INLINE VF load_real(F32, const RowParams&, const std::byte* p) { return load_at(DF(), p); }

HWY_INLINE VF load_real(BF16, const RowParams&, const std::byte* p) {
  return hn::BitCast(DF(), hn::ShiftLeft<16>(load_u16(p)));
}

// The CPU's own f16 conversions keep NaNs and denormals as f16_to_f32 and f32_to_f16 do; Highway's
// emulation for older CPUs does not, so those targets take the integer version.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || \
    (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
HWY_INLINE VF load_real(F16, const RowParams&, const std::byte* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(DF(), hn::BitCast(dh, load_at(d16, p)));
}
HWY_INLINE void store_real(F16, const RowParams&, VF x, std::byte* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  store_at(d16, hn::BitCast(d16, hn::DemoteTo(dh, x)), p);
}
#else
HWY_INLINE VF load_real(F16, const RowParams&, const std::byte* p) {
  const DF df;
  const DU du;
  const VU h = load_u16(p);
  const VU sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(du, 0x8000)));
  const VU magnitude = hn::And(h, hn::Set(du, 0x7FFF));
  const VU shifted = hn::ShiftLeft<13>(magnitude);
  const VU normal = hn::Add(shifted, hn::Set(du, 0x38000000));
  const VU denormal = hn::BitCast(
      du, hn::Mul(hn::ConvertTo(df, hn::BitCast(DI(), magnitude)), hn::Set(df, 0x1p-24F)));
  VU bits = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x400)), denormal, normal);
  bits = hn::IfThenElse(hn::Eq(magnitude, hn::Set(du, 0x7C00)), hn::Set(du, 0x7F800000), bits);
  bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7C00)),
                        hn::Or(shifted, hn::Set(du, 0x7FC00000)), bits);
  return hn::BitCast(df, hn::Or(sign, bits));
}
HWY_INLINE void store_real(F16, const RowParams&, VF x, std::byte* p) {
  const DF df;
  const DU du;
  const VU bits = hn::BitCast(du, x);
  const VU sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000));
  const VU magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
  const VU odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const VU normal =
      hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, hn::Set(du, 0x38000000 - 0xFFF)), odd));
  const VU denormal =
      hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5F))),
              hn::Set(du, 0x3F000000));
  const VU nan =
      hn::Or(hn::Set(du, 0x7E00), hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3FF)));
  VU half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x38800000)), denormal, normal);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x477FFFFF)), hn::Set(du, 0x7C00), half);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7F800000)), nan, half);
  store_u16(hn::Or(sign, half), p);
}
#endif

template <class I>
HWY_INLINE VF load_real(Int<I>, const RowParams& params, const std::byte* p) {
  const DF df;
  const DI di;
  const hn::Rebind<I, DF> d;
  const VI q = hn::PromoteTo(di, load_at(d, p));
  const VF x = hn::ConvertTo(df, hn::Sub(q, hn::Set(di, params.src_zero)));
  return params.dequantize ? hn::Mul(x, hn::Set(df, params.src_scale)) : x;
}

HWY_INLINE void store_real(F32, const RowParams&, VF x, std::byte* p) { store_at(DF(), x, p); }

HWY_INLINE void store_real(BF16, const RowParams&, VF x, std::byte* p) {
  const DU du;
  const VU bits = hn::BitCast(du, x);
  const VU upper = hn::ShiftRight<16>(bits);
  const VU odd = hn::And(upper, hn::Set(du, 1));
  const VU rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd));
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(du, 0x7FFFFFFF)), hn::Set(du, 0x7F800000));
  store_u16(hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(du, 0x40)), rounded), p);
}

template <class I>
HWY_INLINE void store_real(Int<I>, const RowParams& params, VF x, std::byte* p) {
  const DF df;
  const DI di;
  const hn::Rebind<I, DF> d;
  if (params.quantize) {
    const VF scale = hn::Set(df, params.dst_scale);
    x = params.exact_reciprocal ? hn::Mul(x, scale) : hn::Div(x, scale);
  }
  x = hn::IfThenElseZero(hn::Eq(x, x), x);
  x = hn::Min(hn::Max(x, hn::Set(df, params.low)), hn::Set(df, params.high));
  const VI q = hn::Add(hn::NearestInt(x), hn::Set(di, params.dst_zero));
  store_at(d, hn::DemoteTo(d, q), p);
}

template <class S, class D>
HWY_INLINE void convert_vector(const RowParams& params, const std::byte* src, std::byte* dst) {
  const DF df;
  VF x = load_real(S(), params, src);
  if (params.normalise) {
    x = hn::Div(hn::Sub(x, hn::Set(df, params.mean)), hn::Set(df, params.std));
  }
  store_real(D(), params, x, dst);
}

template <class S, class D>
void convert_row(const RowParams& caller_params, const std::byte* src, std::byte* dst,
                 std::size_t count) {
  // A copy that no store through `dst` can change, so that the loop keeps it in registers.
  const RowParams params = caller_params;
  constexpr std::size_t kSrc = sizeof(typename S::T);
  constexpr std::size_t kDst = sizeof(typename D::T);
  const std::size_t lanes = hn::Lanes(DF());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    convert_vector<S, D>(params, src + i * kSrc, dst + i * kDst);
  }
  if (i == count) return;
  if (count >= lanes) {  // The last vector overlaps its neighbour.
    i = count - lanes;
    convert_vector<S, D>(params, src + i * kSrc, dst + i * kDst);
    return;
  }
  std::byte in[HWY_MAX_BYTES] = {};
  std::byte out[HWY_MAX_BYTES];
  std::memcpy(in, src, count * kSrc);
  convert_vector<S, D>(params, in, out);
  std::memcpy(dst, out, count * kDst);
}

template <class S>
RowKernel kernel_to(DType dst) {
  switch (dst) {
    case DType::kF32:
      return convert_row<S, F32>;
    case DType::kF16:
      return convert_row<S, F16>;
    case DType::kBF16:
      return convert_row<S, BF16>;
    case DType::kI8:
      return convert_row<S, Int<std::int8_t>>;
    case DType::kU8:
      return convert_row<S, Int<std::uint8_t>>;
    case DType::kI16:
      return convert_row<S, Int<std::int16_t>>;
    case DType::kU16:
      return convert_row<S, Int<std::uint16_t>>;
    default:
      return nullptr;
  }
}

RowKernel row_kernel(DType src, DType dst) {
  switch (src) {
    case DType::kF32:
      return kernel_to<F32>(dst);
    case DType::kF16:
      return kernel_to<F16>(dst);
    case DType::kBF16:
      return kernel_to<BF16>(dst);
    case DType::kI8:
      return kernel_to<Int<std::int8_t>>(dst);
    case DType::kU8:
      return kernel_to<Int<std::uint8_t>>(dst);
    case DType::kI16:
      return kernel_to<Int<std::int16_t>>(dst);
    case DType::kU16:
      return kernel_to<Int<std::uint16_t>>(dst);
    default:
      return nullptr;
  }
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

}  // namespace corelane::detail
#endif
