#include "drivers/virtual/common/integer_value.h"

#include <cmath>
#include <limits>

#include "corelane/tensor/convert.h"

namespace corelane::drivers::virtual_npu {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

std::int64_t cut_off(double value) noexcept {
  constexpr double kBound = 9223372036854775808.0;  // 2^63
  return std::abs(value) < kBound ? static_cast<std::int64_t>(value) : kLowest;
}

}  // namespace

std::optional<std::int64_t> integer_at(DType dtype, const void* data, std::size_t index) noexcept {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return value_at<std::uint8_t>(data, index);
    case DType::kI8:
      return value_at<std::int8_t>(data, index);
    case DType::kU16:
      return value_at<std::uint16_t>(data, index);
    case DType::kI16:
      return value_at<std::int16_t>(data, index);
    case DType::kU32:
      return value_at<std::uint32_t>(data, index);
    case DType::kI32:
      return value_at<std::int32_t>(data, index);
    case DType::kU64: {
      const auto value = value_at<std::uint64_t>(data, index);
      return value >> 63U == 0 ? static_cast<std::int64_t>(value) : kLowest;
    }
    case DType::kI64:
      return value_at<std::int64_t>(data, index);
    case DType::kF16:
      return cut_off(f16_to_f32(value_at<std::uint16_t>(data, index)));
    case DType::kBF16:
      return cut_off(bf16_to_f32(value_at<std::uint16_t>(data, index)));
    case DType::kF32:
      return cut_off(value_at<float>(data, index));
    case DType::kF64:
      return cut_off(value_at<double>(data, index));
    default:
      return std::nullopt;
  }
}

}  // namespace corelane::drivers::virtual_npu
