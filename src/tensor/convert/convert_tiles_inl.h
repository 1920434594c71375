// Tiles of channels x pixels, moved between planes and pixels by the fastest form that fits;
// included once per instruction set.
#if defined(CORELANE_TENSOR_CONVERT_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORELANE_TENSOR_CONVERT_TILES_INL_H_
#undef CORELANE_TENSOR_CONVERT_TILES_INL_H_
#else
#define CORELANE_TENSOR_CONVERT_TILES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tensor/convert/convert_few_inl.h"
#include "tensor/convert/convert_kernels.h"
#include "tensor/convert/convert_panels_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// True when non-temporal stores may write the rows, except for vectors that overlap.
HWY_INLINE bool rows_begin_lines(std::byte* const* rows, std::size_t count) {
  std::uintptr_t all = 0;
  for (std::size_t i = 0; i < count; ++i) all |= reinterpret_cast<std::uintptr_t>(rows[i]);
  return all % kLine == 0;
}

/// At least Lanes(d) pixels.
template <class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void interleave_vectors(D d, R& as, const std::byte* const* rows, std::size_t channels,
                                   T* dst, std::size_t stride, std::size_t count,
                                   Streaming streaming) {
  const std::size_t lanes = hn::Lanes(d);
  // From the special to the general: the first form that fits is the fastest one.
  if (interleave_abreast(d, as, rows, channels, dst, stride, count)) return;
  if (channels == kSide<T> && stride == kSide<T> && kSide<T> >= kBlocks<D>) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      interleave_packed(d, as, rows, p, dst + p * stride, streaming);
    });
    return;
  }
  if constexpr (sizeof(T) == 4) {
    // Rows in memory: few at a time are what the CPU's prefetchers follow best.
    if (channels >= lanes && streaming.prefetch) {
      static_assert(std::is_same_v<R, EqualRows<D>>);
      for_vectors(lanes, channels, [&](std::size_t c) HWY_ATTR {
        for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
          interleave_lanes(d, rows + c, p, dst + p * stride + c, stride, streaming.store);
        });
      });
      return;
    }
  }
  if (interleave_panels(d, as, rows, channels, dst, stride, count, streaming)) return;
  if (channels >= kSide<T>) {
    interleave_squares(d, as, rows, channels, dst, stride, count, streaming.prefetch);
    return;
  }
  for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
    interleave_few(d, as, rows, channels, p, dst + p * stride, stride);
  });
}

template <class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_vectors(D d, R as, const T* src, std::size_t stride,
                                     std::byte* const* rows, std::size_t channels,
                                     std::size_t count, Streaming streaming) {
  const std::size_t lanes = hn::Lanes(d);
  const auto store = [&](std::size_t c, std::size_t p, hn::Vec<D> v)
                         HWY_ATTR { as.store(v, rows[c], p, false); };
  // Asked once for all rows, since a store that is not aligned to its line would trap. Only vectors
  // of a whole line are stored so.
  const bool lines =
      kBlocks<D> * kBlockBytes == kLine && streaming.store && rows_begin_lines(rows, channels);
  const auto stream = [&](std::size_t p) HWY_ATTR { return lines && p % lanes == 0; };
  // From the special to the general, too.
  if (deinterleave_abreast(d, store, src, stride, channels, count)) return;
  if (stride == kSide<T> && channels < kSide<T>) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      if (p + lanes == count) {
        deinterleave_few(d, as, src + p * stride, stride, rows, channels, p, true);
      } else if (channels <= 4 && sizeof(T) <= 2) {
        if constexpr (sizeof(T) <= 2)
          deinterleave_four(d, as, src + p * stride, rows, p, channels, streaming.prefetch,
                            stream(p));
      } else {
        deinterleave_square(d, as, src + p * stride, stride, rows, p, channels, stream(p));
      }
    });
  } else if (channels >= kSide<T>) {
    deinterleave_panels(d, as, src, stride, rows, channels, count, lines);
  } else {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      // A square reads kSide lanes of each pixel, which may reach into so many pixels beyond the
      // last one.
      const bool at_end = p + lanes + (kSide<T> + stride - 1) / stride > count;
      deinterleave_few(d, as, src + p * stride, stride, rows, channels, p, at_end);
    });
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#endif  // per target
