// Each kernel on each instruction set that this CPU has, against the plain loop.
#include "drivers/virtual/matmul/matmul_kernels.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "corelane/tensor/convert.h"

namespace corelane::drivers::virtual_npu {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 2, 7, 15, 16, 17, 63, 130, 1000};

class MatmulKernels : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

  std::vector<std::int8_t> bytes(std::size_t count) {
    std::vector<std::int8_t> values(count);
    for (auto& value : values) value = static_cast<std::int8_t>(random_());
    return values;
  }
  std::vector<std::int32_t> sums(std::size_t count, int bits) {
    std::vector<std::int32_t> values(count);
    for (auto& value : values) value = static_cast<std::int32_t>(random_()) >> (32 - bits);
    return values;
  }

  std::mt19937 random_{1};
};

TEST_P(MatmulKernels, NibblesAreUnpackedFromAnyOffset) {
  const auto packed = bytes(600);
  const auto* nibbles = reinterpret_cast<const std::uint8_t*>(packed.data());
  for (const std::size_t first : {0U, 1U, 6U, 33U})
    for (const std::size_t count : kCounts) {
      std::vector<std::int8_t> out(count + 1, 99);
      unpack_i4(nibbles, first, count, out.data());
      for (std::size_t i = 0; i < count; ++i) {
        const int nibble = nibbles[(first + i) / 2] >> ((first + i) % 2 * 4) & 15;
        ASSERT_EQ(out[i], nibble < 8 ? nibble : nibble - 16) << i;
      }
      ASSERT_EQ(out[count], 99);
    }
}

TEST_P(MatmulKernels, FewRowsOfBytesByQuadsAreExact) {
  if (!can_multiply_quads()) GTEST_SKIP() << "this CPU has no sums of four products";
  for (const std::size_t k : {1U, 4U, 33U, 64U, 200U})
    for (const std::size_t n : {1U, 16U, 64U, 65U, 150U})
      for (const std::size_t rows : {1U, 3U, 4U, 5U}) {
        auto a = bytes(rows * k);
        const auto b = bytes(k * n);
        std::fill_n(a.begin(), std::min<std::size_t>(k, 4), std::int8_t{-128});
        const std::size_t panels = (n + kQuadColumns - 1) / kQuadColumns;
        std::vector<std::int8_t> packed(panels * quads_of(k) * 4 * kQuadColumns);
        std::vector<std::int32_t> column_sums(n);
        for (std::size_t i = 0; i < k; ++i)
          for (std::size_t j = 0; j < n; ++j) {
            const std::size_t quad = j / kQuadColumns * quads_of(k) + i / 4;
            packed[(quad * kQuadColumns + j % kQuadColumns) * 4 + i % 4] = b[i * n + j];
            column_sums[j] += b[i * n + j];
          }
        std::vector<std::int32_t> quads(rows * quads_of(k), 7);
        for (std::size_t row = 0; row < rows; ++row)
          quads_i8(a.data() + row * k, k, quads.data() + row * quads_of(k));
        std::vector<std::int32_t> c(rows * n + 1, 99);
        multiply_quads({quads.data(), packed.data(), column_sums.data(), c.data(), rows, k, n}, 0,
                       panels);
        for (std::size_t row = 0; row < rows; ++row)
          for (std::size_t j = 0; j < n; ++j) {
            std::int32_t sum = 0;
            for (std::size_t i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + j];
            ASSERT_EQ(c[row * n + j], sum) << k << " " << n << " " << row << " " << j;
          }
        ASSERT_EQ(c.back(), 99);
      }
}

TEST_P(MatmulKernels, HalvesAreWidened) {
  for (const std::size_t count : kCounts) {
    std::vector<std::uint16_t> in(count);
    for (auto& value : in) value = static_cast<std::uint16_t>(random_());
    std::vector<float> out(count + 1, 99);
    widen_f16(in.data(), count, out.data());
    for (std::size_t i = 0; i < count; ++i) {
      const float expected = f16_to_f32(in[i]);
      ASSERT_TRUE(out[i] == expected || (std::isnan(out[i]) && std::isnan(expected))) << in[i];
    }
    ASSERT_EQ(out[count], 99);
  }
}

TEST_P(MatmulKernels, BytesAreSummed) {
  for (const std::size_t count : kCounts) {
    const auto in = bytes(count);
    std::int32_t expected = 0;
    for (const std::int8_t value : in) expected += value;
    EXPECT_EQ(sum_i8(in.data(), count), expected);
    std::vector<std::int32_t> columns(count, 5);
    add_i8(in.data(), count, columns.data());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(columns[i], 5 + in[i]);
  }
}

TEST_P(MatmulKernels, PanelsMultiplyLikeTheDefinition) {
  struct Dimensions {
    std::size_t m, k, n;
  };
  for (const auto& [m, k, n] : {Dimensions{1, 1, 1}, {3, 37, 70}, {9, 64, 16}, {17, 201, 33}})
    for (const int fill : {0, -128, 127}) {
      auto a = bytes(m * k);
      auto b = bytes(k * n);
      if (fill != 0) std::fill(a.begin(), a.end(), std::int8_t{-128});
      if (fill != 0) std::fill(b.begin(), b.end(), static_cast<std::int8_t>(fill));
      const std::size_t pairs = (k + 1) / 2;
      std::vector<std::int32_t> paired(m * pairs);
      for (std::size_t i = 0; i < m; ++i) pair_i8(a.data() + i * k, k, paired.data() + i * pairs);
      std::vector<std::int8_t> panels(panels_of(n) * panel_bytes(k));
      for (std::size_t i = 0; i < k; ++i)
        for (std::size_t j = 0; j < n; ++j)
          panels[j / 16 * panel_bytes(k) + (i / 2 * 16 + j % 16) * 2 + i % 2] = b[i * n + j];
      std::vector<std::int32_t> c(m * n + 1, 99);
      multiply_i8({paired.data(), panels.data(), c.data(), m, k, n}, 0, panels_of(n));
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          std::int32_t sum = 0;
          for (std::size_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
          ASSERT_EQ(c[i * n + j], sum) << i << ", " << j;
        }
      ASSERT_EQ(c[m * n], 99);
    }
}

TEST_P(MatmulKernels, FewRowsMultiplyLikeTheDefinition) {
  struct Dimensions {
    std::size_t m, k, n;
  };
  for (const auto& [m, k, n] : {Dimensions{1, 1, 1}, {2, 37, 70}, {4, 70, 64}, {3, 33, 130}})
    for (const int kind : {0, 1, 2}) {  // Halves, bytes, bytes with zero points.
      const std::size_t padded = lean_columns(n);
      const std::size_t group = kind == 0 ? 0 : 32;
      std::vector<float> a(m * k);
      for (float& value : a) value = static_cast<float>(static_cast<int>(random_() % 9) - 4);
      std::vector<std::int8_t> small(padded * k);
      std::vector<std::uint16_t> halves(padded * k);
      std::vector<float> b(k * n);
      std::vector<float> scales(2 * padded * k, 0.5F);
      std::vector<std::int32_t> zeros(scales.size(), 3);
      for (std::size_t i = 0; i < k; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          const auto value = static_cast<std::int8_t>(static_cast<int>(random_() % 31) - 15);
          const std::size_t at = (j / 64 * k + i) * 64 + j % 64;
          small[at] = value;
          halves[at] = f32_to_f16(value);
          b[i * n + j] = kind == 0 ? value : 0.5F * static_cast<float>(value - (kind == 2 ? 3 : 0));
        }
      MultiplyLean product;
      product.a = a.data();
      product.panels = kind == 0 ? static_cast<const void*>(halves.data()) : small.data();
      std::vector<float> c(m * n + 1, 99);
      product.c = c.data();
      product.rows = m;
      product.k = k;
      product.n = n;
      product.halves = kind == 0;
      product.group = group;
      product.scales = kind == 0 ? nullptr : scales.data();
      product.zeros = kind == 2 ? zeros.data() : nullptr;
      multiply_lean(product, 0, padded / 64);
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          float sum = 0;
          for (std::size_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
          ASSERT_EQ(c[i * n + j], sum) << kind << ": " << i << ", " << j;
        }
      ASSERT_EQ(c[m * n], 99);
    }
}

TEST_P(MatmulKernels, SumsBecomeC) {
  for (const std::size_t count : kCounts) {
    const auto add = sums(count + kFinishSlack, 20);
    const auto zero = sums(count + kFinishSlack, 5);
    std::vector<double> factors(count + kFinishSlack);
    for (double& factor : factors) factor = 1e-6 * (1 + static_cast<double>(random_() % 1000));
    const std::vector<float> float_factors(factors.begin(), factors.end());
    for (const bool corrected : {false, true}) {
      const auto in = sums(count, 24);
      FinishRow row;
      row.sums = in.data();
      row.count = count;
      row.factor = 0.25;
      row.zero_point = -3;
      if (corrected) {
        row.add = add.data();
        row.zero = zero.data();
        row.row_sum = 777;
        row.factors = factors.data();
        row.float_factors = float_factors.data();
      }
      std::vector<std::int32_t> i32(count + 1, 99);
      std::vector<std::int16_t> i16(count + 1, 99);
      std::vector<std::int8_t> i8(count + 1, 99);
      std::vector<float> f32(count + 1, 99);
      finish_i32(row, i32.data());
      finish_i16(row, i16.data());
      finish_i8(row, i8.data());
      finish_f32(row, f32.data());
      for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t s = in[i] + (corrected ? add[i] - zero[i] * 777 : 0);
        const double factor = corrected ? factors[i] : 0.25;
        ASSERT_EQ(i32[i], s);
        ASSERT_EQ(i16[i], std::clamp(s, -32768, 32767));
        ASSERT_EQ(i8[i], std::clamp(std::nearbyint(s * factor) - 3, -128.0, 127.0));
        ASSERT_EQ(f32[i], static_cast<float>(s) * static_cast<float>(factor));
      }
      ASSERT_TRUE(i32[count] == 99 && i16[count] == 99 && i8[count] == 99 && f32[count] == 99);
    }
  }
}

TEST_P(MatmulKernels, FloatsBecomeC) {
  for (const std::size_t count : kCounts) {
    std::vector<float> in(count);
    for (float& value : in) value = static_cast<float>(static_cast<int>(random_() % 4001) - 2000);
    FinishRow row;
    row.sums = in.data();
    row.count = count;
    row.factor = 0.125;
    row.zero_point = 4;
    std::vector<std::int8_t> i8(count + 1, 99);
    scale_f32_to_i8(row, i8.data());
    const std::vector<float> before = in;
    scale_f32(row, in.data());  // In place.
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(in[i], before[i] * 0.125F);
      ASSERT_EQ(i8[i], std::clamp(std::nearbyint(before[i] * 0.125) + 4, -128.0, 127.0));
    }
    ASSERT_EQ(i8[count], 99);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, MatmulKernels, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& param) {
                           return std::string(hwy::TargetName(param.param));
                         });

}  // namespace
}  // namespace corelane::drivers::virtual_npu
