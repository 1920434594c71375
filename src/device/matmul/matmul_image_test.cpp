#include "corelane/device/matmul_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>

namespace corelane::device {
namespace {

using testing::HasSubstr;

MatmulDesc plain(DType a = DType::kI8, DType b = DType::kI8, DType c = DType::kI32) {
  MatmulDesc desc;
  desc.m = 3;
  desc.k = 70;
  desc.n = 50;
  desc.a = a;
  desc.b = b;
  desc.c = c;
  return desc;
}

MatmulDesc native(DType b) {
  MatmulDesc desc =
      plain(b == DType::kF16 ? b : DType::kI8, b, b == DType::kF16 ? DType::kF32 : DType::kI32);
  desc.b_layout = MatmulLayoutB::kNative;
  desc.b_block_n = 16;
  desc.b_block_k = 32;
  return desc;
}

MatmulDesc full() {
  MatmulDesc desc = native(DType::kI8);
  desc.c = DType::kI8;
  desc.k_segment = 64;
  desc.a_block = 16;
  desc.c_block = 8;
  desc.a_scale = 0.5F;
  desc.a_zero_point = -3;
  desc.c_scale = 2;
  desc.c_zero_point = 7;
  desc.b_quant = MatmulQuantB::kGroup;
  desc.group_size = 32;
  desc.b_scales.assign(desc.b_scale_count(), 0.25F);
  desc.b_zero_points.assign(desc.b_scale_count(), -1);
  return desc;
}

TEST(MatmulImage, DecodesWhatWasEncoded) {
  for (const MatmulDesc& desc : {plain(), native(DType::kF16), full()}) {
    const auto back = decode_matmul(encode(desc));
    ASSERT_TRUE(back) << back.error().to_string();
    EXPECT_EQ(*back, desc);
  }
}

TEST(MatmulImage, CutBytesAreMalformedAtEveryLength) {
  const ByteVector bytes = encode(full());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto result = decode_matmul(ByteSpan(bytes).first(size));
    ASSERT_FALSE(result) << size;
    ASSERT_EQ(result.error().code(), Code::kMalformed) << size;
  }
}

TEST(MatmulImage, BytesBehindTheEndAreMalformed) {
  ByteVector bytes = encode(plain());
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode_matmul(bytes).error().code(), Code::kMalformed);
}

TEST(MatmulImage, OtherMagicAndVersionAreNamed) {
  ByteVector bytes = encode(plain());
  bytes[0] ^= std::byte{1};
  EXPECT_EQ(decode_matmul(bytes).error().code(), Code::kMalformed);
  bytes = encode(plain());
  bytes[4] = std::byte{9};
  EXPECT_EQ(decode_matmul(bytes).error().code(), Code::kVersionMismatch);
}

TEST(MatmulImage, AnnouncedListsThatAreNotThereTakeNoMemory) {
  ByteVector bytes = encode(plain());
  // The last 16 bytes are the lengths of two empty lists.
  for (std::size_t i = 1; i <= 16; ++i) {
    bytes[bytes.size() - i] = std::byte{0xFF};
    EXPECT_EQ(decode_matmul(bytes).error().code(), Code::kMalformed);
  }
}

TEST(MatmulImage, FlippedBytesNeverGiveADescriptionThatFailsItsCheck) {
  const ByteVector whole = encode(full());
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    ByteVector bytes = whole;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const auto result = decode_matmul(bytes);
    if (!result) continue;
    ASSERT_TRUE(result->check().ok());
    ASSERT_TRUE(describe(*result));
  }
}

TEST(MatmulImage, ImpossibleDescriptionsAreRefusedByName) {
  struct Case {
    const char* name;
    Code code;
    std::function<void(MatmulDesc&)> change;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Case cases[] = {
      {"i8 x i8 to bf16", Code::kUnsupported, [](auto& d) { d.c = DType::kBF16; }},
      {"M ", Code::kInvalidArgument, [](auto& d) { d.m = 0; }},
      {"K ", Code::kInvalidArgument, [](auto& d) { d.k = -1; }},
      {"N ", Code::kInvalidArgument, [](auto& d) { d.n = std::int64_t{1} << 40; }},
      {"integers", Code::kInvalidArgument, [](auto& d) { d.k = 40000; }},
      {"block of A", Code::kInvalidArgument, [](auto& d) { d.a_block = 5000; }},
      {"block of C", Code::kInvalidArgument, [](auto& d) { d.c_block = 5000; }},
      {"layout", Code::kInvalidArgument, [](auto& d) { d.b_layout = MatmulLayoutB{9}; }},
      {"blocks", Code::kInvalidArgument, [](auto& d) { d.b_block_n = 4; }},
      {"along N", Code::kInvalidArgument,
       [](auto& d) { d.b_layout = MatmulLayoutB::kNative, d.b_block_k = 32; }},
      {"multiple", Code::kInvalidArgument,
       [](auto& d) { d = native(DType::kI8), d.k_segment = 40; }},
      {"scale of A", Code::kInvalidArgument, [](auto& d) { d.a_scale = 0; }},
      {"scale of A", Code::kInvalidArgument, [=](auto& d) { d.a_scale = nan; }},
      {"zero point of A", Code::kInvalidArgument, [](auto& d) { d.a_zero_point = 128; }},
      {"C of i32", Code::kInvalidArgument, [](auto& d) { d.c_scale = 2; }},
      {"quantization", Code::kInvalidArgument, [](auto& d) { d.b_quant = MatmulQuantB{3}; }},
      {"group size", Code::kInvalidArgument, [](auto& d) { d.group_size = 4; }},
      {"by group", Code::kInvalidArgument,
       [](auto& d) { d.b_quant = MatmulQuantB::kGroup, d.group_size = 32; }},
      {"group size", Code::kInvalidArgument, [](auto& d) { d = full(), d.group_size = 71; }},
      {"scales", Code::kInvalidArgument, [](auto& d) { d.b_quant = MatmulQuantB::kChannel; }},
      {"scales", Code::kInvalidArgument,
       [](auto& d) {
         d.b_scales = {1, 2};
       }},
      {"scale 0 of B", Code::kInvalidArgument, [](auto& d) { d.b_scales = {-1}; }},
      {"zero points", Code::kInvalidArgument,
       [](auto& d) {
         d.b_zero_points = {1, 2};
       }},
      {"zero point 0 of B", Code::kInvalidArgument, [](auto& d) { d.b_zero_points = {200}; }},
      {"takes no quantization", Code::kInvalidArgument,
       [](auto& d) { d = native(DType::kF16), d.b_scales = {1}; }},
      {"A of f16", Code::kInvalidArgument, [](auto& d) { d = native(DType::kF16), d.a_scale = 2; }},
      {"bytes", Code::kInvalidArgument,
       [](auto& d) { d = native(DType::kF16), d.m = d.k = std::int64_t{1} << 24; }},
  };
  for (const Case& one : cases) {
    MatmulDesc desc = plain();
    one.change(desc);
    const Status status = desc.check();
    EXPECT_EQ(status.code(), one.code) << one.name << ": " << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(one.name));
    EXPECT_FALSE(describe(desc));
    EXPECT_FALSE(decode_matmul(encode(desc)));
  }
}

TEST(MatmulImage, TensorsHaveTheShapesAndBytesOfTheirLayouts) {
  const auto normal = *describe(plain(DType::kI4, DType::kI4, DType::kI16));
  EXPECT_EQ(normal.a.shape, Shape({3, 70}));
  EXPECT_EQ(*normal.a.bytes(), 105U);
  EXPECT_EQ(normal.b.shape, Shape({70, 50}));
  EXPECT_EQ(*normal.b.bytes(), 1750U);
  EXPECT_EQ(*normal.c.bytes(), 300U);
  EXPECT_EQ(normal.a.name + normal.b.name + normal.c.name, "ABC");

  MatmulDesc desc = full();
  const auto blocked = *describe(desc);
  EXPECT_EQ(blocked.a.shape, Shape({5, 3, 16}));
  EXPECT_EQ(blocked.b.shape, Shape({4, 3, 16, 32}));
  EXPECT_EQ(blocked.c.shape, Shape({7, 3, 8}));
  EXPECT_EQ(blocked.a.quant, Quant::affine(0.5F, -3));
  EXPECT_EQ(blocked.c.quant, Quant::affine(2, 7));

  desc = plain();
  desc.b_layout = MatmulLayoutB::kTransposed;
  EXPECT_EQ(describe(desc)->b.shape, Shape({50, 70}));
}

TEST(MatmulImage, EveryElementHasAPlaceOfItsOwn) {
  for (const std::uint32_t segment : {0U, 32U, 64U}) {
    MatmulDesc desc = native(DType::kI8);
    desc.k_segment = segment;
    std::set<std::size_t> places;
    for (std::int64_t k = 0; k < desc.k; ++k)
      for (std::int64_t n = 0; n < desc.n; ++n) places.insert(b_index(desc, k, n));
    EXPECT_EQ(places.size(), 3500U);
    EXPECT_LT(*places.rbegin(), *describe(desc)->b.bytes());
  }
}

TEST(MatmulImage, NativeBIsBlocksOfNByKInOrder) {
  const MatmulDesc whole = native(DType::kI8);
  EXPECT_EQ(b_index(whole, 0, 0), 0U);
  EXPECT_EQ(b_index(whole, 1, 0), 1U);
  EXPECT_EQ(b_index(whole, 0, 1), 32U);
  EXPECT_EQ(b_index(whole, 32, 0), 512U);
  EXPECT_EQ(b_index(whole, 0, 16), 1536U);
  MatmulDesc cut = whole;
  cut.k_segment = 64;
  EXPECT_EQ(b_index(cut, 63, 16), 1024U + 512 + 31);
  EXPECT_EQ(b_index(cut, 64, 0), 64U * 64);
  EXPECT_EQ(b_index(cut, 64, 16), 64U * 64 + 512);
}

TEST(MatmulImage, RelayoutGoesThereAndBack) {
  std::mt19937 random(2);
  for (const DType type : {DType::kI4, DType::kI8, DType::kF16}) {
    MatmulDesc from = native(type);
    from.b_layout = MatmulLayoutB::kNormal;
    from.b_block_n = from.b_block_k = 0;
    MatmulDesc to = native(type);
    to.k_segment = 32;
    ByteVector source(*describe(from)->b.bytes());
    for (auto& byte : source) byte = static_cast<std::byte>(random());
    ByteVector blocks(*describe(to)->b.bytes(), std::byte{0xAA});
    ByteVector back(source.size(), std::byte{0xAA});
    ASSERT_TRUE(relayout_b(from, source, to, blocks).ok());
    ASSERT_TRUE(relayout_b(to, blocks, from, back).ok());
    EXPECT_EQ(back, source);
    // (70, 50) fills 3 x 4 blocks in part; the last element of the last block is padding.
    EXPECT_EQ(blocks.back(), std::byte{0});
    EXPECT_EQ(relayout_b(from, ByteSpan(source).first(9), to, blocks).code(),
              Code::kInvalidArgument);
    EXPECT_EQ(relayout_b(from, source, to, MutableByteSpan(blocks).first(9)).code(),
              Code::kInvalidArgument);
    to.n = 49;
    EXPECT_EQ(relayout_b(from, source, to, blocks).code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace corelane::device
