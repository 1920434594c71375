#include "adapters/ggml/mm/mm_weight.h"

#include <algorithm>
#include <cstring>

#include "adapters/ggml/mm/mm_convert.h"
#include "adapters/ggml/mm/mm_threads.h"

namespace corelane::ggml {

float fill_row(const float* row, MmElement element, const MmTile& tile, float* scratch, void* out) {
  const auto k = static_cast<std::size_t>(tile.k);
  const auto padded = static_cast<std::size_t>(tile.padded_k);
  const float* from = row + tile.k0;
  if (element == MmElement::kF16) {
    auto* halves = static_cast<std::uint16_t*>(out);
    floats_to_halves(from, k, halves);
    std::fill(halves + k, halves + padded, std::uint16_t{0});
    return 1;
  }
  std::copy(from, from + k, scratch);
  std::fill(scratch + k, scratch + padded, 0.0F);
  rotate(scratch, padded);
  return element == MmElement::kInt4
             ? floats_to_int4(scratch, padded, static_cast<std::uint8_t*>(out))
             : floats_to_int8(scratch, padded, static_cast<std::int8_t*>(out));
}

void fill_tile(const MmMatrix& b, MmElement element, const MmTile& tile, void* out, float* scales,
               int threads) {
  const std::size_t pitch = bytes_of(element, tile.padded_k);
  auto* const all = static_cast<char*>(out);
  const auto padded = static_cast<std::size_t>(tile.padded_k);
  const std::size_t room = static_cast<std::size_t>(b.columns) + padded;
  std::vector<float> floats(room * static_cast<std::size_t>(row_parts(threads, tile.n)));
  for_rows(threads, tile.n, [&](std::size_t part, std::int64_t begin, std::int64_t end) {
    float* const scratch = floats.data() + part * room;
    float* const row = scratch + padded;
    for (std::int64_t n = begin; n < end; ++n) {
      char* const at = all + static_cast<std::size_t>(n) * pitch;
      if (b.form == RowForm::kHalves && element == MmElement::kF16) {
        const auto* halves = static_cast<const std::uint16_t*>(b.row(tile.n0 + n)) + tile.k0;
        std::memcpy(at, halves, static_cast<std::size_t>(tile.k) * 2);
        std::memset(at + tile.k * 2, 0, pitch - static_cast<std::size_t>(tile.k) * 2);
        continue;
      }
      read_row(b, tile.n0 + n, row);
      const float scale = fill_row(row, element, tile, scratch, at);
      if (element != MmElement::kF16) scales[n] = scale;
    }
  });
  std::memset(all + static_cast<std::size_t>(tile.n) * pitch, 0,
              static_cast<std::size_t>(tile.padded_n - tile.n) * pitch);
}

}  // namespace corelane::ggml
