/// The one shape to which the fast conversion brings every case: images x channels x rows x pixels.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "tensor/convert/convert_kernels.h"
#include "tensor/convert/convert_plan.h"

namespace corelane::detail {

/// One side as the walk sees it. Steps in bytes. Planar: a channel's pixels lie together. Blocked:
/// `block` channels of a pixel lie together, and blocks follow each other.
struct Side {
  std::byte* data = nullptr;  ///< The source is only read.
  std::size_t size = 0;       ///< Of an element.
  bool planar = false;
  std::size_t block = 1;  ///< Channels per pixel; 1 when planar.
  std::size_t blocks = 0;
  std::size_t image_step = 0, block_step = 0, row_step = 0;
  std::size_t pixel_step() const noexcept { return block * size; }
  std::byte* at(std::size_t n, std::size_t b, std::size_t row) const noexcept {
    return data + n * image_step + b * block_step + row * row_step;
  }
};

/// The destination's zero point (or 0), repeated to fill any run of whole elements.
using ZeroPattern = std::array<std::byte, 16>;

struct Walk {
  ConvertPlan plan;
  std::size_t images = 0, channels = 0, rows = 0, pixels = 0;
  Side src, dst;
  RowKernel kernel;            ///< False: elements are moved unchanged.
  FusedKernels fused;          ///< Perhaps none.
  bool by_image = false;       ///< Parameters depend on the image.
  bool exceeds_cache = false;  ///< Then what is read is prefetched and what is written streamed.
  bool uniform = true;         ///< All channels of an image have the same parameters.
  bool shortens = false;       ///< The kernel looks for a shorter way.

  /// Loads the parameters of image n.
  void set_image(std::size_t n);
  const RowParams& params(std::size_t c) const noexcept { return params_[uniform ? 0 : c]; }
  /// From channel c on.
  ChannelParams params_from(std::size_t c) const noexcept {
    return {&params(c), uniform ? std::size_t{0} : std::size_t{1}};
  }
  /// True where the kernels look up pixels of two to four bytes, each in the results of its
  /// channel.
  bool looks_pixels_up() const noexcept;
  /// The zero of channel c, or of the nearest channel that exists.
  const ZeroPattern& zero(std::size_t c) const noexcept {
    return zeros_[std::min(c, zeros_.size() - 1)];
  }
  bool one_zero() const noexcept { return zeros_.size() == 1; }

 private:
  std::vector<RowParams> params_;
  std::vector<ByteResults> results_;  ///< Of each of them, where they are bytes'.
  std::vector<ZeroPattern> zeros_;
};

/// Brings `plan` to a walk; false when no kernel fits.
bool make_walk(const ConvertPlan& plan, Walk& walk);

}  // namespace corelane::detail
