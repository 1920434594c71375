/// Products through the C API against the plainest reference: each type, layout, quantization.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "adapters/rknn/matmul/rknn_matmul.h"
#include "adapters/rknn/matmul/rknn_matmul_test_support.h"

namespace corelane::rknn {
namespace {

using ::testing::HasSubstr;

std::string text(const rknn_matmul_info& info) {
  return "type " + std::to_string(info.type) + " (" + std::to_string(info.M) + ", " +
         std::to_string(info.K) + ", " + std::to_string(info.N) + ") B_layout " +
         std::to_string(info.B_layout) + " AC_layout " + std::to_string(info.AC_layout) +
         " B_quant " + std::to_string(info.B_quant_type) + " AC_quant " +
         std::to_string(info.AC_quant_type);
}

bool integer_a(rknn_matmul_type type) {
  return type == RKNN_INT8_MM_INT8_TO_INT32 || type == RKNN_INT8_MM_INT8_TO_INT8 ||
         type == RKNN_INT8_MM_INT8_TO_FLOAT32 || type == RKNN_INT4_MM_INT4_TO_INT16 ||
         type == RKNN_INT8_MM_INT4_TO_INT32 || type == RKNN_INT8_MM_INT4_TO_FLOAT16;
}
bool integer_b(rknn_matmul_type type) {
  return type != RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32 && type != RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16;
}

/// Sums of one type, without parameters, in one pair of layouts.
void check_plain(rknn_matmul_info info, int segment = 8192) {
  SCOPED_TRACE(text(info));
  Product product(info);
  product.segment = segment;
  ASSERT_EQ(product.code, RKNN_SUCC);
  if (product.io.C.type == RKNN_TENSOR_INT8) {
    product.c_scale = 128.0 * info.K / 8;
    ASSERT_EQ(product.set_quant("C", {static_cast<float>(product.c_scale)}, {}), RKNN_SUCC);
  }
  product.fill(static_cast<unsigned>(info.type));
  product.write();
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
  EXPECT_EQ(product.wrong(), 0);
}

TEST(RknnMatmulProduct, EveryTypeInEveryLayout) {
  for (const rknn_matmul_type type : kMatmulTypes)
    for (const auto b : {RKNN_MM_LAYOUT_NORM, RKNN_MM_LAYOUT_NATIVE, RKNN_MM_LAYOUT_TP_NORM})
      for (const auto ac : {RKNN_MM_LAYOUT_NORM, RKNN_MM_LAYOUT_NATIVE})
        for (const int m : {1, 5}) check_plain(product_info(type, m, 96, 128, b, ac));
}

TEST(RknnMatmulProduct, EveryTypeWithTheBlocksOfRk3566) {
  const InnerDevice inner("virtual:rk3566");
  for (const rknn_matmul_type type : kMatmulTypes)
    check_plain(product_info(type, 3, 96, 96, RKNN_MM_LAYOUT_NATIVE, RKNN_MM_LAYOUT_NATIVE));
}

TEST(RknnMatmulProduct, NativeBOfALargeKIsCutIntoSegments) {
  check_plain(product_info(RKNN_INT8_MM_INT8_TO_INT32, 2, 10240, 64, RKNN_MM_LAYOUT_NATIVE));
  check_plain(product_info(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, 2, 8224, 16, RKNN_MM_LAYOUT_NATIVE));
  const InnerDevice inner("virtual:rk3576");
  check_plain(product_info(RKNN_INT8_MM_INT8_TO_INT32, 2, 10240, 64, RKNN_MM_LAYOUT_NATIVE), 4096);
}

TEST(RknnMatmulProduct, TheLargestIntegersDoNotSaturate) {
  for (const double right : {-128.0, 127.0}) {
    Product product(product_info(RKNN_INT8_MM_INT8_TO_INT32, 2, 10240, 32));
    ASSERT_EQ(product.code, RKNN_SUCC);
    std::fill(product.a.begin(), product.a.end(), -128.0);
    std::fill(product.b.begin(), product.b.end(), right);
    product.write();
    ASSERT_EQ(product.bind(), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
    EXPECT_EQ(product.wrong(), 0);
  }
}

TEST(RknnMatmulProduct, Int16SaturatesAtBothEnds) {
  for (const double right : {-8.0, 7.0}) {
    Product product(product_info(RKNN_INT4_MM_INT4_TO_INT16, 2, 1024, 64));
    ASSERT_EQ(product.code, RKNN_SUCC);
    std::fill(product.a.begin(), product.a.end(), -8.0);
    std::fill(product.b.begin(), product.b.end(), right);
    product.write();
    ASSERT_EQ(product.bind(), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
    EXPECT_EQ(Elements({product.c_mem->virt_addr, RKNN_TENSOR_INT16}).get(0),
              right < 0 ? 32767 : -32768);
    EXPECT_EQ(product.wrong(), 0);
  }
}

/// Random scales and zero points as the quantization types say.
void check_quantized(rknn_matmul_info info) {
  SCOPED_TRACE(text(info));
  Product product(info);
  ASSERT_EQ(product.code, RKNN_SUCC);
  std::mt19937 random(static_cast<unsigned>(info.type * 100 + info.B_quant_type));
  const auto scale = [&] { return static_cast<float>(1 + random() % 64) / 256.0F; };
  const bool int4_a = product.io.A.type == RKNN_TENSOR_INT4;
  const bool int4_b = product.io.B.type == RKNN_TENSOR_INT4;
  const auto zero = [&](bool int4) {
    return static_cast<std::int32_t>(random() % (int4 ? 15 : 255)) - (int4 ? 7 : 127);
  };
  if (integer_a(info.type)) {
    const float a_scale = scale();
    product.a_scale = a_scale;
    if (info.AC_quant_type == RKNN_QUANT_TYPE_PER_LAYER_ASYM) product.a_zero = zero(int4_a);
    ASSERT_EQ(product.set_quant("A", {a_scale}, {static_cast<std::int32_t>(product.a_zero)}),
              RKNN_SUCC);
  }
  const std::size_t n = Product::size(info.N);
  const std::size_t count = info.B_quant_type < 2   ? 1
                            : info.B_quant_type < 4 ? n
                                                    : n * Product::size(info.K / info.group_size);
  product.b_scales.clear();
  for (std::size_t i = 0; i < count; ++i) product.b_scales.push_back(scale());
  std::vector<std::int32_t> zeros;
  if (info.B_quant_type % 2 != 0) {
    for (std::size_t i = 0; i < count; ++i) zeros.push_back(zero(int4_b));
    product.b_zeros = zeros;
  }
  ASSERT_EQ(product.set_quant("B", product.b_scales, zeros), RKNN_SUCC);
  if (product.io.C.type == RKNN_TENSOR_INT8) {
    product.c_scale = 8.0F;
    if (info.AC_quant_type == RKNN_QUANT_TYPE_PER_LAYER_ASYM) product.c_zero = zero(false);
    ASSERT_EQ(product.set_quant("C", {8.0F}, {static_cast<std::int32_t>(product.c_zero)}),
              RKNN_SUCC);
  }
  product.fill(static_cast<unsigned>(info.type));
  product.write();
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
  EXPECT_EQ(product.wrong(), 0);
}

TEST(RknnMatmulProduct, EveryTypeWithEveryQuantization) {
  for (const rknn_matmul_type type : kMatmulTypes)
    for (std::int16_t b_quant = 0; b_quant <= RKNN_QUANT_TYPE_PER_GROUP_SYM; ++b_quant) {
      auto info = product_info(type, 3, 128, 64,
                               b_quant % 2 == 0 ? RKNN_MM_LAYOUT_NORM : RKNN_MM_LAYOUT_NATIVE);
      const bool sums = type == RKNN_INT8_MM_INT8_TO_INT32 || type == RKNN_INT8_MM_INT4_TO_INT32;
      if (!integer_b(type) && b_quant != 0) continue;
      if (type == RKNN_INT4_MM_INT4_TO_INT16 && b_quant >= 2) continue;
      if (sums && b_quant >= 4) continue;
      if (!integer_b(type)) continue;
      info.B_quant_type = b_quant;
      info.AC_quant_type = integer_a(type) ? b_quant % 2 : 0;
      info.group_size = b_quant == RKNN_QUANT_TYPE_PER_GROUP_SYM ? 32 : 0;
      check_quantized(info);
    }
}

TEST(RknnMatmulProduct, NegativeInfinityAndNanOfF16Propagate) {
  Product product(product_info(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, 1, 32, 16));
  ASSERT_EQ(product.code, RKNN_SUCC);
  std::fill(product.a.begin(), product.a.end(), 1.0);
  std::fill(product.b.begin(), product.b.end(), 1.0);
  product.b[0] = -INFINITY;
  product.b[1] = NAN;
  product.write();
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
  const auto* c = static_cast<const float*>(product.c_mem->virt_addr);
  EXPECT_EQ(c[0], -INFINITY);
  EXPECT_TRUE(std::isnan(c[1]));
  EXPECT_EQ(c[2], 32.0F);
}

TEST(RknnMatmulProduct, BothWaysToNativeBAgree) {
  for (const rknn_matmul_type type : kMatmulTypes)
    for (const int k : {64, 8256}) {
      auto info = product_info(type, 1, k, 128, RKNN_MM_LAYOUT_NATIVE);
      SCOPED_TRACE(text(info));
      Product native(info);
      Product normal(product_info(type, 1, k, 128));
      ASSERT_EQ(native.code, RKNN_SUCC);
      ASSERT_EQ(normal.code, RKNN_SUCC);
      native.fill(3);
      normal.b = native.b;
      native.write();
      normal.write();
      std::vector<std::uint8_t> made(native.io.B.size, 0xA5);
      ASSERT_EQ(rknn_B_normal_layout_to_native_layout(normal.b_mem->virt_addr, made.data(), k, 128,
                                                      &info),
                RKNN_SUCC);
      EXPECT_EQ(std::memcmp(made.data(), native.b_mem->virt_addr, made.size()), 0);
    }
}

TEST(RknnMatmulProduct, TheWayToNativeBPadsWithZeros) {
  auto info = product_info(RKNN_INT8_MM_INT8_TO_INT32, 0, 0, 0);
  std::vector<std::int8_t> normal(5 * 3, 7);
  std::vector<std::int8_t> native(32 * 32, 99);
  ASSERT_EQ(rknn_B_normal_layout_to_native_layout(normal.data(), native.data(), 5, 3, &info),
            RKNN_SUCC);
  for (std::size_t n = 0; n < 32; ++n)
    for (std::size_t k = 0; k < 32; ++k)
      EXPECT_EQ(native[n * 32 + k], n < 3 && k < 5 ? 7 : 0) << n << ' ' << k;
}

TEST(RknnMatmulProduct, TheWayToNativeBIsThatOfTheDevice) {
  for (const auto& [type, dtype, block_n] :
       {std::tuple{RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, DType::kF16, 16U},
        std::tuple{RKNN_INT8_MM_INT8_TO_INT32, DType::kI8, 32U},
        std::tuple{RKNN_INT4_MM_INT4_TO_INT16, DType::kI4, 64U}})
    for (const auto& [k, n] : {std::pair{1, 1}, std::pair{33, 65}, std::pair{8195, 3}}) {
      auto info = product_info(type, 0, 0, 0);
      device::MatmulDesc from;
      from.m = 1;
      from.k = k;
      from.n = n;
      from.a = DType::kF16;
      from.b = dtype;
      device::MatmulDesc to = from;
      to.b_layout = device::MatmulLayoutB::kNative;
      to.b_block_n = block_n;
      to.b_block_k = 32;
      to.k_segment = 8192;
      ByteVector normal(dtype_bytes(dtype, Product::size(k) * Product::size(n)));
      std::mt19937 random(7);
      for (std::byte& byte : normal) byte = static_cast<std::byte>(random());
      ByteVector expected(native_b_bytes(to));
      ByteVector made(expected.size(), std::byte{0xA5});
      ASSERT_TRUE(device::relayout_b(from, normal, to, expected).ok());
      ASSERT_EQ(rknn_B_normal_layout_to_native_layout(normal.data(), made.data(), k, n, &info), 0);
      EXPECT_EQ(made, expected) << "type " << type << " K " << k << " N " << n;
    }
}

TEST(RknnMatmulProduct, Int4PutsTheEvenElementInTheLowNibble) {
  auto info = product_info(RKNN_INT4_MM_INT4_TO_INT16, 0, 0, 0);
  std::vector<std::uint8_t> normal(32 * 64 / 2, 0);
  normal[0] = 0x21;  // B(0, 0) = 1, B(0, 1) = 2
  std::vector<std::uint8_t> native(normal.size(), 0xFF);
  ASSERT_EQ(rknn_B_normal_layout_to_native_layout(normal.data(), native.data(), 32, 64, &info),
            RKNN_SUCC);
  EXPECT_EQ(native[0], 0x01);   // n 0, k 0
  EXPECT_EQ(native[16], 0x02);  // n 1, k 0
}

TEST(RknnMatmulProduct, TheWayToNativeBRefusesWhatItCannotDo) {
  auto info = product_info(RKNN_INT8_MM_INT8_TO_INT32, 0, 0, 0);
  std::vector<std::int8_t> in(1024), out(1024);
  const auto code = [&](void* from, void* to, int k, int n, rknn_matmul_info* with) {
    return rknn_B_normal_layout_to_native_layout(from, to, k, n, with);
  };
  EXPECT_EQ(code(nullptr, out.data(), 32, 32, &info), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(code(in.data(), nullptr, 32, 32, &info), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(code(in.data(), out.data(), 32, 32, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(code(in.data(), out.data(), 0, 32, &info), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(code(in.data(), out.data(), 32, -1, &info), RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(log_of([&] {
                EXPECT_EQ(code(in.data(), in.data() + 100, 32, 32, &info), RKNN_ERR_PARAM_INVALID);
              }),
              HasSubstr("B_output lies over B_input"));
  info.type = static_cast<rknn_matmul_type>(99);
  EXPECT_EQ(code(in.data(), out.data(), 32, 32, &info), RKNN_ERR_PARAM_INVALID);
}

}  // namespace
}  // namespace corelane::rknn
