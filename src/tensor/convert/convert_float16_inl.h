// Vectors of f32, and of f16 and bf16 as f32; included once per instruction set.
#if defined(CORELANE_TENSOR_CONVERT_FLOAT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORELANE_TENSOR_CONVERT_FLOAT16_INL_H_
#undef CORELANE_TENSOR_CONVERT_FLOAT16_INL_H_
#else
#define CORELANE_TENSOR_CONVERT_FLOAT16_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

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

/// As many 16-bit lanes as a vector has f32s.
using DH = hn::Rebind<std::uint16_t, DF>;
using VH = hn::Vec<DH>;

/// Lanes hold at most 16 bits.
HWY_INLINE VH narrow_u16(VU v) { return hn::DemoteTo(DH(), hn::BitCast(DI(), v)); }

HWY_INLINE VF load_bf16(const std::byte* p) {
  return hn::BitCast(DF(), hn::ShiftLeft<16>(load_u16(p)));
}

/// The bits of an f32 of which the upper half is the nearest bf16, ties to even; NaN stays NaN.
HWY_INLINE VU round_to_bf16(VF x) {
  const DU du;
  const VU bits = hn::BitCast(du, x);
  const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const VU rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd);
  const auto is_number = hn::RebindMask(du, hn::Eq(x, x));
  return hn::IfThenElse(is_number, rounded, hn::Or(bits, hn::Set(du, 0x400000)));
}

// The CPU's own f16 conversions keep NaNs and denormals as f16_to_f32 and f32_to_f16 do; Highway's
// emulation for older CPUs does not, so those targets take the integer version.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || \
    (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
HWY_INLINE VF load_f16(const std::byte* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(DF(), hn::BitCast(dh, load_at(d16, p)));
}
HWY_INLINE VH to_f16(VF x) {
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::BitCast(DH(), hn::DemoteTo(dh, x));
}
#else
HWY_INLINE VF load_f16(const std::byte* p) {
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
HWY_INLINE VH to_f16(VF x) {
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
  return narrow_u16(hn::Or(sign, half));
}
#endif
HWY_INLINE void store_f16(VF x, std::byte* p) { store_at(DH(), to_f16(x), p); }

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#endif  // per target
