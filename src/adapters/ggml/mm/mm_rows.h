/// Rows of A as the NPU reads them. Products one after another often have the same A (the query,
/// key and value of attention): it is converted once for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "adapters/ggml/mm/mm_device.h"
#include "adapters/ggml/mm/mm_matrix.h"
#include "adapters/ggml/mm/mm_plan.h"

namespace corelane::ggml {

/// One call at a time.
class MmRows {
 public:
  explicit MmRows(std::shared_ptr<MmDevice> device) : device_(std::move(device)) {}

  /// The columns of `tile` of `rows` rows of `a` from `first` on, and zeros up to `bucket` rows.
  /// Nothing is done where they are there from the call before. False: no memory of the NPU.
  bool convert(const MmMatrix& a, std::int64_t first, std::int64_t rows, std::int64_t bucket,
               const MmTile& tile, MmElement element, int threads);
  /// The memory of any A may have changed.
  void forget() { key_ = {}; }
  /// [begin, begin + bytes) was written.
  void written(const void* begin, std::size_t bytes);

  const std::shared_ptr<MmMemory>& memory() const { return memory_; }
  /// The scale of each row.
  const std::vector<float>& scales() const { return scales_; }
  /// How often rows were converted.
  std::uint64_t conversions() const { return conversions_; }

 private:
  /// First byte, bytes from row to row, form, rows, bucket, first column, columns, padded, element.
  using Key = std::tuple<const void*, std::size_t, RowForm, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, std::int64_t, MmElement>;

  const std::shared_ptr<MmDevice> device_;
  std::shared_ptr<MmMemory> memory_;
  std::vector<float> scales_;
  std::vector<float> scratch_;
  Key key_;  ///< Its first byte is null where nothing is kept.
  std::uint64_t conversions_ = 0;
};

/// Replaces `memory` where it holds fewer than `bytes`, by a power of two where there is room for
/// it, since contexts keep the old one until they bind the new one. False, and `memory` as it was,
/// where there is no room.
bool grow(MmDevice& device, std::shared_ptr<MmMemory>& memory, std::size_t bytes);

}  // namespace corelane::ggml
