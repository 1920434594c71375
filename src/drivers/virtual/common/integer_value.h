/// Elements as the integers that a Cast makes of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "corelane/tensor/dtype.h"

namespace corelane::drivers::virtual_npu {

/// Element `index` of `data`, which need not be aligned.
template <class T>
T value_at(const void* data, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

/// Element `index` of `data`, cut off towards zero; the lowest int64 for what int64 does not hold,
/// NaN too. None for types that are not numbers of 8 bits or more.
std::optional<std::int64_t> integer_at(DType dtype, const void* data, std::size_t index) noexcept;

}  // namespace corelane::drivers::virtual_npu
