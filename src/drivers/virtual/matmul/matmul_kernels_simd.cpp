#include <algorithm>
#include <cmath>
#include <cstring>

#include "drivers/virtual/matmul/matmul_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "drivers/virtual/matmul/matmul_kernels_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "tensor/convert/convert_float16_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::drivers::virtual_npu {
namespace HWY_NAMESPACE {

// Each function is compiled once for each instruction set, in HWY_NAMESPACE, and chosen by the CPU
// at its first call (the exports at the end).

namespace hn = hwy::HWY_NAMESPACE;
using DI = hn::CappedTag<std::int32_t, kPanelColumns>;
using DF = hn::Rebind<float, DI>;
using VI = hn::Vec<DI>;
using VF = hn::Vec<DF>;
constexpr std::size_t kLanes = hn::MaxLanes(DI());

void unpack_i4(const std::uint8_t* packed, std::size_t first, std::size_t count, std::int8_t* out) {
  // A nibble with its sign: flipping bit 3 and subtracting 8 extends it.
  const auto one = [&](std::size_t i) {
    const unsigned nibble = packed[i / 2] >> (i % 2 * 4) & 0xFU;
    return static_cast<std::int8_t>(static_cast<int>(nibble ^ 8U) - 8);
  };
  std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  if (first % 2 != 0 && count > 0) out[done++] = one(first);
  const hn::CappedTag<std::uint8_t, 64> d;
  const hn::RebindToSigned<decltype(d)> ds;
  const auto low = hn::Set(d, 0xF);
  const auto sign = hn::Set(d, 8);
  const std::size_t lanes = hn::Lanes(d);
  for (; count - done >= 2 * lanes; done += 2 * lanes) {
    const auto bytes = hn::LoadU(d, packed + (first + done) / 2);
    const auto even = hn::And(bytes, low);
    const auto odd = hn::ShiftRight<4>(
        hn::BitCast(hn::Repartition<std::uint16_t, decltype(d)>(), hn::AndNot(low, bytes)));
    const auto extend = [&](auto v) HWY_ATTR {
      return hn::BitCast(ds, hn::Sub(hn::Xor(hn::BitCast(d, v), sign), sign));
    };
    hn::StoreInterleaved2(extend(even), extend(odd), ds, out + done);
  }
#endif
  for (; done < count; ++done) out[done] = one(first + done);
}

HWY_INLINE VF load_f16(const std::uint16_t* in) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // Highway's own takes infinities and NaN for numbers where the CPU has no such instruction.
  return detail::HWY_NAMESPACE::load_f16(reinterpret_cast<const std::byte*>(in));
#else
  const hn::Rebind<std::uint16_t, DF> du;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(DF(), hn::BitCast(dh, hn::LoadU(du, in)));
#endif
}

void widen_f16(const std::uint16_t* in, std::size_t count, float* out) {
  const DF d;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(load_f16(in + i), d, out + i);
  if (i == count) return;
  // The rest in a vector of its own: nothing is read beyond `in`.
  HWY_ALIGN std::uint16_t rest[kLanes] = {};
  HWY_ALIGN float wide[kLanes];
  std::copy(in + i, in + count, rest);
  hn::Store(load_f16(rest), d, wide);
  std::copy(wide, wide + (count - i), out + i);
}

/// kLanes bytes, each widened to 32 bits.
HWY_INLINE VI load_i8(const std::int8_t* in) {
  return hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<std::int8_t, DI>(), in));
}

std::int32_t sum_i8(const std::int8_t* in, std::size_t count) {
  VI sum = hn::Zero(DI());
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sum = hn::Add(sum, load_i8(in + i));
  std::int32_t total = hn::GetLane(hn::SumOfLanes(DI(), sum));
  for (; i < count; ++i) total += in[i];
  return total;
}

void add_i8(const std::int8_t* in, std::size_t count, std::int32_t* sums) {
  const DI d;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), load_i8(in + i)), d, sums + i);
  for (; i < count; ++i) sums[i] += in[i];
}

void pair_i8(const std::int8_t* in, std::size_t count, std::int32_t* pairs) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::int16_t, DI> d16;
  const hn::Rebind<std::int8_t, decltype(d16)> d8;
  const DI d;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes)
    hn::StoreU(hn::BitCast(d, hn::PromoteTo(d16, hn::LoadU(d8, in + i))), d, pairs + i / 2);
#endif
  for (; i < count; i += 2) {
    // Its two's complement: the sign goes on through the 16 bits.
    const auto even = static_cast<std::uint16_t>(std::int16_t{in[i]});
    const auto odd = static_cast<std::uint16_t>(i + 1 < count ? in[i + 1] : 0);
    pairs[i / 2] = static_cast<std::int32_t>(even | static_cast<std::uint32_t>(odd) << 16);
  }
}

#if HWY_TARGET == HWY_SCALAR
void multiply_i8(const MultiplyI8& p, std::size_t first, std::size_t last) {
  const std::size_t pairs = (p.k + 1) / 2;
  for (std::size_t panel = first; panel < last; ++panel)
    for (std::size_t row = 0; row < p.rows; ++row) {
      const std::int8_t* b = p.panels + panel * panel_bytes(p.k);
      std::int32_t sums[kPanelColumns] = {};
      for (std::size_t i = 0; i < pairs; ++i, b += 2 * kPanelColumns) {
        const std::int32_t pair = p.pairs[row * pairs + i];
        const std::int32_t even = static_cast<std::int16_t>(pair);
        const std::int32_t odd = pair >> 16;
        for (std::size_t c = 0; c < kPanelColumns; ++c)
          sums[c] += even * b[2 * c] + odd * b[2 * c + 1];
      }
      const std::size_t column = panel * kPanelColumns;
      std::copy(sums, sums + std::min(kPanelColumns, p.n - column), p.c + row * p.n + column);
    }
}
#else
constexpr std::size_t kParts = kPanelColumns / kLanes;  ///< Vectors across a panel.

/// R rows of one panel.
template <std::size_t R>
HWY_INLINE void panel_rows(const MultiplyI8& p, std::size_t panel, std::size_t row) {
  const DI d;
  const hn::Repartition<std::int16_t, DI> d16;
  const hn::Rebind<std::int8_t, decltype(d16)> d8;
  const std::size_t pairs = (p.k + 1) / 2;
  const std::int8_t* b = p.panels + panel * panel_bytes(p.k);
  const std::int32_t* a = p.pairs + row * pairs;
  // Odd and even products gather in two sums each, which are brought together at the end.
  VI low[R][kParts];
  VI high[R][kParts];
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t v = 0; v < kParts; ++v) low[r][v] = high[r][v] = hn::Zero(d);
  for (std::size_t i = 0; i < pairs; ++i, b += 2 * kPanelColumns)
    for (std::size_t v = 0; v < kParts; ++v) {
      const auto w = hn::PromoteTo(d16, hn::LoadU(d8, b + v * 2 * kLanes));
      for (std::size_t r = 0; r < R; ++r)
        low[r][v] = hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, hn::Set(d, a[r * pairs + i])),
                                                  w, low[r][v], high[r][v]);
    }
  const std::size_t first = panel * kPanelColumns;
  HWY_ALIGN std::int32_t sums[kPanelColumns];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < kParts; ++v)
      hn::Store(hn::RearrangeToOddPlusEven(low[r][v], high[r][v]), d, sums + v * kLanes);
    std::copy(sums, sums + std::min(kPanelColumns, p.n - first), p.c + (row + r) * p.n + first);
  }
}

void multiply_i8(const MultiplyI8& p, std::size_t first, std::size_t last) {
  // Sums and one vector of B fit in 16 registers.
  constexpr std::size_t kRows = kParts == 1 ? 8 : kParts == 2 ? 4 : 2;
  for (std::size_t panel = first; panel < last; ++panel) {
    std::size_t row = 0;
    for (; row + kRows <= p.rows; row += kRows) panel_rows<kRows>(p, panel, row);
    for (; row < p.rows; ++row) panel_rows<1>(p, panel, row);
  }
}
#endif  // HWY_TARGET == HWY_SCALAR

// ---- few rows of f32 by B as it was given

constexpr std::size_t kLeanVectors = 4;  ///< Side by side, to hide the latency of the sums.

/// How an element of B becomes f32; `zero` is the group's zero points, where there are any.
struct LoadHalves {
  using T = std::uint16_t;
  HWY_INLINE VF operator()(const T* in, VI) const { return load_f16(in); }
};
struct LoadBytes {
  using T = std::int8_t;
  HWY_INLINE VF operator()(const T* in, VI) const { return hn::ConvertTo(DF(), load_i8(in)); }
};
struct LoadBytesLessZero {
  using T = std::int8_t;
  HWY_INLINE VF operator()(const T* in, VI zero) const {
    return hn::ConvertTo(DF(), hn::Sub(load_i8(in), zero));
  }
};

/// Rows [row, row + R) by the columns [at, at + kLeanVectors * kLanes) of a panel.
template <std::size_t R, class Load>
HWY_INLINE void lean_tile(const MultiplyLean& p, std::size_t panel, std::size_t at, std::size_t row,
                          Load load) {
  const DF d;
  const auto* b = static_cast<const typename Load::T*>(p.panels) + panel * p.k * kLeanColumns + at;
  const float* a = p.a + row * p.k;
  const std::size_t column = panel * kLeanColumns + at;
  const std::size_t stride = lean_columns(p.n);
  VF total[R][kLeanVectors];
  VF part[R][kLeanVectors];
  VI zero[kLeanVectors];
  for (std::size_t v = 0; v < kLeanVectors; ++v) {
    zero[v] = hn::Zero(DI());
    for (std::size_t r = 0; r < R; ++r) total[r][v] = hn::Zero(d);
  }
  // Sums of a group first, then scaled: the scale is applied once for `group` products.
  const std::size_t group = p.scales == nullptr ? p.k : p.group;
  for (std::size_t first = 0, g = 0; first < p.k; first += group, ++g) {
    for (std::size_t v = 0; v < kLeanVectors; ++v) {
      if (p.zeros != nullptr) zero[v] = hn::LoadU(DI(), p.zeros + g * stride + column + v * kLanes);
      for (std::size_t r = 0; r < R; ++r) part[r][v] = hn::Zero(d);
    }
    const std::size_t last = std::min(p.k, first + group);
    for (std::size_t k = first; k < last; ++k) {
      const auto* line = b + k * kLeanColumns;
      for (std::size_t v = 0; v < kLeanVectors; ++v) {
        const VF w = load(line + v * kLanes, zero[v]);
        for (std::size_t r = 0; r < R; ++r)
          part[r][v] = hn::MulAdd(hn::Set(d, a[r * p.k + k]), w, part[r][v]);
      }
    }
    for (std::size_t v = 0; v < kLeanVectors; ++v)
      for (std::size_t r = 0; r < R; ++r)
        total[r][v] =
            p.scales == nullptr
                ? part[r][v]
                : hn::MulAdd(part[r][v], hn::LoadU(d, p.scales + g * stride + column + v * kLanes),
                             total[r][v]);
  }
  HWY_ALIGN float sums[kLeanVectors * kLanes];
  // A tile wholly beyond N has been computed on padding.
  if (column >= p.n) return;
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < kLeanVectors; ++v) hn::Store(total[r][v], d, sums + v * kLanes);
    std::copy(sums, sums + std::min(kLeanVectors * kLanes, p.n - column),
              p.c + (row + r) * p.n + column);
  }
}

template <class Load>
HWY_INLINE void lean_panels(const MultiplyLean& p, std::size_t first, std::size_t last, Load load) {
  // The sums of a group must fit in the registers.
  constexpr std::size_t kRows = kLanes == 16 ? 4 : 2;
  for (std::size_t panel = first; panel < last; ++panel) {
    std::size_t row = 0;
    for (; row + kRows <= p.rows; row += kRows)
      for (std::size_t at = 0; at < kLeanColumns; at += kLeanVectors * kLanes)
        lean_tile<kRows>(p, panel, at, row, load);
    for (; row < p.rows; ++row)
      for (std::size_t at = 0; at < kLeanColumns; at += kLeanVectors * kLanes)
        lean_tile<1>(p, panel, at, row, load);
  }
}

void multiply_lean(const MultiplyLean& p, std::size_t first, std::size_t last) {
  if (p.halves) return lean_panels(p, first, last, LoadHalves());
  if (p.zeros != nullptr) return lean_panels(p, first, last, LoadBytesLessZero());
  lean_panels(p, first, last, LoadBytes());
}

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

/// `count` of a vector's elements; nothing is written past them.
template <class D, class V, class T>
HWY_INLINE void store(D d, V v, std::size_t count, T* out) {
  if (count == kLanes) return hn::StoreU(v, d, out);
  HWY_ALIGN T copy[kLanes];
  hn::Store(v, d, copy);
  std::memcpy(out, copy, count * sizeof(T));
}

/// One factor for all, or one for each column; read past the end up to kFinishSlack.
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

HWY_EXPORT(unpack_i4);
HWY_EXPORT(widen_f16);
HWY_EXPORT(sum_i8);
HWY_EXPORT(add_i8);
HWY_EXPORT(pair_i8);
HWY_EXPORT(multiply_i8);
HWY_EXPORT(multiply_lean);
HWY_EXPORT(finish_i32);
HWY_EXPORT(finish_i16);
HWY_EXPORT(finish_f32);
HWY_EXPORT(finish_i8);
HWY_EXPORT(scale_f32);
HWY_EXPORT(scale_f32_to_i8);

void unpack_i4(const std::uint8_t* packed, std::size_t first, std::size_t count, std::int8_t* out) {
  HWY_DYNAMIC_DISPATCH(unpack_i4)(packed, first, count, out);
}
void widen_f16(const std::uint16_t* in, std::size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(widen_f16)(in, count, out);
}
std::int32_t sum_i8(const std::int8_t* in, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(sum_i8)(in, count);
}
void add_i8(const std::int8_t* in, std::size_t count, std::int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(add_i8)(in, count, sums);
}
void pair_i8(const std::int8_t* in, std::size_t count, std::int32_t* pairs) {
  HWY_DYNAMIC_DISPATCH(pair_i8)(in, count, pairs);
}
void multiply_i8(const MultiplyI8& product, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(multiply_i8)(product, first, last);
}
void multiply_lean(const MultiplyLean& product, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(multiply_lean)(product, first, last);
}
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
