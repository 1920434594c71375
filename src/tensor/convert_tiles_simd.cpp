// Movement of tiles between planes and pixels, compiled once per instruction set.
#include <algorithm>
#include <cstring>

#include "corelane/tensor/convert.h"
#include "tensor/convert_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/convert_tiles_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kBlockBytes = 16;

/// Element by element: for few pixels, and for CPUs without vectors.
template <class T>
void interleave_each(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                     std::size_t stride, std::size_t count) {
  for (std::size_t p = 0; p < count; ++p) {
    for (std::size_t c = 0; c < channels; ++c) {
      std::memcpy(dst + (p * stride + c) * sizeof(T), rows[c] + p * sizeof(T), sizeof(T));
    }
  }
}

template <class T>
void deinterleave_each(const std::byte* src, std::size_t stride, std::byte* const* rows,
                       std::size_t channels, std::size_t count) {
  for (std::size_t p = 0; p < count; ++p) {
    for (std::size_t c = 0; c < channels; ++c) {
      std::memcpy(rows[c] + p * sizeof(T), src + (p * stride + c) * sizeof(T), sizeof(T));
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

/// Lanes of a 128-bit block: channels and pixels of the square that is transposed at once.
template <class T>
constexpr std::size_t kSide = kBlockBytes / sizeof(T);

template <class D>
constexpr bool kIsOneBlock = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= kBlockBytes;

template <class T>
HWY_INLINE const T* typed(const std::byte* p) {
  return reinterpret_cast<const T*>(p);
}
template <class T>
HWY_INLINE T* typed(std::byte* p) {
  return reinterpret_cast<T*>(p);
}

/// Transposes the squares of every block: lane c of block b of v[j] becomes lane j of v[c]. Each
/// round shuffles perfectly, which turns the bits of (vector, lane) by one place; after as many
/// rounds as either has bits, vector and lane have changed places.
template <class D, class V, std::size_t kCount>
HWY_INLINE void transpose(D d, V (&v)[kCount]) {
#pragma GCC unroll 16
  for (std::size_t bits = 1; bits < kCount; bits *= 2) {
    V next[kCount];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kCount / 2; ++i) {
      next[2 * i] = hn::InterleaveLower(d, v[i], v[i + kCount / 2]);
      next[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kCount / 2]);
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kCount; ++i) v[i] = next[i];
  }
}

/// Stores block b at dst + b * step elements.
template <class D, class V>
HWY_INLINE void store_blocks(D d, V v, hn::TFromD<D>* dst, std::size_t step) {
  if constexpr (kIsOneBlock<D>) {
    (void)step;
    hn::StoreU(v, d, dst);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kHalfBlocks = hn::MaxLanes(D()) / 2 / kSide<hn::TFromD<D>>;
    store_blocks(half, hn::LowerHalf(half, v), dst, step);
    store_blocks(half, hn::UpperHalf(half, v), dst + kHalfBlocks * step, step);
  }
}

template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const hn::TFromD<D>* src, std::size_t step) {
  if constexpr (kIsOneBlock<D>) {
    (void)step;
    return hn::LoadU(d, src);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kHalfBlocks = hn::MaxLanes(D()) / 2 / kSide<hn::TFromD<D>>;
    return hn::Combine(d, load_blocks(half, src + kHalfBlocks * step, step),
                       load_blocks(half, src, step));
  }
}

/// kSide channels x Lanes(d) pixels from rows to pixels `stride` elements apart.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_square(D d, const std::byte* const* rows, std::size_t pixel, T* dst,
                                  std::size_t stride) {
  hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kSide<T>; ++c) v[c] = hn::LoadU(d, typed<T>(rows[c]) + pixel);
  transpose(d, v);
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kSide<T>; ++j) {
    store_blocks(d, v[j], dst + j * stride, kSide<T> * stride);
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_square(D d, const T* src, std::size_t stride, std::byte* const* rows,
                                    std::size_t pixel, std::size_t channels) {
  hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kSide<T>; ++j) {
    v[j] = load_blocks(d, src + j * stride, kSide<T> * stride);
  }
  transpose(d, v);
  for (std::size_t c = 0; c < channels; ++c) hn::StoreU(v[c], d, typed<T>(rows[c]) + pixel);
}

/// Lanes(d) pixels of at least kSide channels. The last square overlaps its neighbour.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_many(D d, const std::byte* const* rows, std::size_t channels,
                                std::size_t pixel, T* dst, std::size_t stride) {
  std::size_t c = 0;
  for (; c + kSide<T> <= channels; c += kSide<T>) {
    interleave_square(d, rows + c, pixel, dst + c, stride);
  }
  if (c == channels) return;
  c = channels - kSide<T>;
  interleave_square(d, rows + c, pixel, dst + c, stride);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_many(D d, const T* src, std::size_t stride, std::byte* const* rows,
                                  std::size_t channels, std::size_t pixel) {
  std::size_t c = 0;
  for (; c + kSide<T> <= channels; c += kSide<T>) {
    deinterleave_square(d, src + c, stride, rows + c, pixel, kSide<T>);
  }
  if (c == channels) return;
  c = channels - kSide<T>;
  deinterleave_square(d, src + c, stride, rows + c, pixel, kSide<T>);
}

/// Lanes(d) pixels of fewer than kSide channels, by way of a square that is filled up with copies
/// of the last channel. Nothing beyond `channels` is written.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_few(D d, const std::byte* const* rows, std::size_t channels,
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
HWY_INLINE void deinterleave_few(D d, const T* src, std::size_t stride, std::byte* const* rows,
                                 std::size_t channels, std::size_t pixel, bool at_end) {
  constexpr std::size_t kPixels = hn::MaxLanes(D());
  if (!at_end) {
    deinterleave_square(d, src, stride, rows, pixel, channels);
    return;
  }
  // A whole block read at the last pixels could leave the memory.
  HWY_ALIGN T square[kPixels * kSide<T>] = {};
  for (std::size_t p = 0; p < kPixels; ++p) {
    std::memcpy(square + p * kSide<T>, src + p * stride, channels * sizeof(T));
  }
  deinterleave_square(d, square, kSide<T>, rows, pixel, channels);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_pixels(D d, const std::byte* const* rows, std::size_t channels,
                                  std::size_t pixel, T* dst, std::size_t stride) {
  const auto row = [&](std::size_t c) HWY_ATTR { return hn::LoadU(d, typed<T>(rows[c]) + pixel); };
  if (channels == 2 && stride == 2) {
    hn::StoreInterleaved2(row(0), row(1), d, dst);
  } else if (channels == 3 && stride == 3) {
    hn::StoreInterleaved3(row(0), row(1), row(2), d, dst);
  } else if (channels == 4 && stride == 4) {
    hn::StoreInterleaved4(row(0), row(1), row(2), row(3), d, dst);
  } else if (channels >= kSide<T>) {
    interleave_many(d, rows, channels, pixel, dst, stride);
  } else {
    interleave_few(d, rows, channels, pixel, dst, stride);
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_pixels(D d, const T* src, std::size_t stride, std::byte* const* rows,
                                    std::size_t channels, std::size_t pixel, bool at_end) {
  hn::Vec<D> v0;
  hn::Vec<D> v1;
  hn::Vec<D> v2;
  hn::Vec<D> v3;
  const auto store = [&](std::size_t c, hn::Vec<D> v)
                         HWY_ATTR { hn::StoreU(v, d, typed<T>(rows[c]) + pixel); };
  if (channels == 2 && stride == 2) {
    hn::LoadInterleaved2(d, src, v0, v1);
    store(0, v0);
    store(1, v1);
  } else if (channels == 3 && stride == 3) {
    hn::LoadInterleaved3(d, src, v0, v1, v2);
    store(0, v0);
    store(1, v1);
    store(2, v2);
  } else if (channels == 4 && stride == 4) {
    hn::LoadInterleaved4(d, src, v0, v1, v2, v3);
    store(0, v0);
    store(1, v1);
    store(2, v2);
    store(3, v3);
  } else if (channels >= kSide<T>) {
    deinterleave_many(d, src, stride, rows, channels, pixel);
  } else {
    deinterleave_few(d, src, stride, rows, channels, pixel, at_end);
  }
}

/// All pixels: whole vectors, the last one overlapping its neighbour; fewer pixels than a vector
/// has lanes go to half vectors, fewer than a block has lanes one by one.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_with(D d, const std::byte* const* rows, std::size_t channels,
                                std::byte* dst, std::size_t stride, std::size_t count) {
  const std::size_t lanes = hn::Lanes(d);
  if (count >= lanes) {
    std::size_t p = 0;
    for (; p + lanes <= count; p += lanes) {
      interleave_pixels(d, rows, channels, p, typed<T>(dst) + p * stride, stride);
    }
    if (p == count) return;
    p = count - lanes;
    interleave_pixels(d, rows, channels, p, typed<T>(dst) + p * stride, stride);
  } else if constexpr (!kIsOneBlock<D>) {
    interleave_with(hn::Half<D>(), rows, channels, dst, stride, count);
  } else {
    interleave_each<T>(rows, channels, dst, stride, count);
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_with(D d, const std::byte* src, std::size_t stride,
                                  std::byte* const* rows, std::size_t channels, std::size_t count) {
  const std::size_t lanes = hn::Lanes(d);
  if (count >= lanes) {
    std::size_t p = 0;
    for (; p + lanes <= count; p += lanes) {
      // A square reads kSide lanes of each pixel, which may reach this far beyond the last one.
      const bool at_end = p + lanes + (kSide<T> + stride - 1) / stride > count;
      deinterleave_pixels(d, typed<T>(src) + p * stride, stride, rows, channels, p, at_end);
    }
    if (p == count) return;
    p = count - lanes;
    deinterleave_pixels(d, typed<T>(src) + p * stride, stride, rows, channels, p, true);
  } else if constexpr (!kIsOneBlock<D>) {
    deinterleave_with(hn::Half<D>(), src, stride, rows, channels, count);
  } else {
    deinterleave_each<T>(src, stride, rows, channels, count);
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

template <class T>
void interleave(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                std::size_t stride, std::size_t count) {
  if (channels == 0) return;
  if (channels == 1 && stride == 1) {
    std::memcpy(dst, rows[0], count * sizeof(T));
    return;
  }
#if HWY_TARGET == HWY_SCALAR
  interleave_each<T>(rows, channels, dst, stride, count);
#else
  interleave_with(hn::ScalableTag<T>(), rows, channels, dst, stride, count);
#endif
}

template <class T>
void deinterleave(const std::byte* src, std::size_t stride, std::byte* const* rows,
                  std::size_t channels, std::size_t count) {
  if (channels == 0) return;
  if (channels == 1 && stride == 1) {
    std::memcpy(rows[0], src, count * sizeof(T));
    return;
  }
#if HWY_TARGET == HWY_SCALAR
  deinterleave_each<T>(src, stride, rows, channels, count);
#else
  deinterleave_with(hn::ScalableTag<T>(), src, stride, rows, channels, count);
#endif
}

template <class T>
constexpr TileKernels kKernels = {interleave<T>, deinterleave<T>};

const TileKernels* kernels_of_size(std::size_t element_size) {
  switch (element_size) {
    case 1:
      return &kKernels<std::uint8_t>;
    case 2:
      return &kKernels<std::uint16_t>;
    case 4:
      return &kKernels<std::uint32_t>;
    default:
      return &kKernels<std::uint64_t>;
  }
}

/// Pixels [first, count), each to its last byte and no further.
void gather_exactly(const Segment* segments, std::size_t segment_count, std::byte* dst,
                    std::size_t dst_step, std::size_t first, std::size_t count,
                    const std::byte* pad) {
  for (std::size_t p = first; p < count; ++p) {
    std::byte* out = dst + p * dst_step;
    std::byte* const end = out + dst_step;
    for (std::size_t s = 0; s < segment_count; ++s) {
      std::memcpy(out, segments[s].src + p * segments[s].src_step, segments[s].bytes);
      out += segments[s].bytes;
    }
    for (; out < end; out += kBlockBytes) {
      std::memcpy(out, pad, std::min<std::size_t>(kBlockBytes, end - out));
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

using Block = hn::CappedTag<std::uint8_t, kBlockBytes>;

/// Copies `bytes` in whole blocks: reads and writes up to 15 bytes too many.
HWY_INLINE void copy_blocks(const std::byte* src, std::byte* dst, std::size_t bytes) {
  const Block d;
  for (std::size_t i = 0; i < bytes; i += kBlockBytes) {
    hn::StoreU(hn::LoadU(d, typed<std::uint8_t>(src + i)), d, typed<std::uint8_t>(dst + i));
  }
}

/// One run that fills a block with padding: one load and one store per pixel.
HWY_INLINE void gather_padded_blocks(const Segment& s, std::byte* dst, std::size_t count,
                                     const std::byte* pad) {
  const Block d;
  const auto padding = hn::LoadU(d, typed<std::uint8_t>(pad));
  // The pattern is the same at every element, so the padding needs no shift.
  const auto keep = hn::FirstN(d, s.bytes);
  for (std::size_t p = 0; p < count; ++p) {
    const auto v = hn::LoadU(d, typed<std::uint8_t>(s.src + p * s.src_step));
    hn::StoreU(hn::IfThenElse(keep, v, padding), d, typed<std::uint8_t>(dst + p * kBlockBytes));
  }
}

HWY_INLINE void gather_blocks(const Segment* segments, std::size_t segment_count, std::byte* dst,
                              std::size_t dst_step, std::size_t count, const std::byte* pad) {
  const Block d;
  const auto padding = hn::LoadU(d, typed<std::uint8_t>(pad));
  for (std::size_t p = 0; p < count; ++p) {
    // In ascending order, so that what is written too much is overwritten by its owner.
    std::byte* out = dst + p * dst_step;
    std::byte* const end = out + dst_step;
    for (std::size_t s = 0; s < segment_count; ++s) {
      copy_blocks(segments[s].src + p * segments[s].src_step, out, segments[s].bytes);
      out += segments[s].bytes;
    }
    for (; out < end; out += kBlockBytes) hn::StoreU(padding, d, typed<std::uint8_t>(out));
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

void gather(const Segment* segments, std::size_t segment_count, std::byte* dst,
            std::size_t dst_step, std::size_t count, const std::byte* pad) {
  std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  std::size_t least_step = dst_step;
  for (std::size_t s = 0; s < segment_count; ++s) {
    least_step = std::min(least_step, segments[s].src_step);
  }
  // Pixels near the end, where a whole block could leave the memory, are copied exactly.
  done = count - std::min(count, kBlockBytes / least_step + 1);
  if (segment_count == 1 && dst_step == kBlockBytes && segments[0].bytes <= kBlockBytes) {
    gather_padded_blocks(segments[0], dst, done, pad);
  } else {
    gather_blocks(segments, segment_count, dst, dst_step, done, pad);
  }
#endif
  gather_exactly(segments, segment_count, dst, dst_step, done, count, pad);
}

std::int64_t compiled_target() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace corelane::detail {

HWY_EXPORT(kernels_of_size);
HWY_EXPORT(gather);
HWY_EXPORT(compiled_target);

static std::int64_t current_target() noexcept { return HWY_DYNAMIC_DISPATCH(compiled_target)(); }

const TileKernels& tile_kernels(std::size_t element_size) noexcept {
  return *HWY_DYNAMIC_DISPATCH(kernels_of_size)(element_size);
}

void gather_segments(const Segment* segments, std::size_t segment_count, std::byte* dst,
                     std::size_t dst_step, std::size_t count, const std::byte* pad) noexcept {
  HWY_DYNAMIC_DISPATCH(gather)(segments, segment_count, dst, dst_step, count, pad);
}

}  // namespace corelane::detail

namespace corelane {

std::string_view convert_isa() noexcept { return hwy::TargetName(detail::current_target()); }

}  // namespace corelane
#endif
