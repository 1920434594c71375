#include "corelane/tensor/element_bits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane {
namespace {

using ::testing::ElementsAre;

constexpr std::byte operator""_b(unsigned long long v) { return static_cast<std::byte>(v); }

TEST(ElementBits, TheFirstElementLiesInTheLowBits) {
  const ByteVector two{0xE4_b, 0x01_b};
  EXPECT_THAT(unpack_bits({two.data(), 2, DType::kI2, {5}, {}, {}}).value(),
              ElementsAre(0_b, 1_b, 2_b, 3_b, 1_b));
  const ByteVector four{0x1F_b, 0xF7_b};
  EXPECT_THAT(unpack_bits({four.data(), 2, DType::kF4E2M1, {3}, {}, {}}).value(),
              ElementsAre(0xF_b, 1_b, 7_b));
  EXPECT_THAT(unpack_bits({four.data(), 2, DType::kF8E5M2, {2}, {}, {}}).value(),
              ElementsAre(0x1F_b, 0xF7_b));
}

TEST(ElementBits, PackingLeavesOutTheUpperBits) {
  EXPECT_THAT(pack_bits(ByteVector{0_b, 1_b, 2_b, 0xFF_b, 0xFD_b}, DType::kU2).value(),
              ElementsAre(0xE4_b, 0x01_b));
  EXPECT_THAT(pack_bits(ByteVector{0xFF_b, 1_b, 7_b}, DType::kI4).value(),
              ElementsAre(0x1F_b, 0x07_b));
  EXPECT_THAT(pack_bits({}, DType::kI4).value(), ElementsAre());
}

TEST(ElementBits, OtherElementsLayoutsAndSizesAreRefused) {
  const ByteVector some(4);
  EXPECT_EQ(pack_bits(some, DType::kF16).error().code(), Code::kUnsupported);
  EXPECT_EQ(pack_bits(some, DType::kString).error().code(), Code::kUnsupported);
  EXPECT_EQ(unpack_bits({some.data(), 4, DType::kF32, {1}, {}, {}}).error().code(),
            Code::kUnsupported);
  EXPECT_EQ(unpack_bits({some.data(), 4, DType::kU2, {17}, {}, {}}).error().code(),
            Code::kOutOfRange);
  EXPECT_EQ(unpack_bits({nullptr, 4, DType::kU2, {1}, {}, {}}).error().code(), Code::kOutOfRange);
  EXPECT_EQ(unpack_bits({some.data(), 4, DType::kU8, {1, 1, 1, 4}, {LayoutKind::kNHWC, 0, 0}, {}})
                .error()
                .code(),
            Code::kInvalidArgument);
  EXPECT_EQ(unpack_bits({some.data(), 4, DType::kU8, {-1}, {}, {}}).error().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace corelane
