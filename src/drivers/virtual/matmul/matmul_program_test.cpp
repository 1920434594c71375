// The arithmetic of matrix products: types, layouts and quantizations against the definition.
#include <gtest/gtest.h>

#include "drivers/virtual/matmul/matmul_reference.h"
#include "drivers/virtual/matmul/matmul_types.h"

namespace corelane::drivers::virtual_npu {
namespace {

using device::MatmulDesc;
using device::MatmulQuantB;

struct Dimensions {
  std::int64_t m;
  std::int64_t k;
  std::int64_t n;
};
constexpr Dimensions kOdd[] = {{1, 1, 1}, {1, 37, 70}, {4, 130, 33}, {5, 96, 130}, {17, 200, 65}};

class MatmulOfTypes : public testing::TestWithParam<std::size_t> {
 protected:
  MatmulTypes types() const { return kMatmulTypes[GetParam()]; }
};

TEST_P(MatmulOfTypes, MatchesTheDefinitionInAllLayoutsAndQuantizations) {
  const auto engine = make_virtual_engine(3);
  int cases = 0;
  for (const auto& [m, k, n] : kOdd)
    for (int layout = 0; layout < 4; ++layout)
      for (const auto kind : {MatmulQuantB::kLayer, MatmulQuantB::kChannel, MatmulQuantB::kGroup})
        for (const bool asymmetric : {false, true}) {
          MatmulDesc desc = matmul_of(types(), m, k, n);
          lay_out_b(desc, layout);
          if (!quantize(desc, kind, asymmetric)) continue;
          if (++cases % 2 == 0) block_a_and_c(desc);
          Product product(desc, static_cast<unsigned>(cases));
          run_product(product, 1 + static_cast<std::size_t>(cases % 3), engine);
          product.check("layout " + std::to_string(layout) + ", quantization " +
                        std::to_string(static_cast<int>(kind)));
          if (HasFatalFailure()) return;
        }
  EXPECT_GE(cases, 16);
}

TEST_P(MatmulOfTypes, LargeSumsAreWithinTheBound) {
  for (const auto& [m, k, n] : {Dimensions{2, 4096, 80}, Dimensions{40, 1000, 300}}) {
    Product product(matmul_of(types(), m, k, n));
    run_product(product, 2);
    product.check("plain");
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MatmulOfTypes, testing::Range(std::size_t{0}, kMatmulTypes.size()),
                         [](const auto& param) {
                           const MatmulTypes types = kMatmulTypes[param.param];
                           return fmt::format("{}_{}_{}", dtype_name(types.a), dtype_name(types.b),
                                              dtype_name(types.c));
                         });

TEST(MatmulProgram, ExtremesOfIntegersAreExact) {
  for (const auto& types : kMatmulTypes) {
    if (types.a == DType::kF16) continue;
    const float low_a = types.a == DType::kI4 ? -8 : -128;
    const float low_b = types.b == DType::kI4 ? -8 : -128;
    Product product(matmul_of(types, 5, 10240, 33));
    for (const auto& [a, b] : {std::pair{low_a, low_b}, std::pair{low_a, -low_b - 1},
                               std::pair{-low_a - 1, low_b}, std::pair{-low_a - 1, -low_b - 1}}) {
      product.fill_with(a, b);
      run_product(product);
      product.check("extremes");
      if (HasFatalFailure()) return;
    }
  }
}

TEST(MatmulProgram, ZeroPointsAtTheExtremesAreExact) {
  MatmulDesc desc = matmul_of({DType::kI8, DType::kI8, DType::kI32}, 3, 32768, 20);
  desc.a_zero_point = -128;
  desc.b_scales = {1};
  desc.b_zero_points = {-128};
  Product product(desc);
  product.fill_with(127, 127);
  run_product(product);
  product.check("zero points");
}

TEST(MatmulProgram, HalvesOfTheOutputScaleRoundToEven) {
  MatmulDesc desc = matmul_of({DType::kI8, DType::kI8, DType::kI8}, 1, 1, 7);
  desc.c_scale = 2;
  Product product(desc);
  product.a = {1};
  product.b = {-5, -3, -1, 1, 3, 5, 7};
  product.store();
  run_product(product);
  const int expected[] = {-2, -2, 0, 0, 2, 2, 4};
  for (std::size_t i = 0; i < 7; ++i)
    EXPECT_EQ(static_cast<int>(product.c_bytes[i]) - (expected[i] < 0 ? 256 : 0), expected[i]);
}

/// The product of the scales is beyond f32.
TEST(MatmulProgram, ZeroTimesLargeScalesIsZero) {
  for (const MatmulTypes& types : {MatmulTypes{DType::kI8, DType::kI8, DType::kF32},
                                   {DType::kI8, DType::kI4, DType::kF16},
                                   {DType::kI8, DType::kI8, DType::kI8}})
    for (const auto kind : {MatmulQuantB::kLayer, MatmulQuantB::kChannel}) {
      MatmulDesc desc = matmul_of(types, 2, 3, 33);
      desc.a_scale = 1e30F;
      desc.b_quant = kind;
      desc.b_scales.assign(desc.b_scale_count(), 1e30F);
      Product product(desc);
      product.fill_with(0, 1);
      run_product(product);
      for (std::size_t i = 0; i < std::size_t{2} * 33; ++i)
        ASSERT_EQ(get_element(product.c_bytes.data(), types.c, i), 0) << dtype_name(types.c);
    }
}

TEST(MatmulProgram, InfinityAndNanOfHalvesPropagate) {
  Product product(matmul_of({DType::kF16, DType::kF16, DType::kF32}, 2, 3, 2));
  product.a = {INFINITY, 1, 1, NAN, 1, 1};
  product.b = {1, 1, 1, 1, 1, 1};
  product.store();
  run_product(product);
  EXPECT_EQ(get_element(product.c_bytes.data(), DType::kF32, 0), INFINITY);
  EXPECT_TRUE(std::isnan(get_element(product.c_bytes.data(), DType::kF32, 2)));
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
