/// Scales and zero points of products, and several shapes of one product.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "adapters/rknn/matmul/rknn_matmul_test_support.h"

namespace corelane::rknn {
namespace {

using ::testing::HasSubstr;

rknn_matmul_info with_quant(rknn_matmul_type type, int b_quant, int ac_quant = 0) {
  auto info = product_info(type, 4, 64, 64);
  info.B_quant_type = static_cast<std::int16_t>(b_quant);
  info.AC_quant_type = static_cast<std::int16_t>(ac_quant);
  if (b_quant == RKNN_QUANT_TYPE_PER_GROUP_SYM) info.group_size = 32;
  return info;
}

/// The normalised scale; negative when it was refused.
float scale_of(Product& product, const char* name) {
  std::vector<float> none;
  std::vector<std::int32_t> no_zeros;
  rknn_quant_params params = product.quant(name, none, no_zeros);
  float scale = 0;
  const int code = rknn_matmul_get_quant_params(product.ctx, &params, &scale);
  return code == RKNN_SUCC ? scale : static_cast<float>(code);
}

TEST(RknnMatmulQuant, WithoutParametersScalesAre1) {
  Product product(with_quant(RKNN_INT8_MM_INT8_TO_INT32, RKNN_QUANT_TYPE_PER_CHANNEL_SYM));
  for (const char* name : {"A", "B", "C"}) EXPECT_EQ(scale_of(product, name), 1.0F);
  product.fill(1);
  product.write();
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
  EXPECT_EQ(product.wrong(), 0);
}

TEST(RknnMatmulQuant, Type2PerChannelBringsCToTheLargestScale) {
  for (const auto ac : {RKNN_MM_LAYOUT_NORM, RKNN_MM_LAYOUT_NATIVE}) {
    auto info = with_quant(RKNN_INT8_MM_INT8_TO_INT32, RKNN_QUANT_TYPE_PER_CHANNEL_SYM);
    info.AC_layout = static_cast<std::int16_t>(ac);
    Product product(info);
    product.fill(2);
    product.write();
    product.b_scales.clear();
    for (int n = 0; n < 64; ++n)
      product.b_scales.push_back(0.001F * static_cast<float>(1 + n % 10));
    ASSERT_EQ(product.set_quant("A", {0.5F}, {}), RKNN_SUCC);
    ASSERT_EQ(product.set_quant("B", product.b_scales, {}), RKNN_SUCC);
    ASSERT_EQ(product.bind(), RKNN_SUCC);
    for (int round = 0; round < 3; ++round) ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
    EXPECT_EQ(product.wrong(), 0);
    // C * scale of A * that scale is the product, within half a step.
    const float common = scale_of(product, "B");
    EXPECT_FLOAT_EQ(common, 0.01F);
    const Elements c{product.c_mem->virt_addr, RKNN_TENSOR_INT32};
    for (int n = 0; n < 64; ++n) {
      double truth = 0;
      for (int k = 0; k < 64; ++k)
        truth += product.a[Product::size(k)] * 0.5 * product.b[Product::size(k * 64 + n)] *
                 static_cast<double>(product.b_scales[Product::size(n)]);
      EXPECT_NEAR(c.get(product.c_at(0, n)) * 0.5 * static_cast<double>(common), truth,
                  0.5 * 0.5 * 0.01 * 1.001);
    }
  }
}

TEST(RknnMatmulQuant, Type2PerChannelWithEqualScalesIsExact) {
  Product product(with_quant(RKNN_INT8_MM_INT8_TO_INT32, RKNN_QUANT_TYPE_PER_CHANNEL_SYM));
  product.fill(3);
  product.write();
  ASSERT_EQ(product.set_quant("B", std::vector<float>(64, 0.25F), {}), RKNN_SUCC);
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
  EXPECT_EQ(product.wrong(), 0);
  EXPECT_EQ(scale_of(product, "B"), 0.25F);
}

TEST(RknnMatmulQuant, OneScaleCanAlwaysBeRead) {
  Product product(with_quant(RKNN_INT8_MM_INT8_TO_INT8, RKNN_QUANT_TYPE_PER_LAYER_SYM));
  ASSERT_EQ(product.set_quant("A", {0.5F}, {}), RKNN_SUCC);
  ASSERT_EQ(product.set_quant("B", {0.25F}, {}), RKNN_SUCC);
  ASSERT_EQ(product.set_quant("C", {2.0F}, {}), RKNN_SUCC);
  EXPECT_EQ(scale_of(product, "A"), 0.5F);
  EXPECT_EQ(scale_of(product, "B"), 0.25F);
  EXPECT_EQ(scale_of(product, "C"), 2.0F);
}

TEST(RknnMatmulQuant, ScalesThatHaveNoCommonOneAreNotRead) {
  for (const int quant : {RKNN_QUANT_TYPE_PER_CHANNEL_SYM, RKNN_QUANT_TYPE_PER_GROUP_SYM}) {
    Product product(with_quant(RKNN_INT8_MM_INT8_TO_FLOAT32, quant));
    EXPECT_THAT(log_of([&] {
                  EXPECT_EQ(scale_of(product, "B"), static_cast<float>(RKNN_ERR_PARAM_INVALID));
                }),
                HasSubstr("only type 2 per channel"));
  }
}

TEST(RknnMatmulQuant, Type3RoundsHalfToEvenAndSaturates) {
  Product product(product_info(RKNN_INT8_MM_INT8_TO_INT8, 1, 32, 32));
  product.a[0] = 1;
  // Sums of -96 to 96 in steps of 6, halved twice: halves among them.
  for (int n = 0; n < 32; ++n) product.b[Product::size(n)] = 6 * (n - 16);
  product.write();
  product.c_scale = 4;
  ASSERT_EQ(product.set_quant("C", {4.0F}, {}), RKNN_SUCC);
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
  const auto* c = static_cast<const std::int8_t*>(product.c_mem->virt_addr);
  EXPECT_EQ(c[17], 2);   // 1.5
  EXPECT_EQ(c[15], -2);  // -1.5
  EXPECT_EQ(c[19], 4);   // 4.5
  EXPECT_EQ(c[21], 8);   // 7.5
  ASSERT_EQ(product.set_quant("C", {0.25F}, {}), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
  EXPECT_EQ(c[0], -128);
  EXPECT_EQ(c[31], 127);
}

TEST(RknnMatmulQuant, ParametersTakeEffectAtTheNextRun) {
  Product product(product_info(RKNN_INT8_MM_INT8_TO_FLOAT32, 2, 64, 32));
  product.fill(4);
  product.write();
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  for (const float scale : {0.5F, 0.125F, 3.0F}) {
    product.b_scales = {scale};
    ASSERT_EQ(product.set_quant("B", {scale}, {}), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
    EXPECT_EQ(product.wrong(), 0);
  }
}

std::string refused(Product& product, const char* name, std::vector<float> scales,
                    std::vector<std::int32_t> zeros) {
  return log_of([&] {
    EXPECT_EQ(product.set_quant(name, std::move(scales), std::move(zeros)), RKNN_ERR_PARAM_INVALID);
  });
}

TEST(RknnMatmulQuant, LengthsFollowTheQuantization) {
  Product layer(with_quant(RKNN_INT8_MM_INT8_TO_FLOAT32, RKNN_QUANT_TYPE_PER_LAYER_ASYM, 1));
  EXPECT_THAT(refused(layer, "B", {1, 1}, {}), HasSubstr("scale_len of B is 2"));
  EXPECT_THAT(refused(layer, "B", {}, {}), HasSubstr("scale"));
  EXPECT_THAT(refused(layer, "B", {1}, {1, 2}), HasSubstr("zp_len of B is 2; it is 1 (per layer)"));
  EXPECT_THAT(refused(layer, "A", {1, 1}, {}), HasSubstr("scale_len of A is 2"));
  Product channel(with_quant(RKNN_INT8_MM_INT8_TO_FLOAT32, RKNN_QUANT_TYPE_PER_CHANNEL_ASYM));
  EXPECT_THAT(refused(channel, "B", {1}, {}), HasSubstr("it is N = 64 (per channel)"));
  EXPECT_EQ(channel.set_quant("B", std::vector<float>(64, 1), std::vector<std::int32_t>(64, 3)),
            RKNN_SUCC);
  Product group(with_quant(RKNN_INT8_MM_INT8_TO_FLOAT32, RKNN_QUANT_TYPE_PER_GROUP_SYM));
  EXPECT_THAT(refused(group, "B", std::vector<float>(64, 1), {}),
              HasSubstr("N * K / group_size = 128"));
  EXPECT_EQ(group.set_quant("B", std::vector<float>(128, 1), {}), RKNN_SUCC);
}

TEST(RknnMatmulQuant, ValuesAreChecked) {
  Product product(with_quant(RKNN_INT8_MM_INT8_TO_FLOAT32, RKNN_QUANT_TYPE_PER_LAYER_ASYM, 1));
  for (const float scale : {0.0F, -1.0F, INFINITY, NAN})
    EXPECT_THAT(refused(product, "A", {scale}, {}), HasSubstr("it is finite and above 0"));
  EXPECT_THAT(refused(product, "A", {1}, {128}), HasSubstr("i8 holds -128 to 127"));
  EXPECT_THAT(refused(product, "B", {1}, {-129}), HasSubstr("zp[0] of B is -129"));
  EXPECT_THAT(refused(product, "D", {1}, {}), HasSubstr("name 'D' is not a matrix"));
  EXPECT_THAT(refused(product, "", {1}, {}), HasSubstr("name '' is not a matrix"));
  EXPECT_THAT(refused(product, "C", {2}, {}), HasSubstr("C is f32 and not quantized"));
  EXPECT_EQ(product.set_quant("C", {1}, {0}), RKNN_SUCC);
  Product symmetric(with_quant(RKNN_INT8_MM_INT8_TO_FLOAT32, RKNN_QUANT_TYPE_PER_LAYER_SYM));
  EXPECT_THAT(refused(symmetric, "B", {1}, {4}), HasSubstr("B_quant_type says symmetric"));
  EXPECT_THAT(refused(symmetric, "A", {1}, {4}), HasSubstr("AC_quant_type says symmetric"));
  EXPECT_EQ(symmetric.set_quant("B", {1}, {0}), RKNN_SUCC);
}

TEST(RknnMatmulQuant, NullPointersAreNamed) {
  Product product(with_quant(RKNN_INT8_MM_INT8_TO_FLOAT32, RKNN_QUANT_TYPE_PER_LAYER_ASYM, 1));
  std::vector<float> scales = {1};
  std::vector<std::int32_t> zeros = {1};
  rknn_quant_params params = product.quant("A", scales, zeros);
  float scale = 0;
  EXPECT_EQ(rknn_matmul_set_quant_params(product.ctx, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_matmul_get_quant_params(product.ctx, nullptr, &scale), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_matmul_get_quant_params(product.ctx, &params, nullptr), RKNN_ERR_PARAM_INVALID);
  params.zp = nullptr;
  EXPECT_EQ(rknn_matmul_set_quant_params(product.ctx, &params), RKNN_ERR_PARAM_INVALID);
  params.zp_len = 0;
  EXPECT_EQ(rknn_matmul_set_quant_params(product.ctx, &params), RKNN_SUCC);
  params.scale = nullptr;
  EXPECT_EQ(rknn_matmul_set_quant_params(product.ctx, &params), RKNN_ERR_PARAM_INVALID);
  std::memset(params.name, 'A', sizeof params.name);  // Not terminated.
  EXPECT_EQ(rknn_matmul_set_quant_params(product.ctx, &params), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnMatmulQuant, AFailedCallChangesNothing) {
  Product product(product_info(RKNN_INT8_MM_INT8_TO_FLOAT32, 2, 64, 32));
  product.fill(4);
  product.write();
  product.b_scales = {0.5F};
  ASSERT_EQ(product.set_quant("B", {0.5F}, {}), RKNN_SUCC);
  EXPECT_EQ(product.set_quant("B", {-1.0F}, {}), RKNN_ERR_PARAM_INVALID);
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
  EXPECT_EQ(product.wrong(), 0);
}

/// A product of several shapes, with memory for the largest.
struct Dynamic {
  explicit Dynamic(rknn_matmul_info given, std::vector<rknn_matmul_shape> list)
      : info(given), shapes(std::move(list)), io(shapes.size()) {
    EXPECT_EQ(rknn_matmul_create_dynamic_shape(&ctx, &info, static_cast<int>(shapes.size()),
                                               shapes.data(), io.data()),
              RKNN_SUCC);
    std::uint32_t bytes = 0;
    for (const rknn_matmul_io_attr& attr : io)
      bytes = std::max({bytes, attr.A.size, attr.B.size, attr.C.size});
    for (rknn_tensor_mem*& mem : mems) mem = rknn_create_mem(ctx, bytes);
  }
  ~Dynamic() {
    for (rknn_tensor_mem* mem : mems) rknn_destroy_mem(ctx, mem);
    EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  }
  int bind(std::size_t i) {
    int code = rknn_matmul_set_io_mem(ctx, mems[0], &io[i].A);
    code |= rknn_matmul_set_io_mem(ctx, mems[1], &io[i].B);
    return code | rknn_matmul_set_io_mem(ctx, mems[2], &io[i].C);
  }
  rknn_matmul_info info;
  std::vector<rknn_matmul_shape> shapes;
  std::vector<rknn_matmul_io_attr> io;
  rknn_matmul_ctx ctx = 0;
  rknn_tensor_mem* mems[3] = {};
};

/// Fills, runs and checks shape `i` of a dynamic product, through a product that has it alone.
void check_shape(Dynamic& dynamic, std::size_t i, unsigned seed) {
  auto info = dynamic.info;
  info.M = dynamic.shapes[i].M;
  info.K = dynamic.shapes[i].K;
  info.N = dynamic.shapes[i].N;
  Product alone(info);
  ASSERT_EQ(alone.code, RKNN_SUCC);
  alone.fill(seed);
  alone.write();
  std::memcpy(dynamic.mems[0]->virt_addr, alone.a_mem->virt_addr, alone.io.A.size);
  std::memcpy(dynamic.mems[1]->virt_addr, alone.b_mem->virt_addr, alone.io.B.size);
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(dynamic.ctx, &dynamic.shapes[i]), RKNN_SUCC);
  ASSERT_EQ(dynamic.bind(i), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(dynamic.ctx), RKNN_SUCC);
  std::memcpy(alone.c_mem->virt_addr, dynamic.mems[2]->virt_addr, alone.io.C.size);
  EXPECT_EQ(alone.wrong(), 0);
}

TEST(RknnMatmulDynamic, EachShapeComputesWhatItSays) {
  Dynamic dynamic(product_info(RKNN_INT8_MM_INT8_TO_INT32, 0, 0, 0),
                  {{1, 64, 32}, {16, 64, 32}, {4, 128, 96}});
  unsigned seed = 1;
  for (const std::size_t i : {0, 1, 2, 0, 2, 1, 1}) check_shape(dynamic, i, ++seed);
}

TEST(RknnMatmulDynamic, NativeBIsSetOnce) {
  Dynamic dynamic(product_info(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, 0, 0, 0, RKNN_MM_LAYOUT_NATIVE),
                  {{1, 64, 32}, {16, 64, 32}});
  check_shape(dynamic, 0, 5);
  const float first = static_cast<float*>(dynamic.mems[2]->virt_addr)[3];
  // A and C stay bound where they suffice, and B is as it was.
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(dynamic.ctx, &dynamic.shapes[1]), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_io_mem(dynamic.ctx, dynamic.mems[0], &dynamic.io[1].A), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_io_mem(dynamic.ctx, dynamic.mems[2], &dynamic.io[1].C), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(dynamic.ctx), RKNN_SUCC);
  EXPECT_NEAR(static_cast<float*>(dynamic.mems[2]->virt_addr)[3], first, 1e-4);
}

TEST(RknnMatmulDynamic, AShapeIsChosenBeforeAnythingElse) {
  Dynamic dynamic(product_info(RKNN_INT8_MM_INT8_TO_INT32, 0, 0, 0), {{1, 64, 32}, {4, 64, 32}});
  EXPECT_THAT(log_of([&] { EXPECT_EQ(rknn_matmul_run(dynamic.ctx), RKNN_ERR_FAIL); }),
              HasSubstr("call rknn_matmul_set_dynamic_shape first"));
  EXPECT_THAT(log_of([&] {
                EXPECT_EQ(rknn_matmul_set_io_mem(dynamic.ctx, dynamic.mems[0], &dynamic.io[0].A),
                          RKNN_ERR_FAIL);
              }),
              HasSubstr("call rknn_matmul_set_dynamic_shape first"));
}

TEST(RknnMatmulDynamic, OtherShapesAreRefusedWithTheList) {
  Dynamic dynamic(product_info(RKNN_INT8_MM_INT8_TO_INT32, 0, 0, 0), {{1, 64, 32}, {4, 64, 32}});
  rknn_matmul_shape other = {2, 64, 32};
  EXPECT_THAT(log_of([&] {
                EXPECT_EQ(rknn_matmul_set_dynamic_shape(dynamic.ctx, &other),
                          RKNN_ERR_PARAM_INVALID);
              }),
              HasSubstr("given: (1, 64, 32) (4, 64, 32)"));
  EXPECT_EQ(rknn_matmul_set_dynamic_shape(dynamic.ctx, nullptr), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnMatmulDynamic, AProductOfOneShapeHasNoneToChoose) {
  Product product(product_info(RKNN_INT8_MM_INT8_TO_INT32, 1, 64, 32));
  rknn_matmul_shape shape = {1, 64, 32};
  EXPECT_THAT(
      log_of([&] { EXPECT_EQ(rknn_matmul_set_dynamic_shape(product.ctx, &shape), RKNN_ERR_FAIL); }),
      HasSubstr("this product has one shape"));
}

TEST(RknnMatmulDynamic, MemoryThatWasBoundForASmallerShapeIsReported) {
  Dynamic dynamic(product_info(RKNN_INT8_MM_INT8_TO_INT32, 0, 0, 0), {{1, 64, 32}, {4, 64, 32}});
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(dynamic.ctx, &dynamic.shapes[0]), RKNN_SUCC);
  ASSERT_EQ(dynamic.bind(0), RKNN_SUCC);
  rknn_tensor_mem* small = rknn_create_mem(dynamic.ctx, dynamic.io[0].A.size);
  ASSERT_EQ(rknn_matmul_set_io_mem(dynamic.ctx, small, &dynamic.io[0].A), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_run(dynamic.ctx), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(dynamic.ctx, &dynamic.shapes[1]), RKNN_SUCC);
  EXPECT_THAT(log_of([&] { EXPECT_EQ(rknn_matmul_run(dynamic.ctx), RKNN_ERR_FAIL); }),
              HasSubstr("call rknn_matmul_set_io_mem after rknn_matmul_set_dynamic_shape"));
  EXPECT_EQ(rknn_destroy_mem(dynamic.ctx, small), RKNN_SUCC);
}

TEST(RknnMatmulDynamic, ScalesBelongToTheShapeTheyWereGivenFor) {
  auto info = with_quant(RKNN_INT8_MM_INT8_TO_FLOAT32, RKNN_QUANT_TYPE_PER_CHANNEL_SYM);
  Dynamic dynamic(info, {{1, 64, 32}, {4, 64, 64}});
  std::vector<float> scales(32, 0.5F);
  rknn_quant_params params;
  std::memset(&params, 0, sizeof params);
  params.name[0] = 'B';
  params.scale = scales.data();
  params.scale_len = 32;
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(dynamic.ctx, &dynamic.shapes[0]), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_quant_params(dynamic.ctx, &params), RKNN_SUCC);
  ASSERT_EQ(dynamic.bind(0), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_run(dynamic.ctx), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(dynamic.ctx, &dynamic.shapes[1]), RKNN_SUCC);
  ASSERT_EQ(dynamic.bind(1), RKNN_SUCC);
  EXPECT_THAT(log_of([&] { EXPECT_EQ(rknn_matmul_run(dynamic.ctx), RKNN_ERR_FAIL); }),
              HasSubstr("B was given 32 scales"));
}

}  // namespace
}  // namespace corelane::rknn
