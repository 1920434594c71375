/// Elements as the integers that a Cast makes of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "corelane/tensor/dtype.h"

namespace corelane::drivers::virtual_npu {

/// Element `index` of `data`, cut off towards zero; the lowest int64 for what int64 does not hold,
/// NaN too. None for types that are no numbers of 8 bits or more.
std::optional<std::int64_t> integer_at(DType dtype, const void* data, std::size_t index) noexcept;

}  // namespace corelane::drivers::virtual_npu
