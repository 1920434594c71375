#include "adapters/ggml/mm/mm_rows.h"

#include <cstring>
#include <utility>

#include "adapters/ggml/mm/mm_convert.h"
#include "adapters/ggml/mm/mm_threads.h"
#include "adapters/ggml/mm/mm_weight.h"

namespace corelane::ggml {

bool MmRows::convert(const MmMatrix& a, std::int64_t first, std::int64_t rows, std::int64_t bucket,
                     const MmTile& tile, MmElement element, int threads) {
  const Key key{a.row(first), a.row_bytes, a.form,        rows,   bucket,
                tile.k0,      tile.k,      tile.padded_k, element};
  if (key == key_) return true;
  forget();
  const std::size_t pitch = bytes_of(element, tile.padded_k);
  if (!grow(*device_, memory_, pitch * static_cast<std::size_t>(bucket))) return false;
  scales_.resize(static_cast<std::size_t>(bucket));
  auto* const out = static_cast<char*>(memory_->data());
  const auto padded = static_cast<std::size_t>(tile.padded_k);
  const std::size_t room = static_cast<std::size_t>(a.columns) + padded;
  scratch_.resize(room * static_cast<std::size_t>(row_parts(threads, rows)));
  for_rows(threads, rows, [&](std::size_t part, std::int64_t begin, std::int64_t end) {
    float* const scratch = scratch_.data() + part * room;
    for (std::int64_t i = begin; i < end; ++i) {
      const float* floats = scratch + padded;
      if (a.form == RowForm::kFloats)
        floats = static_cast<const float*>(a.row(first + i));
      else
        read_row(a, first + i, scratch + padded);
      const float scale = element == MmElement::kF16 && a.form != RowForm::kHalves
                              ? scale_for_halves(floats + tile.k0, static_cast<std::size_t>(tile.k))
                              : 1.0F;
      if (scale != 1.0F) {
        float* const scaled = scratch + padded;
        for (std::int64_t k = tile.k0; k < tile.k0 + tile.k; ++k) scaled[k] = floats[k] / scale;
        floats = scaled;
      }
      scales_[static_cast<std::size_t>(i)] =
          scale *
          fill_row(floats, element, tile, scratch, out + static_cast<std::size_t>(i) * pitch);
    }
  });
  std::memset(out + static_cast<std::size_t>(rows) * pitch, 0,
              static_cast<std::size_t>(bucket - rows) * pitch);
  memory_->written();
  ++conversions_;
  key_ = key;
  return true;
}

void MmRows::written(const void* begin, std::size_t bytes) {
  const auto& [first, row_bytes, form, rows, bucket, k0, k, padded_k, element] = key_;
  const auto ours = reinterpret_cast<std::uintptr_t>(first);
  const auto theirs = reinterpret_cast<std::uintptr_t>(begin);
  if (ours == 0) return;
  const std::size_t element_bytes = form == RowForm::kHalves ? 2 : sizeof(float);
  const std::size_t read = static_cast<std::size_t>(rows - 1) * row_bytes +
                           static_cast<std::size_t>(k0 + k) * element_bytes;
  if (ours < theirs + bytes && theirs < ours + read) forget();
}

bool grow(MmDevice& device, std::shared_ptr<MmMemory>& memory, std::size_t bytes) {
  if (memory != nullptr && memory->size() >= bytes) return true;
  std::size_t rounded = 4096;
  while (rounded < bytes) rounded *= 2;
  auto larger = device.allocate(rounded, MmUse::kShared);
  if (larger == nullptr && bytes < rounded) larger = device.allocate(bytes, MmUse::kShared);
  if (larger == nullptr) return false;
  memory = std::move(larger);
  return true;
}

}  // namespace corelane::ggml
