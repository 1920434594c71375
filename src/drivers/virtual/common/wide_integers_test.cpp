#include "drivers/virtual/common/wide_integers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace corelane::drivers::virtual_npu {
namespace {

template <class T>
Status check(DType dtype, const std::vector<T>& values) {
  return check_narrow("x", dtype, values.data(), values.size());
}

TEST(WideIntegers, TheBoundsOfInt32Pass) {
  EXPECT_TRUE(check<std::int64_t>(DType::kI64, {INT32_MIN, -1, 0, INT32_MAX}).ok());
  EXPECT_TRUE(check<std::uint64_t>(DType::kU64, {0, INT32_MAX}).ok());
  EXPECT_TRUE(check<std::uint32_t>(DType::kU32, {0, INT32_MAX}).ok());
  EXPECT_TRUE(check_narrow("x", DType::kI64, nullptr, 0).ok());
}

TEST(WideIntegers, OneBeyondThemIsNamedWithItsPlace) {
  std::vector<std::int64_t> values(1000, 7);
  for (const std::size_t place : {0U, 255U, 256U, 999U}) {
    for (const std::int64_t wide :
         {std::int64_t{INT32_MAX} + 1, std::int64_t{INT32_MIN} - 1,
          std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
      values[place] = wide;
      const Status status = check(DType::kI64, values);
      EXPECT_EQ(status.code(), Code::kOutOfRange);
      EXPECT_EQ(status.detail(Detail::kInput), "x");
      EXPECT_EQ(status.detail(Detail::kGiven), std::to_string(wide));
      EXPECT_NE(status.message().find("at element " + std::to_string(place) + ","),
                std::string::npos)
          << status.message();
    }
    values[place] = 7;
  }
  EXPECT_FALSE(check<std::uint64_t>(DType::kU64, {1, std::uint64_t{1} << 31U}).ok());
  EXPECT_FALSE(check<std::uint32_t>(DType::kU32, {1, std::uint32_t{1} << 31U}).ok());
}

TEST(WideIntegers, OtherTypesAreNotLookedAt) {
  EXPECT_TRUE(may_be_wide(DType::kI64));
  EXPECT_FALSE(may_be_wide(DType::kI32));
  EXPECT_FALSE(may_be_wide(DType::kF64));
  EXPECT_TRUE(check<std::int32_t>(DType::kI32, {INT32_MIN, INT32_MAX}).ok());
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
