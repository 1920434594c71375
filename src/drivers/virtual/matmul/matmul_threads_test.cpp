#include "drivers/virtual/matmul/matmul_threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "drivers/virtual/matmul/matmul_reference.h"
#include "drivers/virtual/matmul/matmul_types.h"

// libgomp, as in matmul_threads.cpp.
extern "C" {
int omp_get_dynamic();
void omp_set_dynamic(int);
int omp_get_max_active_levels();
void omp_set_max_active_levels(int);
}

namespace corelane::drivers::virtual_npu {
namespace {

TEST(MatmulThreads, AForkedChildOfAPoolsOwnerTakesOneThread) {
  if (matmul_threads(2) < 2) GTEST_SKIP() << "one CPU";
  Product product(matmul_of(kBytes, 64, 256, 256));
  run_product(product, 2);
  const pid_t child = ::fork();
  if (child == 0) {
    run_product(product, 2);
    product.check("in the child");
    ::_exit(matmul_threads(2) == 1 && !testing::Test::HasFailure() ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(WEXITSTATUS(state), 0);
  EXPECT_EQ(matmul_threads(2), 2U);
}

TEST(MatmulThreads, LibgompStartsAsManyThreadsAsTheProductDividesInto) {
  if (matmul_threads(2) < 2) GTEST_SKIP() << "one CPU";
  const int dynamic = omp_get_dynamic();
  omp_set_dynamic(1);
  {
    const ThreadScope scope(2);
    EXPECT_EQ(omp_get_dynamic(), 0);
  }
  EXPECT_EQ(omp_get_dynamic(), 1);
  omp_set_dynamic(dynamic);
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(0);
  EXPECT_EQ(matmul_threads(2), 1U);
  omp_set_max_active_levels(levels);
  EXPECT_EQ(matmul_threads(2), 2U);
}

TEST(MatmulThreads, EveryPartIsDoneOnce) {
  for (const std::size_t threads : {1U, 2U, 5U}) {
    std::vector<std::atomic<int>> done(1000);
    for_ranges(threads, done.size(), 7, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) ++done[i];
    });
    for (const auto& one : done) ASSERT_EQ(one, 1);
  }
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
