#include <algorithm>
#include <cmath>
#include <cstring>

#include "drivers/virtual/matmul/matmul_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "drivers/virtual/matmul/matmul_finish_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace corelane::drivers::virtual_npu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using DI = hn::CappedTag<std::int32_t, kPanelColumns>;
using DF = hn::Rebind<float, DI>;
using VI = hn::Vec<DI>;
using VF = hn::Vec<DF>;
constexpr std::size_t kLanes = hn::MaxLanes(DI());

// ---- from sums to C. A row is done in whole vectors; its rest in a vector's worth of copies.

/// Calls body(i, count, sums, add, zero) with `kLanes` of each at a time.
template <class Body>
HWY_INLINE void for_sums(const FinishRow& row, Body body) {
  const DI d;
  const auto* sums = static_cast<const std::int32_t*>(row.sums);
  const VI row_sum = hn::Set(d, row.row_sum);
  const auto whole = [&](std::size_t i) HWY_ATTR {
    VI s = hn::LoadU(d, sums + i);
    if (row.add != nullptr) s = hn::Add(s, hn::LoadU(d, row.add + i));
    if (row.zero != nullptr) s = hn::Sub(s, hn::Mul(hn::LoadU(d, row.zero + i), row_sum));
    return s;
  };
  std::size_t i = 0;
  for (; i + kLanes <= row.count; i += kLanes) body(i, kLanes, whole(i));
  if (i == row.count) return;
  // The rest by itself: sums, unlike factors, have no slack after them. Unsigned, since sums may
  // wrap before the correction brings them back.
  const std::size_t rest = row.count - i;
  HWY_ALIGN std::int32_t copy[kLanes] = {};
  std::memcpy(copy, sums + i, rest * sizeof(std::int32_t));
  for (std::size_t j = 0; j < rest; ++j) {
    auto s = static_cast<std::uint32_t>(copy[j]);
    if (row.add != nullptr) s += static_cast<std::uint32_t>(row.add[i + j]);
    if (row.zero != nullptr) s -= static_cast<std::uint32_t>(row.zero[i + j] * row.row_sum);
    copy[j] = static_cast<std::int32_t>(s);
  }
  body(i, rest, hn::Load(d, copy));
}

template <class D, class V, class T>
HWY_INLINE void store(D d, V v, std::size_t count, T* out) {
  if (count == kLanes) return hn::StoreU(v, d, out);
  HWY_ALIGN T copy[kLanes];
  hn::Store(v, d, copy);
  std::memcpy(out, copy, count * sizeof(T));
}

HWY_INLINE VF load_factors(const FinishRow& row, std::size_t i) {
  if (row.float_factors == nullptr) return hn::Set(DF(), static_cast<float>(row.factor));
  return hn::LoadU(DF(), row.float_factors + i);
}

/// round_half_even(s * factor) + zero point in f64, within i8.
template <class V>
HWY_INLINE void store_i8(const FinishRow& row, std::size_t i, std::size_t count, V sums,
                         std::int8_t* out) {
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(count);
  const double factor = row.factors == nullptr ? row.factor : row.factors[i];
  const double x = std::nearbyint(static_cast<double>(hn::GetLane(sums)) * factor) + row.zero_point;
  out[i] = static_cast<std::int8_t>(std::min(std::max(x, -128.0), 127.0));
#else
  const hn::RebindToSigned<DF> d;
  using DHalf = hn::Half<DI>;
  const hn::Rebind<double, DHalf> dd;
  const hn::Rebind<hn::TFromV<V>, DHalf> ds;
  constexpr std::size_t kHalf = kLanes / 2;
  // In halves: a vector of f64 has half as many lanes.
  const auto load = [&](std::size_t at) HWY_ATTR {
    return row.factors == nullptr ? hn::Set(dd, row.factor) : hn::LoadU(dd, row.factors + at);
  };
  const auto zero = hn::Set(dd, static_cast<double>(row.zero_point));
  const auto half = [&](auto s, std::size_t at) HWY_ATTR {
    const auto x = hn::Add(hn::Round(hn::Mul(hn::PromoteTo(dd, s), load(at))), zero);
    const auto low = hn::Max(x, hn::Set(dd, -128.0));
    return hn::DemoteTo(DHalf(), hn::Min(low, hn::Set(dd, 127.0)));
  };
  const auto lower = half(hn::LowerHalf(ds, sums), i);
  const auto upper = half(hn::UpperHalf(ds, sums), i + kHalf);
  const auto both = hn::Combine(d, upper, lower);
  const hn::Rebind<std::int8_t, DI> d8;
  store(d8, hn::DemoteTo(d8, both), count, out + i);
#endif
}

void finish_i32(const FinishRow& row, std::int32_t* out) {
  for_sums(row, [&](std::size_t i, std::size_t count, VI s)
                    HWY_ATTR { store(DI(), s, count, out + i); });
}

void finish_i16(const FinishRow& row, std::int16_t* out) {
  const hn::Rebind<std::int16_t, DI> d16;
  for_sums(row, [&](std::size_t i, std::size_t count, VI s)
                    HWY_ATTR { store(d16, hn::DemoteTo(d16, s), count, out + i); });
}

void finish_f32(const FinishRow& row, float* out) {
  for_sums(row, [&](std::size_t i, std::size_t count, VI s) HWY_ATTR {
    store(DF(), hn::Mul(hn::ConvertTo(DF(), s), load_factors(row, i)), count, out + i);
  });
}

void finish_i8(const FinishRow& row, std::int8_t* out) {
  for_sums(row, [&](std::size_t i, std::size_t count, VI s)
                    HWY_ATTR { store_i8(row, i, count, s, out); });
}

/// The same for sums that are f32 already.
template <class Body>
HWY_INLINE void for_floats(const FinishRow& row, Body body) {
  const auto* sums = static_cast<const float*>(row.sums);
  std::size_t i = 0;
  for (; i + kLanes <= row.count; i += kLanes) body(i, kLanes, hn::LoadU(DF(), sums + i));
  if (i == row.count) return;
  HWY_ALIGN float copy[kLanes] = {};
  std::memcpy(copy, sums + i, (row.count - i) * sizeof(float));
  body(i, row.count - i, hn::Load(DF(), copy));
}

void scale_f32(const FinishRow& row, float* out) {
  for_floats(row, [&](std::size_t i, std::size_t count, VF s)
                      HWY_ATTR { store(DF(), hn::Mul(s, load_factors(row, i)), count, out + i); });
}

void scale_f32_to_i8(const FinishRow& row, std::int8_t* out) {
  for_floats(row, [&](std::size_t i, std::size_t count, VF s)
                      HWY_ATTR { store_i8(row, i, count, s, out); });
}

}  // namespace HWY_NAMESPACE
}  // namespace corelane::drivers::virtual_npu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace corelane::drivers::virtual_npu {

HWY_EXPORT(finish_i32);
HWY_EXPORT(finish_i16);
HWY_EXPORT(finish_f32);
HWY_EXPORT(finish_i8);
HWY_EXPORT(scale_f32);
HWY_EXPORT(scale_f32_to_i8);

void finish_i32(const FinishRow& row, std::int32_t* out) {
  HWY_DYNAMIC_DISPATCH(finish_i32)(row, out);
}
void finish_i16(const FinishRow& row, std::int16_t* out) {
  HWY_DYNAMIC_DISPATCH(finish_i16)(row, out);
}
void finish_f32(const FinishRow& row, float* out) { HWY_DYNAMIC_DISPATCH(finish_f32)(row, out); }
void finish_i8(const FinishRow& row, std::int8_t* out) {
  HWY_DYNAMIC_DISPATCH(finish_i8)(row, out);
}
void scale_f32(const FinishRow& row, float* out) { HWY_DYNAMIC_DISPATCH(scale_f32)(row, out); }
void scale_f32_to_i8(const FinishRow& row, std::int8_t* out) {
  HWY_DYNAMIC_DISPATCH(scale_f32_to_i8)(row, out);
}

}  // namespace corelane::drivers::virtual_npu
#endif  // HWY_ONCE
