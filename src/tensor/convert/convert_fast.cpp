// The fast conversion: walks images in tiles that stay in the first cache level and leaves the
// elements to the vector kernels. A tile's channels are taken as planes (deinterleaved where the
// source is in pixels), each plane is converted as a row with its channel's parameters, and the
// planes are interleaved again where the destination is in pixels.
#include <cstring>
#include <memory>

#include "tensor/convert/convert_walk.h"

namespace corelane::detail {

namespace {

constexpr std::size_t kMaxChannels = 128;      ///< Of a tile.
constexpr std::size_t kTileBytes = 32 << 10;   ///< Of a tile's channels together.
constexpr std::size_t kStagedBytes = 8 << 10;  ///< Converted before they are regrouped.
constexpr std::size_t kMinPixels = 64;         ///< Whole vectors of every type.
constexpr std::size_t kMaxPixels = 2048;
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kRowsAhead = 2;
constexpr std::size_t kBlockBytes = 16;

/// Memory that is written before it is read: setting it to zero took a tenth of a small conversion.
using Scratch = std::unique_ptr<std::byte[]>;
Scratch make_scratch(std::size_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(bytes);
}

void fill(std::byte* dst, std::size_t bytes, const ZeroPattern& pattern) {
  for (std::size_t i = 0; i < bytes; i += pattern.size())
    std::memcpy(dst + i, pattern.data(), std::min(pattern.size(), bytes - i));
}

/// Sets the pixels beyond the width of every row of one image.
void fill_row_gaps(const Walk& w, std::size_t n) {
  const Side& d = w.dst;
  const std::size_t used = w.pixels * d.pixel_step();
  if (d.row_step == used) return;
  for (std::size_t b = 0; b < d.blocks; ++b) {
    for (std::size_t row = 0; row < w.rows; ++row) {
      std::byte* gap = d.at(n, b, row) + used;
      const std::size_t bytes = d.row_step - used;
      if (d.planar || w.one_zero()) {
        fill(gap, bytes, w.zero(b));
        continue;
      }
      for (std::size_t i = 0; i < bytes / d.size; ++i)
        fill(gap + i * d.size, d.size, w.zero(b * d.block + i % d.block));
    }
  }
}

/// `count` neighbouring elements with the parameters of channel c.
void convert_run(const Walk& w, std::size_t c, const std::byte* src, std::byte* dst,
                 std::size_t count, bool stream) {
  if (!w.kernel)
    std::memcpy(dst, src, count * w.dst.size);
  else
    w.kernel(w.params(c), src, dst, count, stream);
}

/// Both sides planar.
void convert_planes(const Walk& w, std::size_t n) {
  const auto is_dense = [&w](const Side& s) {
    return s.block_step == w.rows * s.row_step && s.row_step == w.pixels * s.size;
  };
  const bool dense = is_dense(w.src) && is_dense(w.dst);
  if (dense && w.uniform) {
    convert_run(w, 0, w.src.at(n, 0, 0), w.dst.at(n, 0, 0), w.channels * w.rows * w.pixels,
                w.exceeds_cache);
    return;
  }
  for (std::size_t c = 0; c < w.channels; ++c)
    for (std::size_t row = 0; row < w.rows; ++row)
      convert_run(w, c, w.src.at(n, c, row), w.dst.at(n, c, row), w.pixels, w.exceeds_cache);
}

/// Both sides blocked, all channels with the same parameters or few bytes that are looked up:
/// pixels are converted as they lie and their runs of channels regrouped.
class Regroup {
 public:
  explicit Regroup(const Walk& w) : w_(w) {
    const std::size_t stored = w.src.blocks * w.src.block;
    const std::size_t bytes = w.kernel ? kStagedBytes : kTileBytes;
    tile_ = std::clamp<std::size_t>(bytes / (stored * w.dst.size), 8, kMaxPixels);
    tile_ = std::min(tile_, w.pixels);
    if (w.kernel) buffer_ = make_scratch(tile_ * stored * w.dst.size);
  }

  void image(std::size_t n) {
    for (std::size_t row = 0; row < w_.rows; ++row)
      for (std::size_t p = 0; p < w_.pixels; p += tile_)
        tile(n, row, p, std::min(tile_, w_.pixels - p));
  }

 private:
  void tile(std::size_t n, std::size_t row, std::size_t p, std::size_t count) {
    const Side& s = w_.src;
    const Side& d = w_.dst;
    const bool same = s.block == d.block;
    if (convert_into_blocks(n, row, p, count)) return;
    for (std::size_t b = 0; b < s.blocks && w_.kernel; ++b) {
      const bool whole = same && (b + 1) * s.block <= w_.channels;
      std::byte* to = whole ? d.at(n, b, row) + p * d.pixel_step() : staged(b);
      const std::byte* const from = s.at(n, b, row) + p * s.pixel_step();
      if (w_.uniform)
        convert_run(w_, 0, from, to, count * s.block, whole && w_.exceeds_cache);
      else
        w_.fused.look_up(w_.params_from(0), s.block, from, to, count);
    }
    if (moves_whole_blocks()) {
      move_blocks(n, row, p, count);
      return;
    }
    for (std::size_t b = 0; b < d.blocks; ++b) {
      std::byte* to = d.at(n, b, row) + p * d.pixel_step();
      if (same && (b + 1) * d.block <= w_.channels) {
        if (!w_.kernel)
          std::memcpy(to, s.at(n, b, row) + p * s.pixel_step(), count * d.pixel_step());
        continue;
      }
      find_segments(n, row, p, b);
      gather_segments(segments_.data(), segments_.size(), to, d.pixel_step(), count,
                      w_.zero(w_.channels - 1).data());
    }
  }

  /// Makes padded blocks of the tile with one kernel; false where none does.
  bool convert_into_blocks(std::size_t n, std::size_t row, std::size_t p, std::size_t count) const {
    const Side& s = w_.src;
    const Side& d = w_.dst;
    return w_.looks_pixels_up() && w_.fused.look_up_padded != nullptr && d.blocks == 1 &&
           d.pixel_step() == kBlockBytes &&
           w_.fused.look_up_padded(w_.params_from(0), s.block, s.at(n, 0, row) + p * s.pixel_step(),
                                   d.at(n, 0, row) + p * kBlockBytes, count,
                                   w_.zero(w_.channels - 1).data(), w_.exceeds_cache);
  }

  std::byte* staged(std::size_t b) {
    return buffer_.get() + b * tile_ * w_.src.block * w_.dst.size;
  }

  /// True between NHWC and NC1HWC2 with blocks of 16 bytes: then the tile kernels move each block
  /// as if it were one element.
  bool moves_whole_blocks() const {
    const Side& s = w_.src;
    const Side& d = w_.dst;
    const std::size_t narrow = std::min(s.block, d.block);
    return s.block != d.block && std::min(s.blocks, d.blocks) == 1 &&
           narrow * d.size == kBlockBytes && std::max(s.block, d.block) == w_.channels &&
           w_.channels % narrow == 0 && w_.channels / narrow <= kMaxChannels;
  }

  void move_blocks(std::size_t n, std::size_t row, std::size_t p, std::size_t count) {
    const Side& s = w_.src;
    const Side& d = w_.dst;
    const std::size_t blocks = std::max(s.blocks, d.blocks);
    const TileKernels& kernels = tile_kernels(kBlockBytes);
    const auto from = [&](std::size_t b) -> const std::byte* {
      return w_.kernel ? staged(b) : s.at(n, b, row) + p * s.pixel_step();
    };
    const auto to = [&](std::size_t b) { return d.at(n, b, row) + p * d.pixel_step(); };
    if (d.blocks == 1) {
      const std::byte* rows[kMaxChannels];
      for (std::size_t b = 0; b < blocks; ++b) rows[b] = from(b);
      kernels.interleave(rows, blocks, to(0), blocks, count, {});
    } else {
      std::byte* rows[kMaxChannels];
      for (std::size_t b = 0; b < blocks; ++b) rows[b] = to(b);
      kernels.deinterleave(from(0), blocks, rows, blocks, count, {});
    }
  }

  /// The runs that make a pixel of destination block b.
  void find_segments(std::size_t n, std::size_t row, std::size_t p, std::size_t b) {
    const Side& s = w_.src;
    const std::size_t size = w_.dst.size;
    segments_.clear();
    const std::size_t end = std::min(w_.channels, (b + 1) * w_.dst.block);
    for (std::size_t c = b * w_.dst.block; c < end;) {
      const std::size_t from = c / s.block;
      const std::size_t next = std::min(end, (from + 1) * s.block);
      const std::byte* base = w_.kernel ? staged(from) : s.at(n, from, row) + p * s.pixel_step();
      segments_.push_back({base + c % s.block * size, s.block * size, (next - c) * size});
      c = next;
    }
  }

  const Walk& w_;
  std::size_t tile_;
  Scratch buffer_;
  std::vector<Segment> segments_;
};

/// The general walk: planes to pixels, pixels to planes, and pixels to pixels where channels have
/// parameters of their own.
class Tiles {
 public:
  explicit Tiles(const Walk& w)
      : w_(w),
        take_apart_(tile_kernels(w.src.size)),
        put_together_(tile_kernels(w.dst.size)),
        // Blocks of one side are walked one after the other unless both sides have them.
        by_block_(w.src.planar || w.dst.planar) {
    tile_ = choose_tile();
    const std::size_t pixels = std::min(tile_, w.pixels);
    // One line more than the pixels: rows that lie a power of two apart share few cache sets.
    planes_step_ = pixels * w.src.size + kCacheLine;
    converted_step_ = pixels * w.dst.size + kCacheLine;
    const std::size_t rows = std::min(w.channels, kMaxChannels);
    if (!w.src.planar && (w.kernel || !w.dst.planar)) planes_ = make_scratch(rows * planes_step_);
    if (w.kernel && !w.dst.planar) converted_ = make_scratch(rows * converted_step_);
    if (w.dst.blocks * w.dst.block > w.channels) {
      padding_.resize(pixels * w.dst.size);
      if (w.fused.interleave != nullptr) zeros_.resize(pixels * w.src.size);
    }
  }

  void image(std::size_t n) {
    fill(padding_.data(), padding_.size(), w_.zero(w_.channels - 1));
    const std::size_t blocks = w_.dst.planar ? w_.src.blocks : w_.dst.blocks;
    const std::size_t step = by_block_ ? 1 : blocks;
    for (std::size_t b = 0; b < blocks; b += step)
      for (std::size_t row = 0; row < w_.rows; ++row) row_of_blocks(n, row, b, b + step);
  }

 private:
  /// Blocks are those of the destination, of the source where the destination is planar.
  struct Place {
    std::size_t n, row, block, end_block, pixel, count;
  };

  /// Pixels of a tile.
  std::size_t choose_tile() const {
    const Side& blocked = w_.dst.planar ? w_.src : w_.dst;
    const std::size_t pixel = by_block_ ? blocked.pixel_step() : 0;
    // Pixels of one block or of whole lines are moved in one pass, so they need no cache between
    // the sides: the longer the better.
    if (!w_.kernel && by_block_ && (pixel <= kBlockBytes || pixel % kCacheLine == 0))
      return pixel <= kBlockBytes ? kMaxPixels : kMaxPixels / 2;
    // The side that is in pixels passes through the cache.
    const std::size_t channels =
        by_block_ ? blocked.block
                  : std::max(w_.src.blocks * w_.src.block, w_.dst.blocks * w_.dst.block);
    const std::size_t size =
        std::max(w_.src.planar ? 0 : w_.src.size, w_.dst.planar ? 0 : w_.dst.size);
    std::size_t bytes = kTileBytes;
    // Rows in memory should be long; what is streamed may be short.
    const bool streams = w_.exceeds_cache && !w_.src.planar;
    if (w_.kernel) bytes = streams ? kTileBytes / 2 : 2 * kTileBytes;
    return std::clamp(bytes / (channels * size) / kMinPixels * kMinPixels, kMinPixels, kMaxPixels);
  }

  void row_of_blocks(std::size_t n, std::size_t row, std::size_t block, std::size_t end_block) {
    // Cut so that the planes of all tiles but the first begin with a cache line.
    const Side& planar = w_.dst.planar ? w_.dst : w_.src;
    const std::size_t channel = block * (w_.dst.planar ? w_.src : w_.dst).block;
    const auto address = reinterpret_cast<std::uintptr_t>(planar.at(n, channel, row));
    std::size_t count = tile_ - (planar.planar ? address % kCacheLine / planar.size : 0);
    for (std::size_t p = 0; p < w_.pixels; p += count, count = tile_) {
      count = std::min(count, w_.pixels - p);
      tile({n, row, block, end_block, p, count});
    }
  }

  void tile(const Place& at) {
    const Side& s = w_.src;
    const Side& d = w_.dst;
    if (d.planar) {
      const std::size_t end = std::min(w_.channels, at.end_block * s.block);
      for (std::size_t c = at.block * s.block; c < end; c += kMaxChannels)
        fetch(at, c, std::min(kMaxChannels, end - c));
      return;
    }
    const std::size_t group = std::min(d.block, kMaxChannels);
    for (std::size_t b = at.block; b < at.end_block; ++b) {
      std::byte* to = d.at(at.n, b, at.row) + at.pixel * d.pixel_step();
      for (std::size_t k = 0; k < d.block; k += group) {
        // The last group overlaps the one before it, so that none is narrower than a vector.
        const std::size_t first = std::min(k, d.block - group);
        const std::size_t c = b * d.block + first;
        const std::size_t valid = c < w_.channels ? std::min(group, w_.channels - c) : 0;
        if (interleave_fused(at, c, valid, group, to + first * d.size)) continue;
        fetch(at, c, valid);
        if (put_together_.interleave_padded != nullptr && pads(valid, group) &&
            put_together_.interleave_padded(rows_, valid, to, at.count, padding_.data(),
                                            w_.exceeds_cache))
          continue;
        std::fill(rows_ + valid, rows_ + group, padding_.data());
        put_together_.interleave(
            rows_, group, to + first * d.size, d.block, at.count,
            {w_.exceeds_cache && !w_.kernel && w_.src.planar, w_.exceeds_cache});
      }
    }
  }

  /// Points rows_ at `count` channels of a planar source.
  void point_at_planes(const Place& at, std::size_t first, std::size_t count) {
    const Side& s = w_.src;
    for (std::size_t i = 0; i < count; ++i)
      rows_[i] = s.at(at.n, first + i, at.row) + at.pixel * s.size;
  }

  /// True where `count` channels of `group` make a block that the kernels pad.
  bool pads(std::size_t count, std::size_t group) const {
    return count > 0 && count < group && group == w_.dst.block &&
           w_.dst.pixel_step() == kBlockBytes;
  }

  /// Converts planes and writes them as pixels in one step; false where no kernel does both.
  bool interleave_fused(const Place& at, std::size_t first, std::size_t count, std::size_t group,
                        std::byte* to) {
    if (!w_.src.planar) return false;
    point_at_planes(at, first, count);
    if (w_.fused.interleave_padded != nullptr && pads(count, group) &&
        w_.fused.interleave_padded(w_.params_from(first), rows_, count, to, at.count,
                                   padding_.data(), w_.exceeds_cache))
      return true;
    if (w_.fused.interleave == nullptr || !w_.uniform || w_.params(0).normalise) return false;
    std::fill(rows_ + count, rows_ + group, zeros_.data());
    return w_.fused.interleave(w_.params(0), rows_, group, to, w_.dst.block, at.count,
                               {w_.exceeds_cache, w_.exceeds_cache});
  }

  /// Points rows_ at `count` channels as converted planes; in the destination where it is planar.
  void fetch(const Place& at, std::size_t first, std::size_t count) {
    const Side& s = w_.src;
    const Side& d = w_.dst;
    std::byte* targets[kMaxChannels];
    for (std::size_t i = 0; i < count; ++i) {
      targets[i] = d.planar    ? d.at(at.n, first + i, at.row) + at.pixel * d.size
                   : w_.kernel ? converted_.get() + i * converted_step_
                               : nullptr;
    }
    if (s.planar)
      point_at_planes(at, first, count);
    else if (take_apart(at, first, count, targets))
      return;
    if (!w_.kernel) return;
    for (std::size_t i = 0; i < count; ++i) {
      w_.kernel(w_.params(first + i), rows_[i], targets[i], at.count, w_.exceeds_cache && d.planar,
                s.planar ? row_after(at, first, i, count) : nullptr);
      rows_[i] = targets[i];
    }
  }

  /// The row to be prefetched while row i is converted: rows are too short and too far apart for
  /// the CPU to foresee the next ones.
  const std::byte* row_after(const Place& at, std::size_t first, std::size_t i,
                             std::size_t count) const {
    std::size_t row = i + kRowsAhead;
    std::size_t pixel = at.pixel;
    if (row >= count) {  // Of the next tile.
      row %= count;
      pixel += at.count;
    }
    return w_.src.at(at.n, first + row, at.row) + pixel * w_.src.size;
  }

  /// True when the targets hold the converted channels.
  bool take_apart(const Place& at, std::size_t first, std::size_t count,
                  std::byte* const* targets) {
    const Side& s = w_.src;
    const bool direct = !w_.kernel && w_.dst.planar;
    const Streaming whole{w_.exceeds_cache, w_.exceeds_cache && w_.dst.planar};
    const Streaming apart{w_.exceeds_cache, w_.exceeds_cache && direct};
    // Bytes are looked up in whole pixels.
    bool fuses = w_.dst.planar && w_.fused.deinterleave != nullptr &&
                 (w_.fused.look_up == nullptr || w_.looks_pixels_up());
    std::byte* planes[kMaxChannels];
    for (std::size_t i = 0; i < count; ++i) {
      planes[i] = direct ? targets[i] : planes_.get() + i * planes_step_;
      rows_[i] = planes[i];
    }
    for (std::size_t i = 0; i < count;) {
      const std::size_t b = (first + i) / s.block;
      const std::size_t within = (first + i) % s.block;
      const std::size_t run = std::min(count - i, s.block - within);
      const std::byte* from = s.at(at.n, b, at.row) + at.pixel * s.pixel_step() + within * s.size;
      // The answer is the same for all runs: it depends on parameters, block and pixels.
      fuses = fuses && w_.fused.deinterleave(w_.params_from(first + i), from, s.block, targets + i,
                                             run, at.count, whole);
      if (!fuses) take_apart_.deinterleave(from, s.block, planes + i, run, at.count, apart);
      i += run;
    }
    return direct || fuses;
  }

  const Walk& w_;
  const TileKernels& take_apart_;
  const TileKernels& put_together_;
  bool by_block_;
  std::size_t tile_;
  std::size_t planes_step_;
  std::size_t converted_step_;
  Scratch planes_;
  Scratch converted_;
  std::vector<std::byte> padding_;
  std::vector<std::byte> zeros_;  ///< Padding before its conversion.
  const std::byte* rows_[kMaxChannels];
};

template <class F>
void for_each_image(Walk& w, F convert_image) {
  for (std::size_t n = 0; n < w.images; ++n) {
    w.set_image(n);
    convert_image(n);
    fill_row_gaps(w, n);
  }
  if (w.exceeds_cache) finish_streaming();
}

}  // namespace

bool convert_fast(const ConvertPlan& plan) {
  Walk w;
  if (!make_walk(plan, w)) return false;
  if (w.src.planar && w.dst.planar) {
    for_each_image(w, [&w](std::size_t n) { convert_planes(w, n); });
  } else if (!w.src.planar && !w.dst.planar && (w.uniform || w.looks_pixels_up())) {
    Regroup regroup(w);
    for_each_image(w, [&regroup](std::size_t n) { regroup.image(n); });
  } else {
    Tiles tiles(w);
    for_each_image(w, [&tiles](std::size_t n) { tiles.image(n); });
  }
  return true;
}

}  // namespace corelane::detail
