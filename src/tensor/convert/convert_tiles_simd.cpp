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

#include "tensor/convert/convert_tiles_inl.h"

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

/// Fewer pixels than a vector has lanes go to vectors of one block, fewer than that one by one.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void interleave_with(D d, const std::byte* const* rows, std::size_t channels,
                                std::byte* dst, std::size_t stride, std::size_t count,
                                Streaming streaming) {
  if (count >= hn::Lanes(d)) {
    EqualRows<D> as;
    interleave_vectors(d, as, rows, channels, typed<T>(dst), stride, count, streaming);
  } else if constexpr (kBlocks<D> > 1)
    interleave_with(hn::CappedTag<T, kSide<T>>(), rows, channels, dst, stride, count, streaming);
  else
    interleave_each<sizeof(T)>(rows, channels, dst, stride, 0, count);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void deinterleave_with(D d, const std::byte* src, std::size_t stride,
                                  std::byte* const* rows, std::size_t channels, std::size_t count,
                                  Streaming streaming) {
  if (count >= hn::Lanes(d)) {
    EqualRows<D> as;
    deinterleave_vectors(d, as, typed<T>(src), stride, rows, channels, count, streaming);
  } else if constexpr (kBlocks<D> > 1)
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
/// Blocks of 16 bytes, from rows to the pixels of all of them: as many rows at once as a vector has
/// blocks, else half as many.
template <class D>
HWY_INLINE void interleave_blocks_with(D d, const std::byte* const* rows, std::size_t channels,
                                       std::byte* dst, std::size_t stride, std::size_t count) {
  constexpr std::size_t kGroup = kBlocks<D>;
  if constexpr (kGroup > 1) {
    if (channels < kGroup)
      return interleave_blocks_with(hn::Half<D>(), rows, channels, dst, stride, count);
  }
  for (std::size_t p = 0; p < count; ++p) {
    for (std::size_t k = 0; k < channels; k += kGroup) {
      const std::size_t c = std::min(k, channels - kGroup);
      const auto v = load_blocks_at(d, [&](std::size_t b) HWY_ATTR {
        return typed<std::uint8_t>(rows[c + b]) + p * kBlockBytes;
      });
      hn::StoreU(v, d, typed<std::uint8_t>(dst) + (p * stride + c) * kBlockBytes);
    }
  }
}

/// As many pixels at once as a vector has blocks. Returns how many pixels were moved.
template <class D>
HWY_INLINE std::size_t deinterleave_blocks_with(D d, const std::byte* src, std::size_t stride,
                                                std::byte* const* rows, std::size_t channels,
                                                std::size_t count) {
  const std::size_t done = count / kBlocks<D> * kBlocks<D>;
  for (std::size_t p = 0; p < done; p += kBlocks<D>) {
    for (std::size_t c = 0; c < channels; ++c) {
      const auto* const from = typed<std::uint8_t>(src) + (p * stride + c) * kBlockBytes;
      hn::StoreU(load_blocks(d, from, stride * kBlockBytes), d,
                 typed<std::uint8_t>(rows[c]) + p * kBlockBytes);
    }
  }
  return done;
}
#endif

void interleave_blocks(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                       std::size_t stride, std::size_t count, Streaming streaming) {
  (void)streaming;
  if (channels == 0) return;
#if HWY_TARGET == HWY_SCALAR
  interleave_each<kBlockBytes>(rows, channels, dst, stride, 0, count);
#else
  interleave_blocks_with(hn::ScalableTag<std::uint8_t>(), rows, channels, dst, stride, count);
#endif
}

void deinterleave_blocks(const std::byte* src, std::size_t stride, std::byte* const* rows,
                         std::size_t channels, std::size_t count, Streaming streaming) {
  (void)streaming;
  std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  done =
      deinterleave_blocks_with(hn::ScalableTag<std::uint8_t>(), src, stride, rows, channels, count);
#endif
  deinterleave_each<kBlockBytes>(src, stride, rows, channels, done, count);
}

#if HWY_TARGET == HWY_SCALAR
constexpr auto kPadBytes = nullptr;
#else
bool interleave_padded(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                       std::size_t count, const std::byte* padding, bool stream) {
  const hn::ScalableTag<std::uint8_t> d;
  const EqualRows<decltype(d)> as;
  const auto row = [&](std::size_t c, std::size_t p) HWY_ATTR { return as.load(rows[c], p); };
  return interleave_rows_into_blocks(d, row, channels, typed<std::uint8_t>(dst), count, padding,
                                     stream);
}
constexpr auto kPadBytes = interleave_padded;
#endif

template <class T>
constexpr TileKernels kKernels = {interleave<T>, deinterleave<T>};
template <>
constexpr TileKernels kKernels<std::uint8_t> = {interleave<std::uint8_t>,
                                                deinterleave<std::uint8_t>, kPadBytes};
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
