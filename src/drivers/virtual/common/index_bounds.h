/// Indices that come with a run: what an engine that does not look at them must not be given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu {

/// What the values of one input of a network may be, because a Gather takes places from them.
struct IndexBound {
  std::size_t input = 0;  ///< Of PatchedModel::inputs.
  std::int64_t size = 0;  ///< Of the dimension: -size to size - 1 are places in it.
  std::string node;       ///< The Gather's name, or that of its output.
};

/// The bounds of a network's inputs: each Gather of the top graph whose indices are an input, moved
/// or converted at most, and whose dimension is known. Indices that a network computes have none.
/// `model`: of PatchedModel::bytes. kMalformed where the bytes are no ONNX model.
Result<std::vector<IndexBound>> index_bounds(ByteSpan model, const std::vector<GraphValue>& inputs);

/// kEngineFailed naming the node, the value and its place, where a value of `dtype` (i32 or i64;
/// others have no bounds) at `data` is outside.
Status check_indices(const IndexBound& bound, const std::string& input, DType dtype,
                     const void* data, std::size_t elements);

}  // namespace corelane::drivers::virtual_npu
