#include <algorithm>

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

HWY_INLINE hn::Vec<DF> load_f16(const std::uint16_t* in) {
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
    const auto even = static_cast<std::uint16_t>(in[i]);
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

struct LoadHalves {
  using T = std::uint16_t;
  HWY_INLINE hn::Vec<DF> operator()(const T* in, VI) const { return load_f16(in); }
};
struct LoadBytes {
  using T = std::int8_t;
  HWY_INLINE hn::Vec<DF> operator()(const T* in, VI) const {
    return hn::ConvertTo(DF(), load_i8(in));
  }
};
struct LoadBytesLessZero {
  using T = std::int8_t;
  HWY_INLINE hn::Vec<DF> operator()(const T* in, VI zero) const {
    return hn::ConvertTo(DF(), hn::Sub(load_i8(in), zero));
  }
};

/// Rows [row, row + R) by the columns [at, at + kLeanVectors * kLanes) of a panel.
template <std::size_t R, class Load>
HWY_INLINE void lean_tile(const MultiplyLean& p, std::size_t panel, std::size_t at, std::size_t row,
                          Load load) {
  using VF = hn::Vec<DF>;
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

}  // namespace corelane::drivers::virtual_npu
#endif  // HWY_ONCE
