// Panels: as many channels x pixels as a vector of 1- or 2-byte elements has lanes (or half as many
// channels), by way of a buffer in the first cache level. Every line of every row is read once and
// every pixel written whole; included once per instruction set.
#if defined(CORELANE_TENSOR_CONVERT_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORELANE_TENSOR_CONVERT_PANELS_INL_H_
#undef CORELANE_TENSOR_CONVERT_PANELS_INL_H_
#else
#define CORELANE_TENSOR_CONVERT_PANELS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "tensor/convert/convert_transpose_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// Pixels of the panels that are side by side: so few that their buffer leaves room in the first
/// cache level. Rows that lie in memory, or are written as a whole, should be longer.
constexpr std::size_t kPanelPixels = 256;
template <class T>
constexpr std::size_t kRunPixels = 512 / sizeof(T);

/// True for rows that lie a multiple of 4096 bytes apart: they share the sets of the first cache
/// level, which has fewer ways than a square of bytes has rows.
template <class T>
HWY_INLINE bool rows_share_sets(std::byte* const* rows) {
  const auto address = [rows](std::size_t c) { return reinterpret_cast<std::uintptr_t>(rows[c]); };
  return sizeof(T) == 1 && (address(1) - address(0)) % 4096 == 0;
}

/// Rows of wider elements are lines enough for the caches to wait for; so many rows before they are
/// written their lines are fetched.
constexpr std::size_t kRowsAhead = 4;
template <class D, class R>
HWY_INLINE void prefetch_vector(const std::byte* row, std::size_t pixel) {
#pragma GCC unroll 4
  for (std::size_t i = 0; i < hn::MaxLanes(D()) * R::kSize; i += kLine)
    __builtin_prefetch(row + pixel * R::kSize + i, 0, 3);
}

/// Stores one pixel of a whole vector, or two pixels of half a vector each.
template <std::size_t kPixels, class D, class T = hn::TFromD<D>>
HWY_INLINE void store_column(D d, hn::Vec<D> v, T* dst, std::size_t stride, bool stream) {
  if (kPixels == 1 || stride * kPixels == hn::MaxLanes(d)) {
    store(d, v, dst, stream);
    return;
  }
  const hn::Half<D> half;
  hn::StoreU(hn::LowerHalf(half, v), half, dst);
  hn::StoreU(hn::UpperHalf(half, v), half, dst + stride);
}
template <std::size_t kPixels, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_column(D d, const T* src, std::size_t stride) {
  if (kPixels == 1 || stride * kPixels == hn::MaxLanes(d)) return hn::LoadU(d, src);
  const hn::Half<D> half;
  return hn::Combine(d, hn::LoadU(half, src + stride), hn::LoadU(half, src));
}

/// kGroups * kSide channels x Lanes(d) pixels, `panels` times side by side.
template <std::size_t kGroups, class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void interleave_panels(D d, R& as, const std::byte* const* rows, std::size_t pixel,
                                  T* dst, std::size_t stride, std::size_t panels,
                                  Streaming streaming) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  constexpr std::size_t kPanel = kGroups * kSide<T> * kLanes;
  HWY_ALIGN T buffer[kRunPixels<T> / kLanes * kPanel];
  for (std::size_t g = 0; g < kGroups; ++g) {
    for (std::size_t k = 0; k < panels; ++k) {
      const std::size_t at = pixel + k * kLanes;
      hn::Vec<D> v[kSide<T>];
      const std::byte* const* row = rows + g * kSide<T>;
      if (streaming.prefetch) {
        // The next group, or the first one of the next panels: so few lines that they do not
        // displace each other although planes often lie a power of two apart.
        const bool last = g + 1 == kGroups;
        prefetch_rows(last ? rows : row + kSide<T>, kSide<T>,
                      (at + (last ? panels * kLanes : 0)) * R::kSize);
      }
#pragma GCC unroll 16
      for (std::size_t c = 0; c < kSide<T>; ++c) v[c] = as.load(row[c], at);
      transpose_in_blocks(d, v);
#pragma GCC unroll 16
      for (std::size_t j = 0; j < kSide<T>; ++j)
        hn::Store(v[j], d, buffer + k * kPanel + (j * kGroups + g) * kLanes);
    }
  }
  const bool stream = streaming.store && begins_line(dst) && stride % (kGroups * kSide<T>) == 0;
  for (std::size_t k = 0; k < panels; ++k) {
    // A column: the vectors of all groups for one pixel per block, or for as many as fill a vector.
    constexpr std::size_t kColumn = kBlocks<D> / kGroups;
    for (std::size_t j = 0; j < kSide<T>; j += kColumn) {
      hn::Vec<D> v[kBlocks<D>];
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kBlocks<D>; ++i)
        v[i] = hn::Load(d, buffer + k * kPanel + (j * kGroups + i) * kLanes);
      transpose_blocks(d, v, 1);
      T* const to = dst + (k * kLanes + j) * stride;
#pragma GCC unroll 4
      for (std::size_t b = 0; b < kBlocks<D>; ++b)
        store_column<kColumn>(d, v[b], to + b * kSide<T> * stride, stride, stream);
    }
  }
}

/// As many channels x pixels, out of pixels. Rows are written one group after the other: more of
/// them than the CPU's prefetchers follow would wait for every line. With `in_runs` each row is
/// written as a whole.
template <std::size_t kGroups, class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_panels(D d, R as, const T* src, std::size_t stride,
                                    std::byte* const* rows, std::size_t pixel, std::size_t panels,
                                    bool prefetch, bool stream, bool in_runs) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  constexpr std::size_t kPanel = kGroups * kSide<T> * kLanes;
  constexpr std::size_t kColumn = kBlocks<D> / kGroups;
  HWY_ALIGN T buffer[kRunPixels<T> / kLanes * kPanel];
  for (std::size_t k = 0; k < panels; ++k) {
    const T* const from = src + k * kLanes * stride;
    for (std::size_t j = 0; j < kSide<T>; j += kColumn) {
      hn::Vec<D> v[kBlocks<D>];
#pragma GCC unroll 4
      for (std::size_t b = 0; b < kBlocks<D>; ++b) {
        v[b] = load_column<kColumn>(d, from + (b * kSide<T> + j) * stride, stride);
        // The next panel in the order of its lines, which the loads of a panel do not keep.
        if (prefetch)
          __builtin_prefetch(from + (kLanes + j * kBlocks<D> + b * kColumn) * stride, 0, 3);
      }
      transpose_blocks(d, v, 1);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kBlocks<D>; ++i)
        hn::Store(v[i], d, buffer + k * kPanel + (j * kGroups + i) * kLanes);
    }
  }
  for (std::size_t g = 0; g < kGroups; ++g) {
    for (std::size_t k = 0; k < panels; ++k) {
      hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
      for (std::size_t j = 0; j < kSide<T>; ++j)
        v[j] = hn::Load(d, buffer + k * kPanel + (j * kGroups + g) * kLanes);
      transpose_in_blocks(d, v);
      if (in_runs) {
#pragma GCC unroll 16
        for (std::size_t c = 0; c < kSide<T>; ++c)
          hn::Store(v[c], d, buffer + k * kPanel + (c * kGroups + g) * kLanes);
        continue;
      }
#pragma GCC unroll 16
      for (std::size_t c = 0; c < kSide<T>; ++c)
        as.store(v[c], rows[g * kSide<T> + c], pixel + k * kLanes, stream);
    }
    for (std::size_t c = 0; in_runs && c < kSide<T>; ++c) {
      // Read once: a store of bytes could change the list, for all that the compiler knows.
      std::byte* const row = rows[g * kSide<T> + c];
      const std::size_t ahead = g * kSide<T> + c + kRowsAhead;
      const bool fetches = R::kSize > sizeof(T) && ahead < kGroups * kSide<T>;
      const std::byte* const next = fetches ? rows[ahead] : nullptr;
      for (std::size_t k = 0; k < panels; ++k) {
        const auto v = hn::Load(d, buffer + k * kPanel + (c * kGroups + g) * kLanes);
        if (fetches) prefetch_vector<D, R>(next, pixel + k * kLanes);
        as.store(v, row, pixel + k * kLanes, stream);
      }
    }
  }
}

/// Calls f(pixel, panels) for `count` pixels, at least a panel's, and at most `most` at once; the
/// last call overlaps.
template <class F>
HWY_INLINE void for_panels(std::size_t lanes, std::size_t most, std::size_t count, F f) {
  for (std::size_t p = 0; p < count;) {
    const std::size_t left = std::min(most, count - p);
    const std::size_t panels = std::max(left / lanes, std::size_t{1});
    f(std::min(p, count - panels * lanes), panels);
    p += panels * lanes;
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#endif  // per target
