#include "drivers/virtual/common/wide_integers.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "drivers/virtual/common/integer_value.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// Values that are looked at without a branch for each.
constexpr std::size_t kBlock = 256;

/// Not zero where int32 cannot hold the value.
std::uint64_t excess(std::int64_t v) {
  return (static_cast<std::uint64_t>(v) + (std::uint64_t{1} << 31U)) >> 32U;
}
std::uint64_t excess(std::uint64_t v) { return v >> 31U; }
std::uint64_t excess(std::uint32_t v) { return v >> 31U; }

/// Place of the first value that int32 cannot hold.
template <class T>
std::optional<std::size_t> first_wide(const std::byte* bytes, std::size_t elements) {
  for (std::size_t begin = 0; begin < elements; begin += kBlock) {
    const std::size_t end = std::min(elements, begin + kBlock);
    std::uint64_t found = 0;
    for (std::size_t i = begin; i < end; ++i) found |= excess(value_at<T>(bytes, i));
    if (found == 0) continue;
    for (std::size_t i = begin; i < end; ++i)
      if (excess(value_at<T>(bytes, i)) != 0) return i;
  }
  return std::nullopt;
}

template <class T>
Status check(const std::string& input, const void* data, std::size_t elements) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  const std::optional<std::size_t> place = first_wide<T>(bytes, elements);
  if (!place) return {};
  const T value = value_at<T>(bytes, *place);
  return error(Code::kOutOfRange,
               "input '{}' has {} at element {}, and OpenVINO computes integers in 32 bits; take "
               "engine=auto or engine=onnxruntime",
               input, value, *place)
      .with(Detail::kInput, input)
      .with(Detail::kGiven, value);
}

}  // namespace

bool may_be_wide(DType dtype) noexcept {
  return dtype == DType::kI64 || dtype == DType::kU64 || dtype == DType::kU32;
}

Status check_narrow(const std::string& input, DType dtype, const void* data, std::size_t elements) {
  if (dtype == DType::kI64) return check<std::int64_t>(input, data, elements);
  if (dtype == DType::kU64) return check<std::uint64_t>(input, data, elements);
  if (dtype == DType::kU32) return check<std::uint32_t>(input, data, elements);
  return {};
}

}  // namespace corelane::drivers::virtual_npu
