// Tiles of many channels. Panels are as many channels x pixels as a vector has lanes, or half as
// many channels; what fills no panel goes in squares. Every line of every row is read or written
// once, and pixels one after the other; included once per instruction set.
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

/// Panels pay where a vector has several blocks of several lanes.
template <class D>
constexpr bool has_panels = sizeof(hn::TFromD<D>) <= 4 && kBlocks<D> >= 2;

/// Channels of the panels in which `channels` are moved; 0: they fill none.
template <class D>
constexpr std::size_t panel_channels(std::size_t channels) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  if (!has_panels<D>) return 0;
  if (channels >= kLanes) return kLanes;
  return kBlocks<D> == 4 && channels >= kLanes / 2 ? kLanes / 2 : 0;
}

/// Stores vectors of kColumn pixels each, one after the other.
template <std::size_t kColumn, class D, class V, std::size_t kCount>
HWY_INLINE void store_pixels(D d, V (&v)[kCount], hn::TFromD<D>* to, std::size_t stride,
                             bool stream) {
  static_assert(kColumn == 1 || kColumn == 2);
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  if (stride * kColumn == kLanes) {
#pragma GCC unroll 16
    for (std::size_t j = 0; j < kCount; ++j) store(d, v[j], to + j * kLanes, stream);
    return;
  }
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kCount; ++j, to += kColumn * stride) {
    if constexpr (kColumn == 1) {
      store(d, v[j], to, stream);
    } else {
      const hn::Half<D> half;
      hn::StoreU(hn::LowerHalf(half, v[j]), half, to);
      hn::StoreU(hn::UpperHalf(half, v[j]), half, to + stride);
    }
  }
}

/// kGroups * kSide channels x Lanes(d) pixels out of a buffer: Lanes(d) pixels of one channel after
/// the other, dealt out to the blocks that one vector of pixels takes.
template <std::size_t kGroups, class D, class T = hn::TFromD<D>>
HWY_INLINE void write_panel(D d, const T* buffer, T* dst, std::size_t stride, bool stream) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  constexpr std::size_t kColumn = kBlocks<D> / kGroups;  // Pixels of a vector.
  for (std::size_t p = 0; p < kLanes; p += kSide<T> * kColumn) {
    hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
    for (std::size_t c = 0; c < kSide<T>; ++c) {
      // A block of each group, then the next ones.
      v[c] = load_blocks_at(d, [&](std::size_t b) HWY_ATTR {
        return buffer + (b % kGroups * kSide<T> + c) * kLanes + p + b / kGroups * kSide<T>;
      });
    }
    transpose_in_blocks(d, v);
    if constexpr (kColumn == 2 && !has_shuffle<D>) {
      // Pixel j lies beside pixel kSide + j.
      hn::Vec<D> ordered[kSide<T>];
#pragma GCC unroll 16
      for (std::size_t j = 0; j < kSide<T>; j += 2) {
        ordered[j / 2] = hn::ConcatLowerLower(d, v[j + 1], v[j]);
        ordered[kSide<T> / 2 + j / 2] = hn::ConcatUpperUpper(d, v[j + 1], v[j]);
      }
      store_pixels<kColumn>(d, ordered, dst + p * stride, stride, stream);
    } else {
      store_pixels<kColumn>(d, v, dst + p * stride, stride, stream);
    }
  }
}

/// kVectors panels side by side. Each row is read as whole vectors, since rows often share a set of
/// the first cache level, where their lines do not stay.
template <std::size_t kGroups, std::size_t kVectors, class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void interleave_rows(D d, R& as, const std::byte* const* rows, std::size_t pixel, T* dst,
                                std::size_t stride, bool stream) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  constexpr std::size_t kChannels = kGroups * kSide<T>;
  constexpr std::size_t kPanel = kChannels * kLanes;
  HWY_ALIGN T buffer[kVectors * kPanel];
#pragma GCC unroll 4
  for (std::size_t c = 0; c < kChannels; ++c) {
    const std::byte* const row = rows[c];
#pragma GCC unroll 2
    for (std::size_t i = 0; i < kVectors; ++i) {
      const auto v = as.load(row, pixel + i * kLanes);
      hn::Store(deal_lanes<kBlocks<D> / kGroups>(d, v), d, buffer + i * kPanel + c * kLanes);
    }
  }
  stream = stream && begins_line(dst) && stride % kChannels == 0;
  for (std::size_t i = 0; i < kVectors; ++i)
    write_panel<kGroups>(d, buffer + i * kPanel, dst + i * kLanes * stride, stride, stream);
}

/// At least kGroups * kSide channels and Lanes(d) pixels; the last of either overlap.
template <std::size_t kGroups, class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void interleave_groups(D d, R& as, const std::byte* const* rows, std::size_t channels,
                                  T* dst, std::size_t stride, std::size_t count,
                                  Streaming streaming) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  constexpr std::size_t kChannels = kGroups * kSide<T>;
  // Vectors of a row that are read at once: CPUs fetch lines in pairs, and from memory some more.
  constexpr std::size_t kPair = 2;
  constexpr std::size_t kMany = std::max(8 * kLine / (kLanes * R::kSize), kPair);
  for (std::size_t i = 0; i < count;) {
    const std::size_t p = std::min(i, count - kLanes);
    const std::size_t left = (count - p) / kLanes;
    const std::size_t vectors = left >= kMany && streaming.prefetch ? kMany : std::min(left, kPair);
    for (std::size_t k = 0; k < channels; k += kChannels) {
      const std::size_t c = std::min(k, channels - kChannels);
      T* const to = dst + p * stride + c;
      if (vectors == kMany)
        interleave_rows<kGroups, kMany>(d, as, rows + c, p, to, stride, streaming.store);
      else if (vectors == kPair)
        interleave_rows<kGroups, kPair>(d, as, rows + c, p, to, stride, streaming.store);
      else
        interleave_rows<kGroups, 1>(d, as, rows + c, p, to, stride, streaming.store);
    }
    i += vectors * kLanes;
  }
}

/// At least Lanes(d) pixels; false, with nothing written, where the channels fill no panel.
template <class D, class R, class T = hn::TFromD<D>>
HWY_INLINE bool interleave_panels(D d, R& as, const std::byte* const* rows, std::size_t channels,
                                  T* dst, std::size_t stride, std::size_t count,
                                  Streaming streaming) {
  const std::size_t panel = panel_channels<D>(channels);
  if constexpr (has_panels<D>) {
    if (panel == hn::MaxLanes(D()))
      interleave_groups<kBlocks<D>>(d, as, rows, channels, dst, stride, count, streaming);
  }
  if constexpr (has_panels<D> && kBlocks<D> == 4) {
    if (panel == hn::MaxLanes(D()) / 2)
      interleave_groups<kBlocks<D> / 2>(d, as, rows, channels, dst, stride, count, streaming);
  }
  return panel != 0;
}

/// At least kSide channels and Lanes(d) pixels, in squares: all channels of so few pixels that each
/// line of a row is read once, and pixels stay in the first cache level until they are whole.
template <class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void interleave_squares(D d, R& as, const std::byte* const* rows, std::size_t channels,
                                   T* dst, std::size_t stride, std::size_t count, bool prefetch) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  constexpr std::size_t kRun = std::max(kLine / sizeof(T), kLanes);
  for (std::size_t first = 0; first < count; first += kRun) {
    const std::size_t end = std::min(first + kRun, count);
    for (std::size_t k = 0; k < channels; k += kSide<T>) {
      const std::size_t c = std::min(k, channels - kSide<T>);
      if (prefetch) prefetch_rows(rows + c, kSide<T>, first * R::kSize + kPrefetchRows);
      for (std::size_t i = first; i < end; i += kLanes) {
        const std::size_t p = std::min(i, count - kLanes);
        interleave_square(d, as, rows + c, p, dst + p * stride + c, stride);
      }
    }
  }
}

/// True for rows that share the sets of the first cache level, which has eight ways or some more.
HWY_INLINE bool rows_share_sets(std::byte* const* rows) {
  const auto address = [rows](std::size_t c) { return reinterpret_cast<std::uintptr_t>(rows[c]); };
  constexpr std::size_t kSets = 64;  // As x86 CPUs have.
  return (address(1) - address(0)) % (kSets * kLine) == 0;
}

/// Fetches the lines of kSide rows that a square of kSide channels x Lanes(d) pixels is written to.
template <class D, class R>
HWY_INLINE void prefetch_square(std::byte* const* rows, std::size_t pixel) {
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kSide<hn::TFromD<D>>; ++c)
    for (std::size_t i = 0; i < hn::MaxLanes(D()) * R::kSize; i += kLine)
      __builtin_prefetch(rows[c] + pixel * R::kSize + i, 1, 3);
}

/// kVectors squares side by side, of which each row is written at once: where rows share sets, a
/// line that is written in parts would leave the first cache level between them.
template <std::size_t kVectors, class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_lines(D d, R as, const T* src, std::size_t stride,
                                   std::byte* const* rows, std::size_t pixel) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  HWY_ALIGN T staged[kSide<T> * kVectors * kLanes];
  std::byte* lines[kSide<T>];
  for (std::size_t c = 0; c < kSide<T>; ++c)
    lines[c] = reinterpret_cast<std::byte*>(staged + c * kVectors * kLanes);
  for (std::size_t i = 0; i < kVectors; ++i) {
    deinterleave_square(d, EqualRows<D>(), src + i * kLanes * stride, stride, lines, i * kLanes,
                        kSide<T>, false);
  }
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kSide<T>; ++c) {
    for (std::size_t i = 0; i < kVectors; ++i) {
      const auto v = hn::Load(d, staged + (c * kVectors + i) * kLanes);
      as.store(v, rows[c], pixel + i * kLanes, false);
    }
  }
}

/// Pixels of so many bytes are read again for each group of channels, out of the first cache level.
constexpr std::size_t kPanelBytes = std::size_t{16} << 10;

/// At least kSide channels and Lanes(d) pixels. Rows are written one group after the other: the
/// CPU's prefetchers follow few rows at a time.
template <class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_panels(D d, R as, const T* src, std::size_t stride,
                                    std::byte* const* rows, std::size_t channels, std::size_t count,
                                    bool lines) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  constexpr std::size_t kLeastWays = 8;
  // Vectors that fill four lines of a row, where one vector does not fill a line. With AVX2 and
  // SSE4 one line and eight lines took longer.
  constexpr std::size_t kVectorBytes = kLanes * R::kSize;
  constexpr std::size_t kVectors = kVectorBytes < kLine ? 4 * kLine / kVectorBytes : 1;
  const bool crowded = kSide<T> > kLeastWays && rows_share_sets(rows);
  const bool fetches = !lines && !crowded;
  const std::size_t fitting = kPanelBytes / (stride * sizeof(T)) / (kVectors * kLanes);
  const std::size_t run = std::max(fitting, std::size_t{1}) * kVectors * kLanes;
  for (std::size_t first = 0; first < count; first += run) {
    const std::size_t end = std::min(first + run, count);
    for (std::size_t k = 0; k < channels; k += kSide<T>) {
      const std::size_t c = std::min(k, channels - kSide<T>);
      // Copied, since a store of bytes could change the list, for all that the compiler knows.
      std::byte* to[kSide<T>];
      std::copy_n(rows + c, kSide<T>, to);
      std::size_t i = first;
      if constexpr (kVectors > 1)
        for (; crowded && i + kVectors * kLanes <= end; i += kVectors * kLanes)
          deinterleave_lines<kVectors>(d, as, src + i * stride + c, stride, to, i);
      for (; i < end; i += kLanes) {
        const std::size_t p = std::min(i, count - kLanes);
        if (fetches) prefetch_square<D, R>(to, p + kLanes);
        deinterleave_square(d, as, src + p * stride + c, stride, to, p, kSide<T>,
                            lines && p % kLanes == 0);
      }
    }
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#endif  // per target
