// Pixels put together from runs of channels, compiled once per instruction set.
#include <algorithm>
#include <cstring>

#include "corelane/tensor/convert.h"
#include "tensor/convert/convert_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/convert/convert_gather_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "tensor/convert/convert_blocks_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

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
    while (out < end) {
      const std::size_t bytes = std::min(kBlockBytes, static_cast<std::size_t>(end - out));
      std::memcpy(out, pad, bytes);
      out += bytes;
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

using Bytes = hn::ScalableTag<std::uint8_t>;
using Block = hn::CappedTag<std::uint8_t, kBlockBytes>;

/// Copies `bytes` in whole blocks: reads and writes up to 15 bytes too many.
HWY_INLINE void copy_blocks(const std::byte* src, std::byte* dst, std::size_t bytes) {
  const Block d;
  for (std::size_t i = 0; i < bytes; i += kBlockBytes)
    hn::StoreU(hn::LoadU(d, typed<std::uint8_t>(src + i)), d, typed<std::uint8_t>(dst + i));
}

#if HWY_TARGET == HWY_AVX3_DL
/// Pixels that lie together so that 16 of them fit a vector, as those of pictures do. Returns how
/// many were made, 0 for others.
HWY_INLINE std::size_t spread_short_pixels(const Segment& s, std::byte* dst, std::size_t count,
                                           __mmask64 keep, __m512i padding) {
  constexpr std::size_t kLanes = hn::MaxLanes(Bytes());
  constexpr std::size_t kPixels = 16;  // Of four vectors that are stored.
  const std::size_t read = (kPixels - 1) * s.src_step + s.bytes;
  if (read > kLanes) return 0;
  HWY_ALIGN std::uint8_t order[4 * kLanes];
  for (std::size_t i = 0; i < 4 * kLanes; ++i)
    order[i] = static_cast<std::uint8_t>(i / kBlockBytes * s.src_step + i % kBlockBytes);
  __m512i from[4];
  for (std::size_t k = 0; k < 4; ++k) from[k] = hn::Load(Bytes(), order + k * kLanes).raw;
  const __mmask64 valid = ~std::uint64_t{0} >> (kLanes - read);
  std::size_t p = 0;
  for (; p + kPixels <= count; p += kPixels) {
    const __m512i v = _mm512_maskz_loadu_epi8(valid, s.src + p * s.src_step);
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      const __m512i spread = _mm512_mask_permutexvar_epi8(padding, keep, from[k], v);
      _mm512_storeu_si512(dst + p * kBlockBytes + k * kLanes, spread);
    }
  }
  return p;
}
#endif

/// One run and padding make a pixel of one block: several pixels per vector. Returns how many
/// pixels were made.
HWY_INLINE std::size_t pad_to_blocks(const Segment& s, std::byte* dst, std::size_t count,
                                     const std::byte* pad) {
  const Bytes d;
  constexpr std::size_t kPixels = kBlocks<Bytes>;
  HWY_ALIGN std::uint8_t mask[hn::MaxLanes(Bytes())];
  for (std::size_t i = 0; i < hn::MaxLanes(d); ++i) mask[i] = i % kBlockBytes < s.bytes ? 255 : 0;
  const auto keep = hn::MaskFromVec(hn::Load(d, mask));
  // The pattern is the same at every element, so the padding needs no shift.
  const auto padding = hn::LoadDup128(d, typed<std::uint8_t>(pad));
  std::size_t p = 0;
#if HWY_TARGET == HWY_AVX3_DL
  p = spread_short_pixels(s, dst, count, keep.raw, padding.raw);
#endif
  for (; p + kPixels <= count; p += kPixels) {
    const auto v = load_blocks(d, typed<std::uint8_t>(s.src + p * s.src_step), s.src_step);
    hn::StoreU(hn::IfThenElse(keep, v, padding), d, typed<std::uint8_t>(dst + p * kBlockBytes));
  }
  return p;
}

/// Merges the blocks of a vector by "or".
template <class D>
HWY_INLINE auto merge_blocks(D d, hn::Vec<D> v) {
  if constexpr (kBlocks<D> <= 1) {
    (void)d;
    return v;
  } else {
    const hn::Half<D> half;
    return merge_blocks(half, hn::Or(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

/// Pixels of one block of which a short run is kept: those of a vector are packed into one block.
/// Writes up to 15 bytes too many. Returns how many pixels were made.
template <class D>
HWY_INLINE std::size_t pack_runs(D d, const Segment& s, std::byte* dst, std::size_t count) {
  constexpr std::size_t kPixels = kBlocks<D>;
  if constexpr (kPixels > 1) {
    if (kPixels * s.bytes > kBlockBytes) return pack_runs(hn::Half<D>(), s, dst, count);
  }
  HWY_ALIGN std::uint8_t index[hn::MaxLanes(D())];
  for (std::size_t i = 0; i < hn::MaxLanes(d); ++i) {
    const std::size_t first = i / kBlockBytes * s.bytes;
    const std::size_t at = i % kBlockBytes;
    const bool mine = at >= first && at < first + s.bytes;
    index[i] = static_cast<std::uint8_t>(mine ? at - first : 0x80);
  }
  const auto order = hn::Load(d, index);
  const Block block;
  std::size_t p = 0;
  for (; p + kPixels <= count; p += kPixels) {
    const auto v = hn::LoadU(d, typed<std::uint8_t>(s.src + p * kBlockBytes));
    hn::StoreU(merge_blocks(d, hn::TableLookupBytesOr0(v, order)), block,
               typed<std::uint8_t>(dst + p * s.bytes));
  }
  return p;
}

void gather_blocks(const Segment* segments, std::size_t segment_count, std::byte* dst,
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
  for (std::size_t s = 0; s < segment_count; ++s)
    least_step = std::min(least_step, segments[s].src_step);
  // Pixels near the end, where a whole block could leave the memory, are copied exactly.
  done = count - std::min(count, kBlockBytes / least_step + 1);
  const Segment& first = segments[0];
  if (segment_count == 1 && dst_step == kBlockBytes && first.bytes <= kBlockBytes) {
    done = pad_to_blocks(first, dst, done, pad);
  } else if (segment_count == 1 && dst_step == first.bytes && first.src_step == kBlockBytes &&
             first.bytes <= kBlockBytes) {
    done = pack_runs(Bytes(), first, dst, done);
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
namespace corelane {
namespace detail {

HWY_EXPORT(gather);
HWY_EXPORT(compiled_target);

void gather_segments(const Segment* segments, std::size_t segment_count, std::byte* dst,
                     std::size_t dst_step, std::size_t count, const std::byte* pad) noexcept {
  HWY_DYNAMIC_DISPATCH(gather)(segments, segment_count, dst, dst_step, count, pad);
}

static std::int64_t current_target() noexcept { return HWY_DYNAMIC_DISPATCH(compiled_target)(); }

}  // namespace detail

std::string_view convert_isa() noexcept { return hwy::TargetName(detail::current_target()); }

}  // namespace corelane
#endif
