#include "cli/output_numbers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace corelane::cli {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
Elements elements(DType type, const std::vector<T>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return elements_of({values.data(), values.size() * sizeof(T), type, shape, {}, {}}).value();
}

TEST(OutputNumbers, IntegersKeepAllTheirDigits) {
  const std::vector<std::int64_t> large{(std::int64_t{1} << 53) + 1, -1};
  const Elements found = elements(DType::kI64, large);
  EXPECT_EQ(values_json(found).dump(), "[9007199254740993,-1]");
  EXPECT_EQ(figures_json(found)["max"], large[0]);
  EXPECT_EQ(number_text(figures_json(found)["max"], "{:.6g}"), "9007199254740993");
  const auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(values_json(elements<std::uint64_t>(DType::kU64, {most})).dump(),
            "[18446744073709551615]");
  EXPECT_EQ(values_json(elements<std::uint8_t>(DType::kBool, {0, 1})).dump(), "[0,1]");
}

TEST(OutputNumbers, InfinityAndNaNAreTexts) {
  EXPECT_EQ(values_json(elements<float>(DType::kF32, {kInf, -kInf, kNaN, 0.5F})).dump(),
            R"(["inf","-inf","nan",0.5])");
  EXPECT_EQ(number_text("-inf", "{:.6g}"), "-inf");
}

TEST(OutputNumbers, FiguresLeaveNaNOutAndCountIt) {
  const Json j = figures_json(elements<float>(DType::kF32, {kNaN, 3, kNaN, -1}));
  EXPECT_EQ(j, Json({{"min", -1.0}, {"max", 3.0}, {"mean", 1.0}, {"nan", 2}}));
  EXPECT_EQ(figures_json(elements<float>(DType::kF32, {kNaN})), Json({{"nan", 1}}));
  EXPECT_TRUE(figures_json(elements<float>(DType::kF32, {})).empty());
}

TEST(OutputNumbers, TheLargestComeFirstAndNaNLast) {
  const Json list =
      largest_json(elements<float>(DType::kF32, {kNaN, 1, kNaN, 7, kInf, 2, kNaN, -kInf}), 6);
  std::vector<std::size_t> order;
  for (const Json& entry : list) order.push_back(entry["index"]);
  EXPECT_EQ(list.back()["value"], "nan");
  order.pop_back();
  EXPECT_EQ(order, (std::vector<std::size_t>{4, 3, 5, 1, 7}));
  EXPECT_EQ(largest_json(elements<float>(DType::kF32, {1}), 5).size(), 1U);
}

/// The digits of the first number that `type` does not hold, "" where it holds all.
template <class T>
std::string not_held(const std::vector<T>& values, DType given, DType type) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  const auto found =
      first_not_held({values.data(), values.size() * sizeof(T), given, shape, {}, {}}, type);
  EXPECT_TRUE(found) << found.error().to_string();
  return found && *found ? fmt::format("{}: {}", (*found)->index, (*found)->text) : "";
}

TEST(NotHeld, IntegersBeyondTheTypeAreNamedWithAllDigits) {
  EXPECT_EQ(not_held<std::int64_t>({0, 255, 300}, DType::kI64, DType::kU8), "2: 300");
  EXPECT_EQ(not_held<std::int64_t>({0, 255}, DType::kI64, DType::kU8), "");
  EXPECT_EQ(not_held<std::int64_t>({-1}, DType::kI64, DType::kU64), "0: -1");
  EXPECT_EQ(not_held<std::uint64_t>({UINT64_MAX}, DType::kU64, DType::kI64),
            "0: 18446744073709551615");
  EXPECT_EQ(not_held<std::int64_t>({INT64_MAX, INT64_MIN}, DType::kI64, DType::kI32),
            "0: 9223372036854775807");
  EXPECT_EQ(not_held<std::int64_t>({INT32_MAX, INT32_MIN}, DType::kI64, DType::kI32), "");
  EXPECT_EQ(not_held<std::uint8_t>({127, 128}, DType::kU8, DType::kI8), "1: 128");
}

TEST(NotHeld, FloatsAreHeldAsWholeNumbersWithinTheType) {
  EXPECT_EQ(not_held<float>({1, 2.5F}, DType::kF32, DType::kI32), "1: 2.5");
  EXPECT_EQ(not_held<float>({kNaN}, DType::kF32, DType::kI64), "0: nan");
  EXPECT_EQ(not_held<double>({-0x1p63, 0x1p62}, DType::kF64, DType::kI64), "");
  EXPECT_EQ(not_held<double>({0x1p63}, DType::kF64, DType::kI64), "0: 9.223372036854776e+18");
  EXPECT_EQ(not_held<double>({0x1p63}, DType::kF64, DType::kU64), "");
  EXPECT_NE(not_held<double>({0x1p64}, DType::kF64, DType::kU64), "");
  EXPECT_NE(not_held<double>({kInf}, DType::kF64, DType::kU64), "");
}

}  // namespace
}  // namespace corelane::cli
