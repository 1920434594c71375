/// What rknn_matmul_create reports of each type, chip and layout, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "adapters/rknn/matmul/rknn_matmul_test_support.h"

// Declared by the headers of one beta only.
extern "C" int rknn_matmul_create_dyn_shape(rknn_matmul_ctx* ctx, rknn_matmul_info* info,
                                            int shape_num, rknn_matmul_shape* dynamic_shapes,
                                            rknn_matmul_io_attr* io_attrs);

namespace corelane::rknn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint32_t> dims(const rknn_matmul_tensor_attr& attr) {
  return {attr.dims, attr.dims + attr.n_dims};
}

rknn_matmul_io_attr attributes(const rknn_matmul_info& given) {
  rknn_matmul_info info = given;
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_io_attr io;
  std::memset(&io, 0xA5, sizeof io);
  EXPECT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  return io;
}

constexpr rknn_matmul_layout kNative = RKNN_MM_LAYOUT_NATIVE;
constexpr rknn_matmul_layout kTransposed = RKNN_MM_LAYOUT_TP_NORM;

TEST(RknnMatmulCreate, NamesTypesDimensionsAndSizes) {
  const auto io = attributes(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 64, 96));
  EXPECT_STREQ(io.A.name, "A");
  EXPECT_STREQ(io.B.name, "B");
  EXPECT_STREQ(io.C.name, "C");
  EXPECT_THAT(dims(io.A), ElementsAre(4, 64));
  EXPECT_THAT(dims(io.B), ElementsAre(64, 96));
  EXPECT_THAT(dims(io.C), ElementsAre(4, 96));
  EXPECT_EQ(io.A.size, 256U);
  EXPECT_EQ(io.B.size, 6144U);
  EXPECT_EQ(io.C.size, 1536U);
  EXPECT_EQ(io.A.type, RKNN_TENSOR_INT8);
  EXPECT_EQ(io.C.type, RKNN_TENSOR_INT32);
}

TEST(RknnMatmulCreate, TransposedBIsNByK) {
  const auto io = attributes(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 64, 96, kTransposed));
  EXPECT_THAT(dims(io.B), ElementsAre(96, 64));
}

TEST(RknnMatmulCreate, Int4CountsHalfAByte) {
  const auto io = attributes(product_info(RKNN_INT4_MM_INT4_TO_INT16, 4, 64, 128));
  EXPECT_EQ(io.A.size, 128U);
  EXPECT_EQ(io.B.size, 4096U);
  EXPECT_EQ(io.C.size, 1024U);
  EXPECT_EQ(io.A.type, RKNN_TENSOR_INT4);
  EXPECT_EQ(io.C.type, RKNN_TENSOR_INT16);
}

TEST(RknnMatmulCreate, NativeBlocksOfRk3588) {
  const auto i8 =
      attributes(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 64, 128, kNative, kNative));
  EXPECT_THAT(dims(i8.A), ElementsAre(4, 4, 16));
  EXPECT_THAT(dims(i8.B), ElementsAre(4, 2, 32, 32));
  EXPECT_THAT(dims(i8.C), ElementsAre(32, 4, 4));
  const auto f16 =
      attributes(product_info(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, 4, 64, 128, kNative, kNative));
  EXPECT_THAT(dims(f16.A), ElementsAre(8, 4, 8));
  EXPECT_THAT(dims(f16.B), ElementsAre(8, 2, 16, 32));
  EXPECT_THAT(dims(f16.C), ElementsAre(32, 4, 4));
  const auto i4 =
      attributes(product_info(RKNN_INT4_MM_INT4_TO_INT16, 4, 64, 128, kNative, kNative));
  EXPECT_THAT(dims(i4.A), ElementsAre(2, 4, 32));
  EXPECT_THAT(dims(i4.B), ElementsAre(2, 2, 64, 32));
  EXPECT_THAT(dims(i4.C), ElementsAre(16, 4, 8));
}

TEST(RknnMatmulCreate, NativeBlocksOfCAre16BytesWhereNoTableSays) {
  EXPECT_THAT(
      dims(attributes(product_info(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16, 4, 64, 64, kNative, kNative))
               .C),
      ElementsAre(8, 4, 8));
  EXPECT_THAT(
      dims(attributes(product_info(RKNN_INT8_MM_INT8_TO_INT8, 4, 64, 64, kNative, kNative)).C),
      ElementsAre(4, 4, 16));
}

TEST(RknnMatmulCreate, NativeBlocksOfRk3566) {
  const InnerDevice inner("virtual:rk3566");
  const auto i8 = attributes(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 64, 64, kNative, kNative));
  EXPECT_THAT(dims(i8.A), ElementsAre(8, 4, 8));
  EXPECT_THAT(dims(i8.B), ElementsAre(4, 2, 16, 32));
  const auto f16 =
      attributes(product_info(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, 4, 48, 8, kNative, kNative));
  EXPECT_THAT(dims(f16.A), ElementsAre(12, 4, 4));
  EXPECT_THAT(dims(f16.B), ElementsAre(1, 3, 8, 16));
}

TEST(RknnMatmulCreate, EveryTypeOnEveryChip) {
  for (const char* chip : {"virtual:rk3588", "virtual:rk3576", "virtual:rk3568", "virtual:rk3566",
                           "virtual:rk3562", "virtual:generic:4"})
    for (const rknn_matmul_type type : kMatmulTypes) {
      SCOPED_TRACE(std::string(chip) + " type " + std::to_string(type));
      const InnerDevice inner(chip);
      const auto io = attributes(product_info(type, 3, 64, 64, kNative, kNative));
      EXPECT_EQ(io.B.n_dims, 4U);
    }
}

/// The code and the line of a refusal.
std::string refused(rknn_matmul_info info, int code = RKNN_ERR_PARAM_INVALID) {
  return log_of([&] {
    rknn_matmul_ctx ctx = 7;
    rknn_matmul_io_attr io;
    EXPECT_EQ(rknn_matmul_create(&ctx, &info, &io), code);
    EXPECT_EQ(ctx, 0U);
  });
}

TEST(RknnMatmulCreate, ShapesThatTheChipDoesNotTakeAreRefusedWithTheAlignment) {
  EXPECT_THAT(refused(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 63, 64)),
              HasSubstr("K is 63; on RK3588 it is a multiple of 32"));
  EXPECT_THAT(refused(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 64, 48)),
              HasSubstr("pad the matrices with zeros up to 64"));
  EXPECT_THAT(refused(product_info(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, 4, 64, 24)),
              HasSubstr("N is 24; on RK3588 it is a multiple of 16"));
  EXPECT_THAT(refused(product_info(RKNN_INT4_MM_INT4_TO_INT16, 4, 64, 32)),
              HasSubstr("multiple of 64"));
  EXPECT_THAT(refused(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 10272, 64)),
              HasSubstr("at most 10240"));
  EXPECT_THAT(refused(product_info(RKNN_INT8_MM_INT8_TO_INT32, 0, 64, 64)),
              HasSubstr("M is 0; it is 1 or more"));
  EXPECT_THAT(refused(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, -32, 64)), HasSubstr("K is -32"));
  EXPECT_THAT(refused(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 64, 0)), HasSubstr("N is 0"));
}

TEST(RknnMatmulCreate, SizesThatTheStructCannotTellAreRefused) {
  EXPECT_THAT(refused(product_info(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, 1 << 20, 10240, 64)),
              HasSubstr("cut the product into parts"));
  // Nothing of the size of B is made before.
  auto info = product_info(RKNN_INT8_MM_INT8_TO_FLOAT32, 1, 10240, 1 << 24);
  info.B_quant_type = RKNN_QUANT_TYPE_PER_GROUP_SYM;
  info.group_size = 1;
  EXPECT_THAT(refused(info), HasSubstr("cut the product into parts"));
}

TEST(RknnMatmulCreate, UnknownTypesLayoutsAndQuantizationsAreRefused) {
  EXPECT_THAT(refused(product_info(static_cast<rknn_matmul_type>(13), 4, 64, 64)),
              HasSubstr("type 13 is not a rknn_matmul_type"));
  EXPECT_THAT(refused(product_info(static_cast<rknn_matmul_type>(0), 4, 64, 64)),
              HasSubstr("there are 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15"));
  auto info = product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 64, 64);
  info.B_layout = 3;
  EXPECT_THAT(refused(info), HasSubstr("B_layout 3 does not exist"));
  info.B_layout = 0;
  info.AC_layout = 2;
  EXPECT_THAT(refused(info), HasSubstr("AC_layout 2 does not exist for A and C"));
  info.AC_layout = 0;
  info.B_quant_type = 6;
  EXPECT_THAT(refused(info), HasSubstr("B_quant_type 6 does not exist"));
  info.B_quant_type = 4;
  EXPECT_THAT(refused(info), HasSubstr("plain sums of integers"));
  info.B_quant_type = 0;
  info.AC_quant_type = 2;
  EXPECT_THAT(refused(info), HasSubstr("one scale each"));
  info.type = RKNN_INT8_MM_INT8_TO_FLOAT32;
  info.AC_quant_type = 0;
  info.B_quant_type = 5;
  EXPECT_THAT(refused(info), HasSubstr("groups have no zero points"));
  info.type = RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32;
  info.B_quant_type = 2;
  EXPECT_THAT(refused(info), HasSubstr("float16, which is not quantized"));
  info.type = RKNN_INT4_MM_INT4_TO_INT16;
  EXPECT_THAT(refused(info), HasSubstr("saturated sums"));
}

TEST(RknnMatmulCreate, GroupsMustDivideK) {
  auto info = product_info(RKNN_INT8_MM_INT8_TO_FLOAT32, 4, 64, 64);
  info.B_quant_type = RKNN_QUANT_TYPE_PER_GROUP_SYM;
  EXPECT_THAT(refused(info), HasSubstr("group_size 0 with B_quant_type 4"));
  info.group_size = 48;
  EXPECT_THAT(refused(info), HasSubstr("group_size 48 does not divide K = 64"));
  info.group_size = 128;
  EXPECT_THAT(refused(info), HasSubstr("does not divide"));
}

TEST(RknnMatmulCreate, DomainsAreRefusedWhereTheCallerIsOfToday) {
  auto info = product_info(RKNN_INT8_MM_INT8_TO_FLOAT32, 4, 64, 64);
  info.iommu_domain_id = 16;
  EXPECT_THAT(refused(info), HasSubstr("iommu_domain_id 16 is not within 0 and 15"));
  info.iommu_domain_id = -1;
  EXPECT_THAT(refused(info), HasSubstr("iommu_domain_id -1"));
  info.iommu_domain_id = 15;
  attributes(info);
}

TEST(RknnMatmulCreate, ADeviceWithoutProductsIsUnavailable) {
  const InnerDevice inner("null:rk3588");
  EXPECT_THAT(
      refused(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 64, 64), RKNN_ERR_DEVICE_UNAVAILABLE),
      HasSubstr("does not compute matrix products"));
}

TEST(RknnMatmulCreate, ADeviceThatDoesNotExistIsAFailureAsForModels) {
  const InnerDevice inner("nowhere");
  EXPECT_THAT(refused(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 64, 64), RKNN_ERR_FAIL),
              HasSubstr("nowhere"));
}

TEST(RknnMatmulCreate, NullPointersAreNamed) {
  auto info = product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 64, 64);
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_io_attr io;
  EXPECT_THAT(
      log_of([&] { EXPECT_EQ(rknn_matmul_create(nullptr, &info, &io), RKNN_ERR_PARAM_INVALID); }),
      HasSubstr("ctx is null"));
  EXPECT_THAT(
      log_of([&] { EXPECT_EQ(rknn_matmul_create(&ctx, nullptr, &io), RKNN_ERR_PARAM_INVALID); }),
      HasSubstr("info is null"));
  EXPECT_THAT(
      log_of([&] { EXPECT_EQ(rknn_matmul_create(&ctx, &info, nullptr), RKNN_ERR_PARAM_INVALID); }),
      HasSubstr("io_attr is null"));
}

TEST(RknnMatmulCreate, ListsOfShapesAreChecked) {
  auto info = product_info(RKNN_INT8_MM_INT8_TO_INT32, 0, 0, 0, kNative);
  rknn_matmul_shape shapes[] = {{1, 64, 32}, {4, 64, 64}};
  rknn_matmul_io_attr io[2];
  rknn_matmul_ctx ctx = 0;
  const auto create = [&](int count) {
    return rknn_matmul_create_dynamic_shape(&ctx, &info, count, shapes, io);
  };
  EXPECT_THAT(log_of([&] { EXPECT_EQ(create(2), RKNN_ERR_PARAM_INVALID); }),
              HasSubstr("with native B all shapes share it"));
  info.B_layout = RKNN_MM_LAYOUT_NORM;
  EXPECT_EQ(create(2), RKNN_SUCC);
  EXPECT_THAT(dims(io[0].B), ElementsAre(64, 32));
  EXPECT_THAT(dims(io[1].A), ElementsAre(4, 64));
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  shapes[1].K = 65;
  EXPECT_THAT(log_of([&] { EXPECT_EQ(create(2), RKNN_ERR_PARAM_INVALID); }),
              HasSubstr("shape 1 of the list"));
  for (const int count : {0, -1, 513})
    EXPECT_THAT(log_of([&] { EXPECT_EQ(create(count), RKNN_ERR_PARAM_INVALID); }),
                HasSubstr("is not within 1 and 512"));
  EXPECT_EQ(rknn_matmul_create_dynamic_shape(&ctx, &info, 1, nullptr, io), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_matmul_create_dynamic_shape(&ctx, &info, 1, shapes, nullptr),
            RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_matmul_create_dynamic_shape(&ctx, nullptr, 1, shapes, io), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_matmul_create_dynamic_shape(nullptr, &info, 1, shapes, io),
            RKNN_ERR_PARAM_INVALID);
}

TEST(RknnMatmulCreate, TheOldNameOfDynamicShapesWorks) {
  auto info = product_info(RKNN_INT8_MM_INT8_TO_INT32, 0, 0, 0);
  rknn_matmul_shape shapes[] = {{1, 64, 32}, {4, 64, 32}};
  rknn_matmul_io_attr io[2];
  rknn_matmul_ctx ctx = 0;
  EXPECT_EQ(rknn_matmul_create_dyn_shape(&ctx, &info, 2, shapes, io), RKNN_SUCC);
  EXPECT_EQ(io[1].A.dims[0], 4U);
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
}

/// rknn_matmul_info as programs of 1.5 and 1.6 have it.
struct OldInfo {
  std::int32_t M, K, N;
  std::uint32_t type;
  std::int32_t B_layout, AC_layout;
};
static_assert(sizeof(OldInfo) == 24);

TEST(RknnMatmulCreate, ProgramsOf16PassAShorterStruct) {
  // On the heap and no longer than theirs: a checker of addresses sees each step beyond it.
  for (const rknn_matmul_type type :
       {RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, RKNN_INT8_MM_INT8_TO_INT32, RKNN_INT4_MM_INT4_TO_INT16})
    for (const std::int32_t native : {0, 1}) {
      auto old = std::make_unique<OldInfo>(
          OldInfo{4, 64, 64, static_cast<std::uint32_t>(type), native, native});
      rknn_matmul_ctx ctx = 0;
      rknn_matmul_io_attr io;
      ASSERT_EQ(rknn_matmul_create(&ctx, reinterpret_cast<rknn_matmul_info*>(old.get()), &io),
                RKNN_SUCC);
      EXPECT_EQ(io.B.n_dims, native == 0 ? 2U : 4U);
      EXPECT_EQ(io.A.n_dims, native == 0 ? 2U : 3U);
      EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
    }
}

TEST(RknnMatmulCreate, WhatLiesBehindTheShorterStructHasNoEffect) {
  struct {
    OldInfo old;
    unsigned char behind[40];
  } stack{{4, 64, 64, RKNN_INT8_MM_INT8_TO_INT32, 0, 0}, {}};
  std::memset(stack.behind, 0xA5, sizeof stack.behind);
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_io_attr io;
  EXPECT_EQ(rknn_matmul_create(&ctx, reinterpret_cast<rknn_matmul_info*>(&stack), &io), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
}

}  // namespace
}  // namespace corelane::rknn
