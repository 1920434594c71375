// Movement of tiles between planes and pixels, compiled once per instruction set. Whole cache
// lines are written wherever the shapes allow it; partial writes of lines that are not in the
// first cache level cost most of a memory-bound conversion's time.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "tensor/convert_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/convert_tiles_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "tensor/convert_blocks_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

/// Element by element: for few pixels, and for CPUs without vectors.
template <std::size_t kSize>
void interleave_each(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                     std::size_t stride, std::size_t first, std::size_t count) {
  for (std::size_t p = first; p < count; ++p) {
    for (std::size_t c = 0; c < channels; ++c) {
      std::memcpy(dst + (p * stride + c) * kSize, rows[c] + p * kSize, kSize);
    }
  }
}

template <std::size_t kSize>
void deinterleave_each(const std::byte* src, std::size_t stride, std::byte* const* rows,
                       std::size_t channels, std::size_t first, std::size_t count) {
  for (std::size_t p = first; p < count; ++p) {
    for (std::size_t c = 0; c < channels; ++c) {
      std::memcpy(rows[c] + p * kSize, src + (p * stride + c) * kSize, kSize);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

/// Stores a vector; past the caches when it is a whole line of a tensor that does not fit them.
template <class D>
HWY_INLINE void store_far(D d, hn::Vec<D> v, hn::TFromD<D>* p, bool far) {
  constexpr std::size_t kLine = 64;
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == kLine) {
    if (far && reinterpret_cast<std::uintptr_t>(p) % kLine == 0) {
      hn::Stream(v, d, p);
      return;
    }
  }
  (void)far;
  hn::StoreU(v, d, p);
}

/// Asks for the lines that the next tile will read, into the second cache level: in the first one
/// the lines of many planes would displace each other.
HWY_INLINE void prefetch_rows(const std::byte* const* rows, std::size_t count, std::size_t offset) {
  for (std::size_t i = 0; i < count; ++i) __builtin_prefetch(rows[i] + offset, 0, 2);
}

/// Calls f(pixel) for whole vectors of pixels, of which there must be one, the last one overlapping
/// its neighbour. There is one call, so that f is expanded once.
template <class F>
HWY_INLINE void for_vectors(std::size_t lanes, std::size_t count, F f) {
  for (std::size_t p = 0;; p = count - lanes) {
    for (; p + lanes <= count; p += lanes) f(p);
    if (p == count) return;
  }
}

/// Calls f(channel) for whole groups of channels, the last one overlapping its neighbour.
template <class F>
HWY_INLINE void for_groups(std::size_t group, std::size_t channels, F f) {
  for_vectors(group, channels, f);
}

/// True when the current lines of so many rows stay in the first cache level (of 64 sets, at least
/// 8 lines each) although planes often lie a multiple of many lines apart: then a line may be read
/// in several pieces.
HWY_INLINE bool rows_share_cache(const std::byte* const* rows, std::size_t count) {
  constexpr std::size_t kSets = 64;
  constexpr std::size_t kLine = 64;
  const auto address = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const std::size_t step = (address(rows[1]) - address(rows[0])) / kLine;
  return count / (kSets / std::gcd(step, kSets)) <= 8;
}

/// Block b comes from row (b % kGroups) * kSide, kSide pixels further with every kGroups blocks.
template <std::size_t kGroups, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_scattered(D d, const std::byte* const* rows, std::size_t pixel,
                                     std::size_t block) {
  if constexpr (kBlocks<D> <= 1) {
    return hn::LoadU(
        d, typed<T>(rows[block % kGroups * kSide<T>]) + pixel + block / kGroups * kSide<T>);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_scattered<kGroups>(half, rows, pixel, block + kBlocks<D> / 2),
                       load_scattered<kGroups>(half, rows, pixel, block));
  }
}

/// kSide channels x Lanes(d) pixels, to pixels `stride` elements apart, 16 bytes each.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_square(D d, const std::byte* const* rows, std::size_t pixel, T* dst,
                                  std::size_t stride) {
  hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kSide<T>; ++c) v[c] = hn::LoadU(d, typed<T>(rows[c]) + pixel);
  transpose_in_blocks(d, v);
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kSide<T>; ++j) {
    store_blocks(d, v[j], dst + j * stride, kSide<T> * stride);
  }
}

/// kGroups * kSide channels side by side: stores of kGroups * 16 bytes.
template <std::size_t kGroups, class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_wide(D d, const std::byte* const* rows, std::size_t pixel, T* dst,
                                std::size_t stride, bool far) {
  const hn::CappedTag<T, kSide<T> * kGroups> part;
  hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kSide<T>; ++i) {
    v[i] = load_scattered<kGroups>(d, rows + i, pixel, std::size_t{0});
  }
  transpose_in_blocks(d, v);
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kSide<T>; ++j) {
    if constexpr (kGroups == kBlocks<D>) {
      store_far(d, v[j], dst + j * stride, far);
    } else {
      hn::StoreU(hn::LowerHalf(part, v[j]), part, dst + j * stride);
      hn::StoreU(hn::UpperHalf(part, v[j]), part, dst + (j + kSide<T>)*stride);
    }
  }
}

/// The first `channels` of kSide channels x Lanes(d) pixels.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_square(D d, const T* src, std::size_t stride, std::byte* const* rows,
                                    std::size_t pixel, std::size_t channels, bool far) {
  hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kSide<T>; ++j) {
    v[j] = load_blocks(d, src + j * stride, kSide<T> * stride);
  }
  transpose_in_blocks(d, v);
  for (std::size_t c = 0; c < channels; ++c) store_far(d, v[c], typed<T>(rows[c]) + pixel, far);
}

/// Pixels of exactly one block: whole vectors on both sides.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_packed(D d, const std::byte* const* rows, std::size_t pixel, T* dst,
                                  bool far) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kSide<T>; ++c) v[c] = hn::LoadU(d, typed<T>(rows[c]) + pixel);
  transpose_in_blocks(d, v);
#pragma GCC unroll 16
  for (std::size_t j = 0; j + kBlocks<D> <= kSide<T>; j += kBlocks<D>) {
    transpose_blocks(d, v + j, 1);
#pragma GCC unroll 4
    for (std::size_t b = 0; b < kBlocks<D>; ++b) {
      store_far(d, v[j + b], dst + b * kSide<T> * kSide<T> + j / kBlocks<D> * kLanes, far);
    }
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_packed(D d, const T* src, std::byte* const* rows, std::size_t pixel,
                                    std::size_t channels, bool far) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
  for (std::size_t j = 0; j + kBlocks<D> <= kSide<T>; j += kBlocks<D>) {
#pragma GCC unroll 4
    for (std::size_t b = 0; b < kBlocks<D>; ++b) {
      v[j + b] = hn::LoadU(d, src + b * kSide<T> * kSide<T> + j / kBlocks<D> * kLanes);
    }
    transpose_blocks(d, v + j, 1);
  }
  transpose_in_blocks(d, v);
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kSide<T>; ++c) {
    if (c < channels) store_far(d, v[c], typed<T>(rows[c]) + pixel, far);
  }
}

/// Lanes(d) vectors as a square matrix of lanes, transposed. For types of 4 bytes, of which the
/// registers hold all vectors.
template <class D, class V, std::size_t kLanes>
HWY_INLINE void transpose_lanes(D d, V (&v)[kLanes]) {
  constexpr std::size_t kRows = kSide<hn::TFromD<D>>;
#pragma GCC unroll 4
  for (std::size_t b = 0; b < kBlocks<D>; ++b) {
    V part[kRows];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows; ++i) part[i] = v[b * kRows + i];
    transpose_in_blocks(d, part);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows; ++i) v[b * kRows + i] = part[i];
  }
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kRows; ++i) transpose_blocks(d, v + i, kRows);
}

/// Lanes(d) channels x Lanes(d) pixels: whole vectors on both sides.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_lanes(D d, const std::byte* const* rows, std::size_t pixel, T* dst,
                                 std::size_t stride, bool far) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> v[kLanes];
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kLanes; ++c) v[c] = hn::LoadU(d, typed<T>(rows[c]) + pixel);
  transpose_lanes(d, v);
#pragma GCC unroll 16
  for (std::size_t p = 0; p < kLanes; ++p) store_far(d, v[p], dst + p * stride, far);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_lanes(D d, const T* src, std::size_t stride, std::byte* const* rows,
                                   std::size_t pixel) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> v[kLanes];
#pragma GCC unroll 16
  for (std::size_t p = 0; p < kLanes; ++p) v[p] = hn::LoadU(d, src + p * stride);
  transpose_lanes(d, v);
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kLanes; ++c) hn::StoreU(v[c], d, typed<T>(rows[c]) + pixel);
}

/// Half as many channels as lanes, Lanes(d) pixels: as deinterleave_lanes, but into few enough rows
/// that they can share a set of the first cache level, as the planes of many images do.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_half_lanes(D d, const T* src, std::size_t stride,
                                        std::byte* const* rows, std::size_t pixel, bool far) {
  constexpr std::size_t kRows = hn::MaxLanes(D()) / 2;
  const hn::Half<D> half;
  hn::Vec<D> v[kRows];
#pragma GCC unroll 16
  for (std::size_t p = 0; p < kRows; ++p) {
    v[p] = hn::Combine(d, hn::LoadU(half, src + (p + kRows) * stride),
                       hn::LoadU(half, src + p * stride));
  }
  // Each half is a square of its own, of 2 x 2 blocks.
  constexpr std::size_t kPart = kRows / 2;
  hn::Vec<D> a[kPart];
  hn::Vec<D> b[kPart];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kPart; ++i) {
    a[i] = v[i];
    b[i] = v[i + kPart];
  }
  transpose_in_blocks(d, a);
  transpose_in_blocks(d, b);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kPart; ++i) {
    const auto lower = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b[i]), a[i]);
    const auto upper = hn::OddEvenBlocks(b[i], hn::SwapAdjacentBlocks(a[i]));
    store_far(d, lower, typed<T>(rows[i]) + pixel, far);
    store_far(d, upper, typed<T>(rows[i + kPart]) + pixel, far);
  }
}

/// Fewer than kSide channels, by way of a square that is filled up with copies of the last channel.
/// Nothing beyond `channels` is written.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE void interleave_few(D d, const std::byte* const* rows, std::size_t channels,
                                 std::size_t pixel, T* dst, std::size_t stride) {
  constexpr std::size_t kPixels = hn::MaxLanes(D());
  const std::byte* filled[kSide<T>];
  for (std::size_t c = 0; c < kSide<T>; ++c) filled[c] = rows[std::min(c, channels - 1)];
  HWY_ALIGN T square[kPixels * kSide<T>];
  interleave_square(d, filled, pixel, square, kSide<T>);
  std::size_t p = 0;
  if (stride == channels) {
    // Each pixel is stored whole; the next one overwrites what is too much.
    const hn::CappedTag<T, kSide<T>> block;
    for (; (p + 1) * stride + kSide<T> <= kPixels * stride; ++p) {
      hn::StoreU(hn::LoadU(block, square + p * kSide<T>), block, dst + p * stride);
    }
  }
  for (; p < kPixels; ++p) {
    std::memcpy(dst + p * stride, square + p * kSide<T>, channels * sizeof(T));
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE void deinterleave_few(D d, const T* src, std::size_t stride, std::byte* const* rows,
                                   std::size_t channels, std::size_t pixel, bool at_end) {
  constexpr std::size_t kPixels = hn::MaxLanes(D());
  if (!at_end) {
    deinterleave_square(d, src, stride, rows, pixel, channels, false);
    return;
  }
  // A whole block read at the last pixels could leave the memory.
  HWY_ALIGN T square[kPixels * kSide<T>] = {};
  for (std::size_t p = 0; p < kPixels; ++p) {
    std::memcpy(square + p * kSide<T>, src + p * stride, channels * sizeof(T));
  }
  deinterleave_square(d, square, kSide<T>, rows, pixel, channels, false);
}

/// At least Lanes(d) pixels. Groups of channels are walked one after the other: few rows at a time
/// are what the CPU's prefetchers follow best.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_vectors(D d, const std::byte* const* rows, std::size_t channels, T* dst,
                                   std::size_t stride, std::size_t count, bool far) {
  const std::size_t lanes = hn::Lanes(d);
  const auto row = [&](std::size_t c, std::size_t p)
                       HWY_ATTR { return hn::LoadU(d, typed<T>(rows[c]) + p); };
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
      interleave_packed(d, rows, p, dst + p * stride, far);
    });
  } else if (sizeof(T) == 4 && channels >= lanes) {
    for_groups(lanes, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
        if constexpr (sizeof(T) == 4) {
          interleave_lanes(d, rows + c, p, dst + p * stride + c, stride, far);
        }
      });
    });
  } else if (sizeof(T) <= 2 && kBlocks<D> == 4 && channels >= 4 * kSide<T> &&
             rows_share_cache(rows, 4 * kSide<T>)) {
    for_groups(4 * kSide<T>, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(kSide<T>, count, [&](std::size_t p) HWY_ATTR {
        if constexpr (sizeof(T) <= 2 && kBlocks<D> == 4) {
          if (far && p % lanes == 0) {
            prefetch_rows(rows + c, 4 * kSide<T>, (p + count) * sizeof(T));
          }
          interleave_wide<4>(d, rows + c, p, dst + p * stride + c, stride, far);
        }
      });
    });
  } else if (sizeof(T) <= 2 && kBlocks<D> == 4 && channels >= 2 * kSide<T> &&
             rows_share_cache(rows, 2 * kSide<T>)) {
    for_groups(2 * kSide<T>, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(2 * kSide<T>, count, [&](std::size_t p) HWY_ATTR {
        if constexpr (sizeof(T) <= 2 && kBlocks<D> == 4) {
          if (far && p % lanes == 0) {
            prefetch_rows(rows + c, 2 * kSide<T>, (p + count) * sizeof(T));
          }
          interleave_wide<2>(d, rows + c, p, dst + p * stride + c, stride, far);
        }
      });
    });
  } else if (channels >= kSide<T>) {
    for_groups(kSide<T>, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
        if (far) prefetch_rows(rows + c, kSide<T>, (p + count) * sizeof(T));
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
                                     std::size_t channels, std::size_t count, bool far) {
  const std::size_t lanes = hn::Lanes(d);
  const auto store = [&](std::size_t c, std::size_t p, hn::Vec<D> v)
                         HWY_ATTR { hn::StoreU(v, d, typed<T>(rows[c]) + p); };
  hn::Vec<D> v0;
  hn::Vec<D> v1;
  hn::Vec<D> v2;
  hn::Vec<D> v3;
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
  } else if (stride == kSide<T> && channels <= kSide<T> && kSide<T> >= kBlocks<D>) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      if (channels == kSide<T>) {
        deinterleave_packed(d, src + p * stride, rows, p, kSide<T>, far);
      } else if (p + lanes == count) {
        deinterleave_few(d, src + p * stride, stride, rows, channels, p, true);
      } else if (channels <= 4) {  // A bound the compiler knows saves it most of the shuffles.
        deinterleave_packed(d, src + p * stride, rows, p, std::min<std::size_t>(channels, 4), far);
      } else {
        deinterleave_packed(d, src + p * stride, rows, p, channels, far);
      }
    });
  } else if (kBlocks<D> == 4 && sizeof(T) == 4 && channels >= lanes / 2) {
    for_groups(lanes / 2, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
        if constexpr (kBlocks<D> == 4 && sizeof(T) == 4) {
          deinterleave_half_lanes(d, src + p * stride + c, stride, rows + c, p, far);
        }
      });
    });
  } else if (sizeof(T) == 4 && channels >= lanes) {
    for_groups(lanes, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
        if constexpr (sizeof(T) == 4) {
          deinterleave_lanes(d, src + p * stride + c, stride, rows + c, p);
        }
      });
    });
  } else if (channels >= kSide<T>) {
    for_groups(kSide<T>, channels, [&](std::size_t c) HWY_ATTR {
      for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
        deinterleave_square(d, src + p * stride + c, stride, rows + c, p, kSide<T>, far);
      });
    });
  } else {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      // A square reads kSide lanes of each pixel, which may reach this far beyond the last one.
      const bool at_end = p + lanes + (kSide<T> + stride - 1) / stride > count;
      deinterleave_few(d, src + p * stride, stride, rows, channels, p, at_end);
    });
  }
}

/// Fewer pixels than a vector has lanes go to vectors of one block, fewer than that one by one.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_with(D d, const std::byte* const* rows, std::size_t channels,
                                std::byte* dst, std::size_t stride, std::size_t count, bool far) {
  if (count >= hn::Lanes(d)) {
    interleave_vectors(d, rows, channels, typed<T>(dst), stride, count, far);
  } else if constexpr (kBlocks<D> > 1) {
    interleave_with(hn::CappedTag<T, kSide<T>>(), rows, channels, dst, stride, count, far);
  } else {
    interleave_each<sizeof(T)>(rows, channels, dst, stride, 0, count);
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_with(D d, const std::byte* src, std::size_t stride,
                                  std::byte* const* rows, std::size_t channels, std::size_t count,
                                  bool far) {
  if (count >= hn::Lanes(d)) {
    deinterleave_vectors(d, typed<T>(src), stride, rows, channels, count, far);
  } else if constexpr (kBlocks<D> > 1) {
    deinterleave_with(hn::CappedTag<T, kSide<T>>(), src, stride, rows, channels, count, far);
  } else {
    deinterleave_each<sizeof(T)>(src, stride, rows, channels, 0, count);
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

template <class T>
void interleave(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                std::size_t stride, std::size_t count, bool far) {
  if (channels == 0) return;
  if (channels == 1 && stride == 1) {
    std::memcpy(dst, rows[0], count * sizeof(T));
    return;
  }
#if HWY_TARGET == HWY_SCALAR
  (void)far;
  interleave_each<sizeof(T)>(rows, channels, dst, stride, 0, count);
#else
  interleave_with(hn::ScalableTag<T>(), rows, channels, dst, stride, count, far);
  if (far) hwy::FlushStream();
#endif
}

template <class T>
void deinterleave(const std::byte* src, std::size_t stride, std::byte* const* rows,
                  std::size_t channels, std::size_t count, bool far) {
  if (channels == 0) return;
  if (channels == 1 && stride == 1) {
    std::memcpy(rows[0], src, count * sizeof(T));
    return;
  }
#if HWY_TARGET == HWY_SCALAR
  (void)far;
  deinterleave_each<sizeof(T)>(src, stride, rows, channels, 0, count);
#else
  deinterleave_with(hn::ScalableTag<T>(), src, stride, rows, channels, count, far);
  if (far) hwy::FlushStream();
#endif
}

/// Elements of one block each: only whole blocks change places.
void interleave_blocks(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                       std::size_t stride, std::size_t count, bool far) {
  (void)far;
  std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::size_t kGroup = kBlocks<decltype(d)>;
  if (channels >= kGroup) {
    done = count / kGroup * kGroup;
    for_groups(kGroup, channels, [&](std::size_t c) HWY_ATTR {
      for (std::size_t p = 0; p < done; p += kGroup) {
        hn::Vec<decltype(d)> v[kGroup];
        for (std::size_t i = 0; i < kGroup; ++i) {
          v[i] = hn::LoadU(d, typed<std::uint8_t>(rows[c + i] + p * kBlockBytes));
        }
        transpose_blocks(d, v, 1);
        for (std::size_t i = 0; i < kGroup; ++i) {
          hn::StoreU(v[i], d, typed<std::uint8_t>(dst + ((p + i) * stride + c) * kBlockBytes));
        }
      }
    });
  }
#endif
  interleave_each<kBlockBytes>(rows, channels, dst, stride, done, count);
}

void deinterleave_blocks(const std::byte* src, std::size_t stride, std::byte* const* rows,
                         std::size_t channels, std::size_t count, bool far) {
  (void)far;
  std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::size_t kGroup = kBlocks<decltype(d)>;
  if (channels >= kGroup) {
    done = count / kGroup * kGroup;
    for_groups(kGroup, channels, [&](std::size_t c) HWY_ATTR {
      for (std::size_t p = 0; p < done; p += kGroup) {
        hn::Vec<decltype(d)> v[kGroup];
        for (std::size_t i = 0; i < kGroup; ++i) {
          v[i] = hn::LoadU(d, typed<std::uint8_t>(src + ((p + i) * stride + c) * kBlockBytes));
        }
        transpose_blocks(d, v, 1);
        for (std::size_t i = 0; i < kGroup; ++i) {
          hn::StoreU(v[i], d, typed<std::uint8_t>(rows[c + i] + p * kBlockBytes));
        }
      }
    });
  }
#endif
  deinterleave_each<kBlockBytes>(src, stride, rows, channels, done, count);
}

/// Without vectors, for elements that are rarely moved.
template <std::size_t kSize>
void interleave_plain(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                      std::size_t stride, std::size_t count, bool far) {
  (void)far;
  interleave_each<kSize>(rows, channels, dst, stride, 0, count);
}
template <std::size_t kSize>
void deinterleave_plain(const std::byte* src, std::size_t stride, std::byte* const* rows,
                        std::size_t channels, std::size_t count, bool far) {
  (void)far;
  deinterleave_each<kSize>(src, stride, rows, channels, 0, count);
}

template <std::size_t kSize>
constexpr TileKernels kPlainKernels = {interleave_plain<kSize>, deinterleave_plain<kSize>};
template <class T>
constexpr TileKernels kKernels = {interleave<T>, deinterleave<T>};
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
