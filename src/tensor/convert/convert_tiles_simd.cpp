// Moves tiles between planes and pixels, compiled once per instruction set. Whole cache
// lines are written wherever the shapes allow it; partial writes of lines that are not in the
// first cache level cost most of a memory-bound conversion's time.
#include <algorithm>
#include <cstring>

#include "tensor/convert/convert_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/convert/convert_tiles_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "tensor/convert/convert_panels_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

/// Element by element: for few pixels, and for CPUs without vectors.
template <std::size_t kSize>
void interleave_each(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                     std::size_t stride, std::size_t first, std::size_t count) {
  for (std::size_t p = first; p < count; ++p)
    for (std::size_t c = 0; c < channels; ++c)
      std::memcpy(dst + (p * stride + c) * kSize, rows[c] + p * kSize, kSize);
}

template <std::size_t kSize>
void deinterleave_each(const std::byte* src, std::size_t stride, std::byte* const* rows,
                       std::size_t channels, std::size_t first, std::size_t count) {
  for (std::size_t p = first; p < count; ++p)
    for (std::size_t c = 0; c < channels; ++c)
      std::memcpy(rows[c] + p * kSize, src + (p * stride + c) * kSize, kSize);
}

#if HWY_TARGET != HWY_SCALAR

/// Panels pay where a vector has several blocks of many lanes.
template <class D>
constexpr bool has_panels = sizeof(hn::TFromD<D>) <= 2 && kBlocks<D> >= 2;

template <std::size_t kGroups, class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_by_panels(D d, const std::byte* const* rows, std::size_t channels,
                                     T* dst, std::size_t stride, std::size_t count,
                                     Streaming streaming) {
  if constexpr (has_panels<D>) {
    for_groups(kGroups * kSide<T>, channels, [&](std::size_t c) HWY_ATTR {
      const auto panels_at = [&](std::size_t p, std::size_t panels) HWY_ATTR {
        interleave_panels<kGroups>(d, rows + c, p, dst + p * stride + c, stride, panels, streaming);
      };
      for_panels(hn::Lanes(d), streaming.prefetch ? kRunPixels<T> : kPanelPixels, count, panels_at);
    });
  }
}

/// True when non-temporal stores may write the rows, except for vectors that overlap.
HWY_INLINE bool rows_begin_lines(std::byte* const* rows, std::size_t count) {
  std::uintptr_t all = 0;
  for (std::size_t i = 0; i < count; ++i) all |= reinterpret_cast<std::uintptr_t>(rows[i]);
  return all % kLine == 0;
}

template <std::size_t kGroups, class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_by_panels(D d, const T* src, std::size_t stride,
                                       std::byte* const* rows, std::size_t channels,
                                       std::size_t count, bool prefetch, bool lines) {
  if constexpr (has_panels<D>) {
    const bool in_runs = rows_share_sets<T>(rows);
    for_groups(kGroups * kSide<T>, channels, [&](std::size_t c) HWY_ATTR {
      const auto panels_at = [&](std::size_t p, std::size_t panels) HWY_ATTR {
        deinterleave_panels<kGroups>(d, src + p * stride + c, stride, rows + c, p, panels, prefetch,
                                     lines && p % hn::Lanes(d) == 0, in_runs);
      };
      const std::size_t most = prefetch || in_runs ? kRunPixels<T> : kPanelPixels;
      for_panels(hn::Lanes(d), most, count, panels_at);
    });
  }
}

/// At least Lanes(d) pixels. Groups of channels are walked one after the other: few rows at a time
/// are what the CPU's prefetchers follow best.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_vectors(D d, const std::byte* const* rows, std::size_t channels, T* dst,
                                   std::size_t stride, std::size_t count, Streaming streaming) {
  const std::size_t lanes = hn::Lanes(d);
  const auto row = [&](std::size_t c, std::size_t p)
                       HWY_ATTR { return hn::LoadU(d, typed<T>(rows[c]) + p); };
  // From the special to the general: the first form that fits is the fastest one.
  if (channels == 2 && stride == 2) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      hn::StoreInterleaved2(row(0, p), row(1, p), d, dst + 2 * p);
    });
  } else if (channels == 3 && stride == 3) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      hn::StoreInterleaved3(row(0, p), row(1, p), row(2, p), d, dst + 3 * p);
    });
  } else if (channels == 4 && stride == 4) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      hn::StoreInterleaved4(row(0, p), row(1, p), row(2, p), row(3, p), d, dst + 4 * p);
    });
  } else if (channels == kSide<T> && stride == kSide<T> && kSide<T> >= kBlocks<D>) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      interleave_packed(d, rows, p, dst + p * stride, streaming);
    });
  } else if (sizeof(T) == 4 && channels >= lanes) {
    for_groups(lanes, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
        if constexpr (sizeof(T) == 4)
          interleave_lanes(d, rows + c, p, dst + p * stride + c, stride, streaming);
      });
    });
  } else if (has_panels<D> && channels >= lanes) {
    interleave_by_panels<kBlocks<D>>(d, rows, channels, dst, stride, count, streaming);
  } else if (has_panels<D> && kBlocks<D> == 4 && channels >= lanes / 2) {
    interleave_by_panels<kBlocks<D> / 2>(d, rows, channels, dst, stride, count, streaming);
  } else if (channels >= kSide<T>) {
    for_groups(kSide<T>, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
        if (streaming.prefetch) prefetch_rows(rows + c, kSide<T>, p * sizeof(T) + kPrefetchRows);
        interleave_square(d, rows + c, p, dst + p * stride + c, stride);
      });
    });
  } else {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      interleave_few(d, rows, channels, p, dst + p * stride, stride);
    });
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_vectors(D d, const T* src, std::size_t stride, std::byte* const* rows,
                                     std::size_t channels, std::size_t count, Streaming streaming) {
  const std::size_t lanes = hn::Lanes(d);
  const auto store = [&](std::size_t c, std::size_t p, hn::Vec<D> v)
                         HWY_ATTR { hn::StoreU(v, d, typed<T>(rows[c]) + p); };
  // Asked once for all rows, since a store that is not aligned to its line would trap.
  const bool lines = streaming.store && rows_begin_lines(rows, channels);
  const auto stream = [&](std::size_t p) HWY_ATTR { return lines && p % lanes == 0; };
  hn::Vec<D> v0;
  hn::Vec<D> v1;
  hn::Vec<D> v2;
  hn::Vec<D> v3;
  // In the order of interleave_vectors().
  if (channels == 2 && stride == 2) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      hn::LoadInterleaved2(d, src + 2 * p, v0, v1);
      store(0, p, v0);
      store(1, p, v1);
    });
  } else if (channels == 3 && stride == 3) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      hn::LoadInterleaved3(d, src + 3 * p, v0, v1, v2);
      store(0, p, v0);
      store(1, p, v1);
      store(2, p, v2);
    });
  } else if (channels == 4 && stride == 4) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      hn::LoadInterleaved4(d, src + 4 * p, v0, v1, v2, v3);
      store(0, p, v0);
      store(1, p, v1);
      store(2, p, v2);
      store(3, p, v3);
    });
  } else if (has_panels<D> && stride == kSide<T> && channels == stride &&
             rows_share_sets<T>(rows)) {
    deinterleave_by_panels<1>(d, src, stride, rows, channels, count, streaming.prefetch, lines);
  } else if (stride == kSide<T> && channels <= kSide<T> && kSide<T> >= kBlocks<D>) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      if (channels == kSide<T>) {
        deinterleave_packed(d, src + p * stride, rows, p, kSide<T>, streaming.prefetch, stream(p));
      } else if (p + lanes == count) {
        deinterleave_few(d, src + p * stride, stride, rows, channels, p, true);
      } else if (channels <= 4 && sizeof(T) <= 2) {
        if constexpr (sizeof(T) <= 2)
          deinterleave_four(d, src + p * stride, rows, p, channels, streaming.prefetch, stream(p));
      } else {
        deinterleave_packed(d, src + p * stride, rows, p, channels, streaming.prefetch, stream(p));
      }
    });
  } else if (kBlocks<D> == 4 && sizeof(T) == 4 && channels >= lanes / 2) {
    for_groups(lanes / 2, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
        if constexpr (kBlocks<D> == 4 && sizeof(T) == 4)
          deinterleave_half_lanes(d, src + p * stride + c, stride, rows + c, p, stream(p));
      });
    });
  } else if (sizeof(T) == 4 && channels >= lanes) {
    for_groups(lanes, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
        if constexpr (sizeof(T) == 4)
          deinterleave_lanes(d, src + p * stride + c, stride, rows + c, p);
      });
    });
  } else if (has_panels<D> && channels >= lanes) {
    deinterleave_by_panels<kBlocks<D>>(d, src, stride, rows, channels, count, streaming.prefetch,
                                       lines);
  } else if (has_panels<D> && kBlocks<D> == 4 && channels >= lanes / 2) {
    deinterleave_by_panels<kBlocks<D> / 2>(d, src, stride, rows, channels, count,
                                           streaming.prefetch, lines);
  } else if (channels >= kSide<T>) {
    for_groups(kSide<T>, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
        deinterleave_square(d, src + p * stride + c, stride, rows + c, p, kSide<T>, stream(p));
      });
    });
  } else {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      // A square reads kSide lanes of each pixel, which may reach this many bytes beyond the
      // last one.
      const bool at_end = p + lanes + (kSide<T> + stride - 1) / stride > count;
      deinterleave_few(d, src + p * stride, stride, rows, channels, p, at_end);
    });
  }
}

/// Fewer pixels than a vector has lanes go to vectors of one block, fewer than that one by one.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_with(D d, const std::byte* const* rows, std::size_t channels,
                                std::byte* dst, std::size_t stride, std::size_t count,
                                Streaming streaming) {
  if (count >= hn::Lanes(d))
    interleave_vectors(d, rows, channels, typed<T>(dst), stride, count, streaming);
  else if constexpr (kBlocks<D> > 1)
    interleave_with(hn::CappedTag<T, kSide<T>>(), rows, channels, dst, stride, count, streaming);
  else
    interleave_each<sizeof(T)>(rows, channels, dst, stride, 0, count);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_with(D d, const std::byte* src, std::size_t stride,
                                  std::byte* const* rows, std::size_t channels, std::size_t count,
                                  Streaming streaming) {
  if (count >= hn::Lanes(d))
    deinterleave_vectors(d, typed<T>(src), stride, rows, channels, count, streaming);
  else if constexpr (kBlocks<D> > 1)
    deinterleave_with(hn::CappedTag<T, kSide<T>>(), src, stride, rows, channels, count, streaming);
  else
    deinterleave_each<sizeof(T)>(src, stride, rows, channels, 0, count);
}

#endif  // HWY_TARGET != HWY_SCALAR

template <class T>
void interleave(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                std::size_t stride, std::size_t count, Streaming streaming) {
  if (channels == 0) return;
  if (channels == 1 && stride == 1) {
    std::memcpy(dst, rows[0], count * sizeof(T));
    return;
  }
#if HWY_TARGET == HWY_SCALAR
  (void)streaming;
  interleave_each<sizeof(T)>(rows, channels, dst, stride, 0, count);
#else
  interleave_with(hn::ScalableTag<T>(), rows, channels, dst, stride, count, streaming);
#endif
}

template <class T>
void deinterleave(const std::byte* src, std::size_t stride, std::byte* const* rows,
                  std::size_t channels, std::size_t count, Streaming streaming) {
  if (channels == 0) return;
  if (channels == 1 && stride == 1) {
    std::memcpy(rows[0], src, count * sizeof(T));
    return;
  }
#if HWY_TARGET == HWY_SCALAR
  (void)streaming;
  deinterleave_each<sizeof(T)>(src, stride, rows, channels, 0, count);
#else
  deinterleave_with(hn::ScalableTag<T>(), src, stride, rows, channels, count, streaming);
#endif
}

#if HWY_TARGET != HWY_SCALAR
/// Elements of one block each: only whole blocks are moved. Copies element (channel, pixel)
/// from from(channel, pixel, i) to to(..., i) in squares, of which i counts the vectors. Returns
/// how many pixels were copied.
template <class D, class From, class To>
HWY_INLINE std::size_t move_squares_of_blocks(D d, std::size_t channels, std::size_t count,
                                              From from, To to) {
  constexpr std::size_t kGroup = kBlocks<D>;
  if (channels < kGroup) {
    if constexpr (kGroup > 2)
      return move_squares_of_blocks(hn::Half<D>(), channels, count, from, to);
    return 0;
  }
  const std::size_t done = count / kGroup * kGroup;
  for_groups(kGroup, channels, [&](std::size_t c) HWY_ATTR {
    for (std::size_t p = 0; p < done; p += kGroup) {
      hn::Vec<D> v[kGroup];
      for (std::size_t i = 0; i < kGroup; ++i)
        v[i] = hn::LoadU(d, typed<std::uint8_t>(from(c, p, i)));
      transpose_blocks(d, v, 1);
      for (std::size_t i = 0; i < kGroup; ++i)
        hn::StoreU(v[i], d, typed<std::uint8_t>(to(c, p, i)));
    }
  });
  return done;
}
#endif

void interleave_blocks(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                       std::size_t stride, std::size_t count, Streaming streaming) {
  (void)streaming;
  std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  done = move_squares_of_blocks(
      hn::ScalableTag<std::uint8_t>(), channels, count,
      [&](std::size_t c, std::size_t p, std::size_t i)
          HWY_ATTR { return rows[c + i] + p * kBlockBytes; },
      [&](std::size_t c, std::size_t p, std::size_t i)
          HWY_ATTR { return dst + ((p + i) * stride + c) * kBlockBytes; });
#endif
  interleave_each<kBlockBytes>(rows, channels, dst, stride, done, count);
}

void deinterleave_blocks(const std::byte* src, std::size_t stride, std::byte* const* rows,
                         std::size_t channels, std::size_t count, Streaming streaming) {
  (void)streaming;
  std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  done = move_squares_of_blocks(
      hn::ScalableTag<std::uint8_t>(), channels, count,
      [&](std::size_t c, std::size_t p, std::size_t i)
          HWY_ATTR { return src + ((p + i) * stride + c) * kBlockBytes; },
      [&](std::size_t c, std::size_t p, std::size_t i)
          HWY_ATTR { return rows[c + i] + p * kBlockBytes; });
#endif
  deinterleave_each<kBlockBytes>(src, stride, rows, channels, done, count);
}

template <class T>
constexpr TileKernels kKernels = {interleave<T>, deinterleave<T>};
// For 16 bytes, which no lane has.
constexpr TileKernels kBlockKernels = {interleave_blocks, deinterleave_blocks};

const TileKernels* kernels_of_size(std::size_t element_size) {
  switch (element_size) {
    case 1:
      return &kKernels<std::uint8_t>;
    case 2:
      return &kKernels<std::uint16_t>;
    case 4:
      return &kKernels<std::uint32_t>;
    case 8:
      return &kKernels<std::uint64_t>;
    default:
      return &kBlockKernels;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace corelane::detail {

HWY_EXPORT(kernels_of_size);

const TileKernels& tile_kernels(std::size_t element_size) noexcept {
  return *HWY_DYNAMIC_DISPATCH(kernels_of_size)(element_size);
}

}  // namespace corelane::detail
#endif
