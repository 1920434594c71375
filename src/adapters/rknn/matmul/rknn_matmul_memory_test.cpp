/// Memory of matrix products: when B is read anew, slices of one block, domains, what is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include "adapters/rknn/matmul/rknn_matmul_test_support.h"
#include "adapters/rknn/memory/rknn_memory.h"

namespace corelane::rknn {
namespace {

using ::testing::HasSubstr;

/// A product whose C shows which B it was computed with: A is the unit matrix, B is all `value`.
struct Revealing : Product {
  Revealing() : Product(product_info(kInts, 32, 32, 32)) {
    for (int i = 0; i < 32; ++i) a[size(i) * 33] = 1;
    write_a();
    b_is(1);
    EXPECT_EQ(bind(), RKNN_SUCC);
  }
  void b_is(int value) { std::memset(b_mem->virt_addr, value, io.B.size); }
  /// Runs and gives what B was.
  int ran_with() {
    EXPECT_EQ(rknn_matmul_run(ctx), RKNN_SUCC);
    return static_cast<const std::int32_t*>(c_mem->virt_addr)[5];
  }
};

TEST(RknnMatmulMemory, AIsReadAtEachRun) {
  Revealing product;
  EXPECT_EQ(product.ran_with(), 1);
  product.a.assign(product.a.size(), 0);
  product.write_a();
  EXPECT_EQ(product.ran_with(), 0);
}

TEST(RknnMatmulMemory, BIsKeptUntilItIsSynchronised) {
  Revealing product;
  EXPECT_EQ(product.ran_with(), 1);
  product.b_is(2);
  EXPECT_EQ(product.ran_with(), 1) << "documented: without a sync the copy stays";
  EXPECT_EQ(rknn_mem_sync(product.ctx, product.b_mem, RKNN_MEMORY_SYNC_FROM_DEVICE), RKNN_SUCC);
  EXPECT_EQ(product.ran_with(), 1);
  EXPECT_EQ(rknn_mem_sync(product.ctx, product.b_mem, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
  EXPECT_EQ(product.ran_with(), 2);
  product.b_is(3);
  EXPECT_EQ(rknn_mem_sync(product.ctx, product.b_mem, RKNN_MEMORY_SYNC_BIDIRECTIONAL), RKNN_SUCC);
  EXPECT_EQ(product.ran_with(), 3);
}

TEST(RknnMatmulMemory, BIsReadAnewWhenItIsSetAgain) {
  Revealing product;
  EXPECT_EQ(product.ran_with(), 1);
  product.b_is(2);
  EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, product.b_mem, &product.io.B), RKNN_SUCC);
  EXPECT_EQ(product.ran_with(), 2);
}

TEST(RknnMatmulMemory, AnotherContextOfTheSameMemorySeesWhatWasSynchronised) {
  Revealing one;
  Revealing two;
  EXPECT_EQ(rknn_matmul_set_io_mem(two.ctx, one.b_mem, &two.io.B), RKNN_SUCC);
  EXPECT_EQ(one.ran_with(), 1);
  EXPECT_EQ(two.ran_with(), 1);
  one.b_is(4);
  EXPECT_EQ(rknn_mem_sync(two.ctx, one.b_mem, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
  EXPECT_EQ(one.ran_with(), 4);
  EXPECT_EQ(two.ran_with(), 4);
}

TEST(RknnMatmulMemory, NewMemoryAtAnOldAddressIsNew) {
  Revealing product;
  EXPECT_EQ(product.ran_with(), 1);
  for (int value = 2; value < 6; ++value) {
    EXPECT_EQ(rknn_destroy_mem(product.ctx, product.b_mem), RKNN_SUCC);
    product.b_mem = rknn_create_mem(product.ctx, product.io.B.size);
    product.b_is(value);
    EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, product.b_mem, &product.io.B), RKNN_SUCC);
    EXPECT_EQ(product.ran_with(), value);
  }
}

TEST(RknnMatmulMemory, OfTheLibraryOutlivesItsStructWhileItIsBound) {
  Revealing product;
  EXPECT_EQ(rknn_destroy_mem(product.ctx, product.b_mem), RKNN_SUCC);
  product.b_mem = nullptr;
  EXPECT_EQ(product.ran_with(), 1);
}

TEST(RknnMatmulMemory, OfTheCallerIsNotTouchedAfterItsStructWasDestroyed) {
  Revealing product;
  const int fd = memfd_create("block", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  void* block = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 3, 4096);
  rknn_tensor_mem* mem = rknn_create_mem_from_fd(product.ctx, fd, block, 4096, 0);
  ASSERT_NE(mem, nullptr);
  EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, mem, &product.io.B), RKNN_SUCC);
  EXPECT_EQ(product.ran_with(), 3);
  EXPECT_EQ(rknn_destroy_mem(product.ctx, mem), RKNN_SUCC);
  munmap(block, 4096);
  close(fd);
  EXPECT_THAT(log_of([&] { EXPECT_EQ(rknn_matmul_run(product.ctx), RKNN_ERR_FAIL); }),
              HasSubstr("mem of B was destroyed by rknn_destroy_mem"));
  EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, product.b_mem, &product.io.B), RKNN_SUCC);
  EXPECT_EQ(product.ran_with(), 1);
}

/// One block, a slice of it as B.
struct Sliced : Revealing {
  static constexpr std::int32_t kOffset = 4096;
  explicit Sliced(bool own_mapping) {
    block = rknn_create_mem(ctx, 3 * kOffset);
    slice = rknn_create_mem_from_fd(ctx, block->fd, own_mapping ? nullptr : block->virt_addr,
                                    io.B.size, kOffset);
    EXPECT_EQ(rknn_matmul_set_io_mem(ctx, slice, &io.B), RKNN_SUCC);
  }
  ~Sliced() {
    EXPECT_EQ(rknn_destroy_mem(ctx, slice), RKNN_SUCC);
    EXPECT_EQ(rknn_destroy_mem(ctx, block), RKNN_SUCC);
  }
  void block_is(int value) { std::memset(block->virt_addr, value, block->size); }
  rknn_tensor_mem* block = nullptr;
  rknn_tensor_mem* slice = nullptr;
};

TEST(RknnMatmulMemory, ASyncOfTheBlockReachesItsSlices) {
  for (const bool own_mapping : {false, true}) {
    Sliced product(own_mapping);
    product.block_is(5);
    EXPECT_EQ(product.ran_with(), 5);
    product.block_is(6);
    EXPECT_EQ(rknn_mem_sync(product.ctx, product.block, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
    EXPECT_EQ(product.ran_with(), 6);
  }
}

TEST(RknnMatmulMemory, ASyncOfAnotherSliceDoesNot) {
  Sliced product(false);
  product.block_is(5);
  EXPECT_EQ(product.ran_with(), 5);
  product.block_is(6);
  for (const std::int32_t offset : {0, 2 * Sliced::kOffset}) {
    rknn_tensor_mem* other = rknn_create_mem_from_fd(product.ctx, product.block->fd,
                                                     product.block->virt_addr, 4096, offset);
    EXPECT_EQ(rknn_mem_sync(product.ctx, other, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
    EXPECT_EQ(product.ran_with(), 5);
    EXPECT_EQ(rknn_destroy_mem(product.ctx, other), RKNN_SUCC);
  }
}

/// Announces bytes of `block` from `offset` on, through memory of its own.
void sync_tail(rknn_context ctx, const rknn_tensor_mem& block, std::int32_t offset) {
  rknn_tensor_mem* tail = rknn_create_mem_from_fd(ctx, block.fd, block.virt_addr, 1024, offset);
  ASSERT_NE(tail, nullptr);
  EXPECT_EQ(rknn_mem_sync(ctx, tail, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(ctx, tail), RKNN_SUCC);
}

TEST(RknnMatmulMemory, AContextThatGoesLeavesTheWatchOfAnotherOnTheSameMemory) {
  Product large(product_info(kInts, 1, 32, 64));
  large.fill(1);
  large.write();
  ASSERT_EQ(large.bind(), RKNN_SUCC);
  {
    Product small(product_info(kInts, 1, 32, 32));
    ASSERT_EQ(rknn_matmul_set_io_mem(small.ctx, large.b_mem, &small.io.B), RKNN_SUCC);
  }
  ASSERT_EQ(rknn_matmul_run(large.ctx), RKNN_SUCC);
  large.fill(2);
  large.write();
  sync_tail(large.ctx, *large.b_mem, 1024);
  ASSERT_EQ(rknn_matmul_run(large.ctx), RKNN_SUCC);
  EXPECT_EQ(large.wrong(), 0);
}

TEST(RknnMatmulMemory, ASyncOfWhatOnlyALargerShapeReadsReachesIt) {
  rknn_matmul_info info = product_info(kInts, 1, 32, 32);
  rknn_matmul_shape shapes[2] = {{1, 32, 32}, {1, 32, 64}};
  rknn_matmul_io_attr io[2];
  rknn_matmul_ctx ctx = 0;
  ASSERT_EQ(rknn_matmul_create_dynamic_shape(&ctx, &info, 2, shapes, io), RKNN_SUCC);
  rknn_tensor_mem* a = rknn_create_mem(ctx, io[1].A.size);
  rknn_tensor_mem* b = rknn_create_mem(ctx, io[1].B.size);
  rknn_tensor_mem* c = rknn_create_mem(ctx, io[1].C.size);
  std::memset(a->virt_addr, 1, a->size);
  std::memset(b->virt_addr, 1, b->size);
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(ctx, &shapes[0]), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, a, &io[0].A), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, b, &io[0].B), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, c, &io[0].C), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(ctx, &shapes[1]), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_run(ctx), RKNN_SUCC);
  const auto* sums = static_cast<const std::int32_t*>(c->virt_addr);
  EXPECT_EQ(sums[63], 32);
  std::memset(static_cast<char*>(b->virt_addr) + 1024, 2, 1024);
  sync_tail(ctx, *b, 1024);
  ASSERT_EQ(rknn_matmul_run(ctx), RKNN_SUCC);
  EXPECT_EQ(sums[63], 48) << "the last 16 of the 32 rows of B are 2";
  for (rknn_tensor_mem* mem : {a, b, c}) EXPECT_EQ(rknn_destroy_mem(ctx, mem), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
}

TEST(RknnMatmulMemory, BTakesTheSizeOfAnySliceThatHoldsIt) {
  Revealing product;
  rknn_tensor_mem* large = rknn_create_mem(product.ctx, product.io.B.size * 2);
  rknn_tensor_mem* small = rknn_create_mem(product.ctx, product.io.B.size - 1);
  EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, large, &product.io.B), RKNN_SUCC);
  EXPECT_THAT(log_of([&] {
                EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, small, &product.io.B),
                          RKNN_ERR_PARAM_INVALID);
              }),
              HasSubstr("mem of B has 1023 bytes"));
  EXPECT_EQ(rknn_destroy_mem(product.ctx, large), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(product.ctx, small), RKNN_SUCC);
}

TEST(RknnMatmulMemory, ElementsLieOnTheirAlignment) {
  Product product(product_info(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, 4, 32, 16));
  rknn_tensor_mem* block = rknn_create_mem(product.ctx, 4096);
  rknn_tensor_mem* odd =
      rknn_create_mem_from_fd(product.ctx, block->fd, block->virt_addr, product.io.A.size, 1);
  EXPECT_THAT(log_of([&] {
                EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, odd, &product.io.A),
                          RKNN_ERR_PARAM_INVALID);
              }),
              HasSubstr("not a multiple of the 2 bytes of an element"));
  EXPECT_EQ(rknn_destroy_mem(product.ctx, odd), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(product.ctx, block), RKNN_SUCC);
}

TEST(RknnMatmulMemory, CLiesOverNeitherANorB) {
  Revealing product;
  rknn_tensor_mem* shared = rknn_create_mem(product.ctx, 4096);
  EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, shared, &product.io.C), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, shared, &product.io.A), RKNN_SUCC);
  EXPECT_THAT(log_of([&] { EXPECT_EQ(rknn_matmul_run(product.ctx), RKNN_ERR_FAIL); }),
              HasSubstr("C lies over A"));
  EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, product.a_mem, &product.io.A), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_set_io_mem(product.ctx, product.c_mem, &product.io.C), RKNN_SUCC);
  EXPECT_EQ(product.ran_with(), 1);
  EXPECT_EQ(rknn_destroy_mem(product.ctx, shared), RKNN_SUCC);
}

TEST(RknnMatmulMemory, CanComeFromAnyContextOrNone) {
  Revealing one;
  Revealing two;
  rknn_tensor_mem* none = rknn_create_mem2(0, 4096, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT);
  EXPECT_EQ(rknn_matmul_set_io_mem(one.ctx, two.a_mem, &one.io.A), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_set_io_mem(one.ctx, none, &one.io.C), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_run(one.ctx), RKNN_SUCC);
  EXPECT_EQ(static_cast<const std::int32_t*>(none->virt_addr)[7], 1);
  EXPECT_EQ(rknn_destroy_mem(0, none), RKNN_SUCC);
}

TEST(RknnMatmulMemory, DomainsHold4Gigabytes) {
  auto info = product_info(RKNN_INT8_MM_INT8_TO_FLOAT32, 4, 64, 64);
  info.iommu_domain_id = 3;
  Product three(info);
  info.iommu_domain_id = 4;
  Product four(info);
  constexpr std::uint32_t kLarge = 1536U << 20;  // Never touched, so it takes no memory.
  rknn_tensor_mem* first = rknn_create_mem(three.ctx, kLarge);
  rknn_tensor_mem* second = rknn_create_mem(three.ctx, kLarge);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_THAT(log_of([&] { EXPECT_EQ(rknn_create_mem(three.ctx, kLarge), nullptr); }),
              HasSubstr("IOMMU domain 3 holds"));
  rknn_tensor_mem* other = rknn_create_mem(four.ctx, kLarge);
  EXPECT_NE(other, nullptr);
  EXPECT_EQ(rknn_destroy_mem(three.ctx, first), RKNN_SUCC);
  first = rknn_create_mem(three.ctx, kLarge);
  EXPECT_NE(first, nullptr);
  for (rknn_tensor_mem* mem : {first, second, other})
    EXPECT_EQ(rknn_destroy_mem(three.ctx, mem), RKNN_SUCC);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

/// Pages of the process that are in memory.
long resident_pages() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long total = 0;
  long resident = 0;
  EXPECT_EQ(std::fscanf(file, "%ld %ld", &total, &resident), 2);
  std::fclose(file);
  return resident;
}

TEST(RknnMatmulMemory, RunsTakeNothingThatTheyDoNotGiveBack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer keeps freed memory for a while, and pages of its own";
#endif
  Product product(product_info(kInts, 4, 64, 64));
  product.fill(1);
  product.write();
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i) {
      int code = 0;
      if (i % 100 == 0)
        code = rknn_mem_sync(product.ctx, product.b_mem, RKNN_MEMORY_SYNC_TO_DEVICE);
      if (i % 100 == 50) code = rknn_matmul_set_io_mem(product.ctx, product.b_mem, &product.io.B);
      ASSERT_EQ(code, 0);
      ASSERT_EQ(rknn_matmul_run(product.ctx), 0);
    }
  };
  run(2000);
  const long pages = resident_pages();
  const std::size_t descriptors = open_descriptors();
  run(20000);
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LE(resident_pages(), pages + 64);
  EXPECT_EQ(product.wrong(), 0);
}

TEST(RknnMatmulMemory, ContextsTakeNothingThatTheyDoNotGiveBack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer keeps freed memory for a while, and pages of its own";
#endif
  const auto once = [] {
    Product product(product_info(kInts, 4, 64, 64));
    ASSERT_EQ(product.bind(), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
  };
  for (int i = 0; i < 1200; ++i) once();  // Structs wait in the quarantine before they are reused.
  const long pages = resident_pages();
  const std::size_t descriptors = open_descriptors();
  for (int i = 0; i < 1000; ++i) once();
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LE(resident_pages(), pages + 128);
  EXPECT_EQ(live_memories(0), 0U);
}

}  // namespace
}  // namespace corelane::rknn
