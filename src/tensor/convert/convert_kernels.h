/// The vector kernels of the fast conversion, one set per instruction set, chosen at run time.
/// They know nothing of shapes: rows of elements are converted, and tiles of channels x pixels are
/// moved between planes (one row per channel) and pixels (channels side by side). No pointer needs
/// to be aligned; nothing outside the named elements is read or written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "corelane/tensor/dtype.h"

namespace corelane::detail {

struct RowParams;

/// Converts `count` elements, or makes a step of it. Does not work in place: vectors overlap at the
/// end of a row.
using RowPass = void (*)(const RowParams& params, const std::byte* src, std::byte* dst,
                         std::size_t count);

/// Arithmetic of one row, in the order of the members.
struct RowParams {
  std::int32_t src_zero = 0;  ///< Subtracted from integers.
  bool dequantize = false;
  bool normalise = false;
  bool quantize = false;
  bool stream = false;            ///< Results are stored with non-temporal stores.
  std::ptrdiff_t prefetch = 0;    ///< Bytes from an f32 that is read to one that is prefetched.
  float src_scale = 1;            ///< Multiplied, when `dequantize`.
  float mean = 0;                 ///< Subtracted, when `normalise`.
  float std = 1;                  ///< Divided by, when `normalise`.
  float std_reciprocal = 0;       ///< RN(1 / std); 0 where only a division will do.
  float dst_scale = 1;            ///< Divided by, when `quantize`.
  float dst_reciprocal = 0;       ///< RN(1 / dst_scale); 0 where only a division will do.
  bool exact_reciprocal = false;  ///< The scale is a power of two.
  float low = 0;                  ///< Bounds of integers before the zero point is added.
  float high = 0;
  std::int32_t dst_zero = 0;
  float factor = 1;  ///< All of the above before the bounds is x * factor + offset,
  float offset = 0;  ///< up to rounding.
  // Set by RowKernel::shorten():
  RowPass shortcut = nullptr;
  const std::byte* results = nullptr;  ///< Of all bytes, each of the destination's size.
};

/// What each of the 256 bytes becomes, at most an f32.
using ByteResults = std::array<std::byte, 256 * sizeof(float)>;

/// Conversion of a row by way of f32: up to three passes over a part of the row that stays in the
/// cache. A pass that a type does not need is null.
struct RowKernel {
  using Pass = RowPass;
  using Shortcuts = std::array<Pass, 2>;
  Pass load = nullptr;       ///< From the source type to dequantized f32; null for f32.
  Pass normalise = nullptr;  ///< From f32 to f32.
  Pass store = nullptr;      ///< From f32 to the destination type; null for f32.
  Shortcuts shortcuts{};     ///< From bytes to the destination type, for some parameters.
  std::size_t src_size = 0;
  std::size_t dst_size = 0;
  explicit operator bool() const noexcept { return normalise != nullptr; }
  /// Converts `count` elements. The memories do not overlap. Rows stored with `stream` become
  /// visible to other threads with finish_streaming(). `next`, if not null, is as long as the
  /// source and read later; it is prefetched meanwhile.
  void operator()(const RowParams& params, const std::byte* src, std::byte* dst, std::size_t count,
                  bool stream = false, const std::byte* next = nullptr) const;
  /// Lets a shortcut convert the rows with `params` when it gives the exact result for each of the
  /// 256 bytes. Costs as much as some hundred elements. `results` is read by the rows to come.
  void shorten(RowParams& params, ByteResults& results) const;
};

/// The fence after non-temporal stores, before another thread may read what they wrote.
void finish_streaming() noexcept;

/// The kernel for two element types; false where there is none. Types: f32 f16 bf16 i8 u8 i16 u16.
RowKernel find_row_kernel(DType src, DType dst) noexcept;

/// One run of channels that lies together in the pixels of the source.
struct Segment {
  const std::byte* src;  ///< Of the first pixel.
  std::size_t src_step;  ///< Bytes from pixel to pixel.
  std::size_t bytes;     ///< Bytes of the run.
};

/// How a call treats tensors that fit no cache.
struct Streaming {
  bool prefetch = false;  ///< The source: its next part is prefetched, or more of it read at once.
  bool store = false;     ///< The destination: non-temporal stores, see finish_streaming().
};

/// Kernels for elements of one size. Counts and strides in elements, except where bytes are named.
struct TileKernels {
  /// dst[p * stride + c] = rows[c][p] for c < channels, p < count. Between two pixels nothing is
  /// written beyond `channels`.
  void (*interleave)(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                     std::size_t stride, std::size_t count, Streaming streaming);
  /// rows[c][p] = src[p * stride + c].
  void (*deinterleave)(const std::byte* src, std::size_t stride, std::byte* const* rows,
                       std::size_t channels, std::size_t count, Streaming streaming);
  /// Blocks of 16 elements: dst[p * 16 + c] = rows[c][p] for c < channels, and for the others
  /// `padding`, 16 equal bytes. Null for elements of more than one byte. False, with nothing
  /// written, for more than four channels or few pixels. `stream`: as Streaming::store.
  bool (*interleave_padded)(const std::byte* const* rows, std::size_t channels, std::byte* dst,
                            std::size_t count, const std::byte* padding, bool stream) = nullptr;
};

/// For elements of 1, 2, 4, 8 or 16 bytes.
const TileKernels& tile_kernels(std::size_t element_size) noexcept;

/// Parameters of channels: of one after the other, or of all of them.
struct ChannelParams {
  const RowParams* first = nullptr;
  std::size_t step = 0;  ///< 0: all channels have the first ones.
  const RowParams& of(std::size_t channel) const noexcept { return first[channel * step]; }
};

/// Tile kernels that convert: what goes through the registers anyhow needs no memory in between.
/// Rows are f32, or bytes where both sides are; pixels have elements of 1 or 2 bytes. False, with
/// nothing written, where parameters or few pixels need the separate kernels. Those from bytes to
/// bytes look each byte up in RowParams::results, which shorten() has set for every channel.
struct FusedKernels {
  /// f32 rows to pixels.
  bool (*interleave)(const RowParams& params, const std::byte* const* rows, std::size_t channels,
                     std::byte* dst, std::size_t stride, std::size_t count,
                     Streaming streaming) = nullptr;
  /// Pixels to rows. To f32 all channels have the same parameters; to bytes there are two to four
  /// channels, and no others between them.
  bool (*deinterleave)(ChannelParams params, const std::byte* src, std::size_t stride,
                       std::byte* const* rows, std::size_t channels, std::size_t count,
                       Streaming streaming) = nullptr;
  /// As TileKernels::interleave_padded; `padding` is converted.
  bool (*interleave_padded)(ChannelParams params, const std::byte* const* rows,
                            std::size_t channels, std::byte* dst, std::size_t count,
                            const std::byte* padding, bool stream) = nullptr;
  /// Pixels of two to four bytes that become as many bytes: dst[p * channels + c] is the result of
  /// channel c for src[p * channels + c].
  void (*look_up)(ChannelParams params, std::size_t channels, const std::byte* src, std::byte* dst,
                  std::size_t count) = nullptr;
  /// The same into blocks of 16: dst[p * 16 + c], and `padding` for the others. False for other
  /// than three channels.
  bool (*look_up_padded)(ChannelParams params, std::size_t channels, const std::byte* src,
                         std::byte* dst, std::size_t count, const std::byte* padding,
                         bool stream) = nullptr;
};

/// The kernels that convert from `src` to `dst`; null where there are none.
FusedKernels find_fused_kernels(DType src, DType dst) noexcept;

/// Builds `count` pixels of `dst_step` bytes that follow each other without a gap: the segments in
/// order, then padding that repeats the 16 bytes of `pad`.
void gather_segments(const Segment* segments, std::size_t segment_count, std::byte* dst,
                     std::size_t dst_step, std::size_t count, const std::byte* pad) noexcept;

}  // namespace corelane::detail
