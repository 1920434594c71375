#include "drivers/virtual/matmul/matmul_gemm.h"

#include <gtest/gtest.h>

#include "drivers/virtual/matmul/matmul_kernels.h"
#include "drivers/virtual/matmul/matmul_reference.h"
#include "drivers/virtual/matmul/matmul_threads.h"
#include "drivers/virtual/matmul/matmul_types.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// Widths that fill a vector, a panel and a tile, that leave a rest, and that are less than one.
constexpr std::int64_t kWidths[] = {1, 8, 16, 31, 32, 33, 64, 100, 256, 320, 1000};
constexpr std::int64_t kRowCounts[] = {1, 4, 5, 8, 15, 16, 17, 33, 64, 128};

TEST(MatmulGemm, NoShapeIsLeftToTheReferenceOfOneDnn) {
  // Without these instructions integers are multiplied in panels, and nothing else is asked.
  if (!can_multiply_quads()) GTEST_SKIP() << "no avx512vnni";
  for (const std::size_t threads : {1U, 2U}) {
    const ThreadScope scope(threads);
    for (const std::int64_t k : kWidths)
      for (const std::int64_t n : kWidths)
        for (const std::int64_t m : kRowCounts)
          for (const GemmForm form : {GemmForm::kF32, integer_form(k, n)}) {
            const Gemm gemm(form, m, k, n, threads);
            EXPECT_FALSE(gemm.kernel().starts_with("ref"))
                << gemm.kernel() << " for M " << m << ", K " << k << ", N " << n << " on "
                << threads << " threads" << (form == GemmForm::kF32 ? ", floats" : ", integers");
          }
  }
}

TEST(MatmulGemm, SmallProductsThatOneDnnLeavesToItsReferenceAreRight) {
  for (const std::int64_t n : {1, 7, 16, 32})
    for (const std::int64_t m : {5, 8, 13, 70})
      for (const std::size_t cores : {1U, 2U}) {
        Product product(matmul_of({DType::kI8, DType::kI8, DType::kI32}, m, 255, n),
                        static_cast<unsigned>(m));
        run_product(product, cores);
        product.check("M " + std::to_string(m) + ", N " + std::to_string(n));
      }
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
