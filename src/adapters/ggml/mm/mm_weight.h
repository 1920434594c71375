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
  std::vector<float> scales;                     ///< kInt8: [part along K][n].
  MmMatrix source;                               ///< What it was made of; outlives it.
  std::size_t copied = 0;                        ///< Bytes that it takes beside the source.

  std::int64_t k_parts() const {
    std::int64_t parts = 0;
    while (parts < static_cast<std::int64_t>(plan.tiles.size()) &&
           plan.tiles[static_cast<std::size_t>(parts)].n0 == 0)
      ++parts;
    return parts;
  }
};

/// Rows of `b` in the tile's type, padded with zeros, int8 turned by rotate(); `scales` is where
/// those of the tile begin, unless it is of f16.
void fill_tile(const MmMatrix& b, MmType type, const MmTile& tile, void* out, float* scales,
               int threads);

/// One row of A for a tile, padded; returns its scale (kInt8). `floats` has room for padded_k more
/// than the row has.
float fill_row(const float* row, MmType type, const MmTile& tile, float* scratch, void* out);

}  // namespace corelane::ggml
