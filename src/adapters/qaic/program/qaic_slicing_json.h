/// The JSON of a slicing specification: which buffers, by expressions on their names, and where a
/// slice of them begins in each dimension.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"

namespace corelane::qaic {

/// Where a slice begins in one dimension: at a number, or at the value of a parameter.
struct SliceStart {
  std::int64_t constant = 0;
  std::string parameter;  ///< Empty: `constant`.
};

/// One entry of "BufferSpecs".
struct SliceRule {
  std::string name;  ///< ECMAScript, for the whole name of a buffer.
  std::uint32_t element_size = 0;
  std::vector<SliceStart> starts;  ///< One for each dimension.
};

struct SlicingLimits {
  static constexpr std::size_t kBytes = std::size_t{256} << 10;
  static constexpr std::size_t kDepth = 8;
  static constexpr std::size_t kRules = 1024;
  static constexpr std::size_t kDims = 32;
  static constexpr std::size_t kParameter = 64;  ///< Characters.
};

/// Reads {"BufferSpecs": [{"Name": expression, "ElemSize": bytes, "DimSpecs": [{"start": number or
/// parameter}, ...]}, ...]}. Nothing is skipped: kMalformed says where what is wrong, also for
/// other keys and for what is beyond the limits.
Result<std::vector<SliceRule>> read_slicing(std::string_view json);

}  // namespace corelane::qaic
