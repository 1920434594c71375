/// A B as the NPU reads it: memory objects, one for each tile of its plan.
#pragma once

#include <memory>
#include <vector>

#include "adapters/ggml/mm/mm_device.h"
#include "adapters/ggml/mm/mm_matrix.h"
#include "adapters/ggml/mm/mm_plan.h"

namespace corelane::ggml {

/// Does not change once it is made, but for `source` of one that is filled anew (MmEngine::stage).
struct MmWeight {
  MmPlan plan;
  std::vector<std::shared_ptr<MmMemory>> tiles;  ///< As plan.tiles.
  std::vector<float> scales;                     ///< But for kF16: [part along K][n].
  MmMatrix source;                               ///< What it was made of; outlives it.
  std::size_t copied = 0;                        ///< Bytes that it takes beside the source.

  std::int64_t k_parts() const {
    std::int64_t parts = 0;
    while (parts < static_cast<std::int64_t>(plan.tiles.size()) &&
           plan.tiles[static_cast<std::size_t>(parts)].n0 == 0)
      ++parts;
    return parts;
  }
  /// As many as the plan wants.
  void resize_scales() {
    const bool none = plan.type == MmType::kF16;
    scales.resize(none ? 0 : static_cast<std::size_t>(k_parts() * plan.n));
  }
  /// Where those of a tile begin; null for kF16.
  float* scales_of(std::size_t tile) {
    const auto part = static_cast<std::int64_t>(tile) % k_parts();
    return scales.empty() ? nullptr : scales.data() + part * plan.n + plan.tiles[tile].n0;
  }
  const float* scales_of(std::size_t tile) const {
    return const_cast<MmWeight*>(this)->scales_of(tile);
  }
};

/// Rows of `b` as the tile's elements, padded with zeros, integers turned by rotate(); `scales` is
/// where those of the tile begin, unless it is of f16.
void fill_tile(const MmMatrix& b, MmElement element, const MmTile& tile, void* out, float* scales,
               int threads);

/// One row of A or B for a tile, padded; returns the scale of integers. `scratch` has room for
/// padded_k floats.
float fill_row(const float* row, MmElement element, const MmTile& tile, float* scratch, void* out);

}  // namespace corelane::ggml
