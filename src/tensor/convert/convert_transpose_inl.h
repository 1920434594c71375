// Transposes between rows (a row per channel) and pixels (channels side by side); included once per
// instruction set. The unit is a square: kSide channels x kSide pixels that fill kSide blocks of 16
// bytes, transposed in registers. No kernel writes beyond what its comment names.
#if defined(CORELANE_TENSOR_CONVERT_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORELANE_TENSOR_CONVERT_TRANSPOSE_INL_H_
#undef CORELANE_TENSOR_CONVERT_TRANSPOSE_INL_H_
#else
#define CORELANE_TENSOR_CONVERT_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tensor/convert/convert_blocks_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

HWY_INLINE bool begins_line(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % kLine == 0;
}

/// How many bytes before their use lines are prefetched: fewer where many rows are read at once,
/// since their lines compete for the first cache level.
constexpr std::size_t kPrefetchRows = 1024;
constexpr std::size_t kPrefetchStream = 4096;

/// Prefetches a line of each row.
HWY_INLINE void prefetch_rows(const std::byte* const* rows, std::size_t count, std::size_t offset) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < count; ++i) __builtin_prefetch(rows[i] + offset, 0, 3);
}

/// Calls f(first) for whole groups of `lanes` pixels or channels, of which there must be one, the
/// last one overlapping its neighbour. There is one call, so that f is expanded once.
template <class F>
HWY_INLINE void for_vectors(std::size_t lanes, std::size_t count, F f) {
  for (std::size_t p = 0;; p = count - lanes) {
    for (; p + lanes <= count; p += lanes) f(p);
    if (p == count) return;
  }
}

/// Rows of the elements that the pixels have. The kernels take another class where the rows have
/// another type, and convert on the way.
template <class D>
struct EqualRows {
  using T = hn::TFromD<D>;
  static constexpr std::size_t kSize = sizeof(T);
  HWY_INLINE hn::Vec<D> load(const std::byte* row, std::size_t pixel) const {
    return hn::LoadU(D(), typed<T>(row) + pixel);
  }
  HWY_INLINE void store(hn::Vec<D> v, std::byte* row, std::size_t pixel, bool stream) const {
    detail::HWY_NAMESPACE::store(D(), v, typed<T>(row) + pixel, stream);
  }
};

/// kSide channels x Lanes(d) pixels, to pixels `stride` elements apart, 16 bytes each.
template <class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void interleave_square(D d, R& as, const std::byte* const* rows, std::size_t pixel,
                                  T* dst, std::size_t stride) {
  hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kSide<T>; ++c) v[c] = as.load(rows[c], pixel);
  transpose_in_blocks(d, v);
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kSide<T>; ++j)
    store_blocks(d, v[j], dst + j * stride, kSide<T> * stride);
}

/// The first `channels` of kSide channels x Lanes(d) pixels.
template <class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_square(D d, R as, const T* src, std::size_t stride,
                                    std::byte* const* rows, std::size_t pixel, std::size_t channels,
                                    bool stream) {
  hn::Vec<D> v[kSide<T>];
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kSide<T>; ++j, src += stride)
    v[j] = load_blocks(d, src, kSide<T> * stride);
  transpose_in_blocks(d, v);
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kSide<T>; ++c)
    if (c < channels) as.store(v[c], rows[c], pixel, stream);
}

/// Pixels of exactly one block: whole vectors on both sides.
template <class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void interleave_packed(D d, R& as, const std::byte* const* rows, std::size_t pixel,
                                  T* dst, Streaming streaming) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> v[kSide<T>];
  if (streaming.prefetch) prefetch_rows(rows, kSide<T>, pixel * R::kSize + kPrefetchRows);
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kSide<T>; ++c)
    v[c] = deal_lanes<kBlocks<D>>(d, as.load(rows[c], pixel));
  transpose_in_blocks(d, v);
  const bool stream = streaming.store && begins_line(dst);
  if constexpr (has_shuffle<D>) {
#pragma GCC unroll 16
    for (std::size_t j = 0; j < kSide<T>; ++j) store(d, v[j], dst + j * kLanes, stream);
    return;
  }
#pragma GCC unroll 16
  for (std::size_t j = 0; j + kBlocks<D> <= kSide<T>; j += kBlocks<D>) {
    transpose_blocks(d, v + j, 1);
#pragma GCC unroll 4
    for (std::size_t b = 0; b < kBlocks<D>; ++b)
      store(d, v[j + b], dst + b * kSide<T> * kSide<T> + j / kBlocks<D> * kLanes, stream);
  }
}

/// At most four channels of 1 or 2 bytes out of pixels of one block: only their part of each block
/// is transposed.
template <class D, class R, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_four(D d, R as, const T* src, std::byte* const* rows,
                                  std::size_t pixel, std::size_t channels, bool prefetch,
                                  bool stream) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  const hn::Repartition<std::uint64_t, D> d64;
  const hn::Repartition<std::uint32_t, D> d32;
  const auto load = [&](std::size_t i) HWY_ATTR {
    if (prefetch) __builtin_prefetch(src + kPrefetchStream / sizeof(T) + i * kLanes, 0, 3);
    return hn::BitCast(d64, hn::LoadU(d, src + i * kLanes));
  };
  const auto halves = [&](std::size_t i)
                          HWY_ATTR { return hn::ConcatEven(d64, load(i + 1), load(i)); };
  const auto quarters = [&](std::size_t i) HWY_ATTR {
    return hn::ConcatEven(d32, hn::BitCast(d32, halves(i + 2)), hn::BitCast(d32, halves(i)));
  };
  HWY_ALIGN T four[4 * kLanes];
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i)
    if constexpr (sizeof(T) == 1)
      hn::Store(hn::BitCast(d, quarters(4 * i)), d, four + i * kLanes);
    else
      hn::Store(hn::BitCast(d, halves(2 * i)), d, four + i * kLanes);
  hn::Vec<D> v[4];
  hn::LoadInterleaved4(d, four, v[0], v[1], v[2], v[3]);
  for (std::size_t c = 0; c < channels; ++c) as.store(v[c], rows[c], pixel, stream);
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

/// Lanes(d) channels x Lanes(d) pixels, of rows in memory: whole vectors on both sides.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_lanes(D d, const std::byte* const* rows, std::size_t pixel, T* dst,
                                 std::size_t stride, bool stream) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> v[kLanes];
  prefetch_rows(rows, kLanes, pixel * sizeof(T) + kPrefetchRows);
#pragma GCC unroll 16
  for (std::size_t c = 0; c < kLanes; ++c) v[c] = hn::LoadU(d, typed<T>(rows[c]) + pixel);
  transpose_lanes(d, v);
  stream = stream && begins_line(dst) && stride % kLanes == 0;
#pragma GCC unroll 16
  for (std::size_t p = 0; p < kLanes; ++p) store(d, v[p], dst + p * stride, stream);
}

/// Fewer than kSide channels, by way of a square that is filled up with copies of the last channel.
/// Nothing beyond `channels` is written.
template <class D, class R, class T = hn::TFromD<D>>
HWY_NOINLINE void interleave_few(D d, R& as, const std::byte* const* rows, std::size_t channels,
                                 std::size_t pixel, T* dst, std::size_t stride) {
  constexpr std::size_t kPixels = hn::MaxLanes(D());
  const std::byte* filled[kSide<T>];
  for (std::size_t c = 0; c < kSide<T>; ++c) filled[c] = rows[std::min(c, channels - 1)];
  HWY_ALIGN T square[kPixels * kSide<T>];
  interleave_square(d, as, filled, pixel, square, kSide<T>);
  std::size_t p = 0;
  if (stride == channels) {
    // Each pixel is stored whole; the next one overwrites what is too much.
    const hn::CappedTag<T, kSide<T>> block;
    for (; (p + 1) * stride + kSide<T> <= kPixels * stride; ++p)
      hn::StoreU(hn::LoadU(block, square + p * kSide<T>), block, dst + p * stride);
  }
  for (; p < kPixels; ++p)
    std::memcpy(dst + p * stride, square + p * kSide<T>, channels * sizeof(T));
}

template <class D, class R, class T = hn::TFromD<D>>
HWY_NOINLINE void deinterleave_few(D d, R as, const T* src, std::size_t stride,
                                   std::byte* const* rows, std::size_t channels, std::size_t pixel,
                                   bool at_end) {
  constexpr std::size_t kPixels = hn::MaxLanes(D());
  if (!at_end) {
    deinterleave_square(d, as, src, stride, rows, pixel, channels, false);
    return;
  }
  // A whole block read at the last pixels could leave the memory.
  HWY_ALIGN T square[kPixels * kSide<T>] = {};
  for (std::size_t p = 0; p < kPixels; ++p)
    std::memcpy(square + p * kSide<T>, src + p * stride, channels * sizeof(T));
  deinterleave_square(d, as, square, kSide<T>, rows, pixel, channels, false);
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#endif  // per target
