/// Products on several cores and from several threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "adapters/rknn/matmul/rknn_matmul_test_support.h"

namespace corelane::rknn {
namespace {

using ::testing::HasSubstr;

/// C(M, N) of plain integers, for slices of a larger B.
std::vector<std::int32_t> reference(const std::int8_t* a, const std::int8_t* b, int m, int k,
                                    int n) {
  std::vector<std::int32_t> c(Product::size(m * n));
  for (int i = 0; i < m; ++i)
    for (int x = 0; x < k; ++x)
      for (int j = 0; j < n; ++j) c[Product::size(i * n + j)] += a[i * k + x] * b[x * n + j];
  return c;
}

/// One thread's share: a context on a core of its own, a slice of the block as B, A of all.
struct Share {
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_io_attr io{};
  rknn_tensor_mem* b = nullptr;
  rknn_tensor_mem* c = nullptr;
  std::vector<std::int32_t> expected;
  int wrong = 0;
};

constexpr int kM = 3;
constexpr int kK = 256;
constexpr int kN = 160;

void make_share(Share& share, const rknn_tensor_mem& block, int index, rknn_core_mask mask) {
  rknn_matmul_info info = product_info(kInts, kM, kK, kN);
  ASSERT_EQ(rknn_matmul_create(&share.ctx, &info, &share.io), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_core_mask(share.ctx, mask), RKNN_SUCC);
  share.b = rknn_create_mem_from_fd(share.ctx, block.fd, block.virt_addr, share.io.B.size,
                                    index * kK * kN);
  share.c = rknn_create_mem(share.ctx, share.io.C.size);
  ASSERT_NE(share.b, nullptr);
  ASSERT_EQ(rknn_matmul_set_io_mem(share.ctx, share.b, &share.io.B), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_io_mem(share.ctx, share.c, &share.io.C), RKNN_SUCC);
}

void run_share(Share& share, rknn_tensor_mem* a) {
  for (int round = 0; round < 100; ++round) {
    std::memset(share.c->virt_addr, 0x5A, share.io.C.size);
    // As clients do: A is set again for each layer.
    if (rknn_matmul_set_io_mem(share.ctx, a, &share.io.A) != RKNN_SUCC ||
        rknn_matmul_run(share.ctx) != RKNN_SUCC ||
        std::memcmp(share.c->virt_addr, share.expected.data(), share.io.C.size) != 0)
      ++share.wrong;
  }
}

TEST(RknnMatmulParallel, ThreeContextsOnThreeCoresShareAAndABlockOfB) {
  Product first(product_info(kInts, kM, kK, kN));  // Whose memory they share.
  first.fill(11);
  first.write_a();
  rknn_tensor_mem* block = rknn_create_mem(first.ctx, 3 * kK * kN);
  auto* weights = static_cast<std::int8_t*>(block->virt_addr);
  std::mt19937 random(12);
  for (int i = 0; i < 3 * kK * kN; ++i) weights[i] = static_cast<std::int8_t>(random());
  std::array<Share, 3> shares;
  const rknn_core_mask masks[] = {RKNN_NPU_CORE_0, RKNN_NPU_CORE_1, RKNN_NPU_CORE_2};
  for (int i = 0; i < 3; ++i) {
    make_share(shares[Product::size(i)], *block, i, masks[i]);
    shares[Product::size(i)].expected = reference(
        static_cast<const std::int8_t*>(first.a_mem->virt_addr), weights + i * kK * kN, kM, kK, kN);
  }
  std::vector<std::thread> threads;
  for (Share& share : shares) threads.emplace_back([&] { run_share(share, first.a_mem); });
  for (std::thread& thread : threads) thread.join();
  for (Share& share : shares) {
    EXPECT_EQ(share.wrong, 0);
    EXPECT_EQ(rknn_destroy_mem(share.ctx, share.b), RKNN_SUCC);
    EXPECT_EQ(rknn_destroy_mem(share.ctx, share.c), RKNN_SUCC);
    EXPECT_EQ(rknn_matmul_destroy(share.ctx), RKNN_SUCC);
  }
  EXPECT_EQ(rknn_destroy_mem(first.ctx, block), RKNN_SUCC);
}

TEST(RknnMatmulParallel, EachMaskOfTheChipGivesTheSame) {
  for (const auto& [device, masks] :
       {std::pair{"virtual:rk3588", std::vector<int>{0, 1, 2, 4, 3, 5, 6, 7, 0xffff}},
        std::pair{"virtual:rk3576", std::vector<int>{0, 1, 2, 3, 0xffff}}})
    for (const int mask : masks) {
      const InnerDevice inner(device);
      Product product(product_info(kInts, 7, 512, 192));
      product.fill(5);
      product.write();
      ASSERT_EQ(product.bind(), RKNN_SUCC);
      ASSERT_EQ(rknn_matmul_set_core_mask(product.ctx, static_cast<rknn_core_mask>(mask)), 0);
      ASSERT_EQ(rknn_matmul_run(product.ctx), RKNN_SUCC);
      EXPECT_EQ(product.wrong(), 0) << device << " mask " << mask;
    }
}

TEST(RknnMatmulParallel, MasksThatTheChipLacksAreRefused) {
  const auto refused = [](const char* device, int mask, int code = RKNN_ERR_FAIL) {
    const InnerDevice inner(device);
    Product product(product_info(kInts, 1, 64, 64));
    return log_of([&] {
      EXPECT_EQ(rknn_matmul_set_core_mask(product.ctx, static_cast<rknn_core_mask>(mask)), code);
    });
  };
  EXPECT_THAT(refused("virtual:rk3588", 8), HasSubstr("not support core mask: 8"));
  EXPECT_THAT(refused("virtual:rk3588", RKNN_NPU_CORE_UNDEFINED), HasSubstr("this chip has 3"));
  EXPECT_THAT(refused("virtual:rk3576", 4), HasSubstr("this chip has 2 cores"));
  EXPECT_THAT(refused("virtual:rk3576", 7), HasSubstr("not support core mask: 7"));
  EXPECT_THAT(refused("virtual:rk3566", 8, RKNN_ERR_TARGET_PLATFORM_UNMATCH),
              HasSubstr("this chip has one core"));
  EXPECT_EQ(refused("virtual:rk3566", 2, RKNN_ERR_TARGET_PLATFORM_UNMATCH), "");
}

TEST(RknnMatmulParallel, OneContextFromSeveralThreadsTakesTurns) {
  Product product(product_info(kInts, 3, 128, 64));
  product.fill(6);
  product.write();
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        int code = rknn_matmul_run(product.ctx);
        if (t == 1) code |= rknn_matmul_set_io_mem(product.ctx, product.b_mem, &product.io.B);
        if (t == 2) code |= rknn_mem_sync(product.ctx, product.b_mem, RKNN_MEMORY_SYNC_TO_DEVICE);
        if (t == 3) code |= rknn_matmul_set_core_mask(product.ctx, RKNN_NPU_CORE_0_1);
        failures += code == 0 ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(product.wrong(), 0);
}

TEST(RknnMatmulParallel, DestroyWaitsForTheRunAndLaterOnesAreRefused) {
  for (int round = 0; round < 20; ++round) {
    rknn_matmul_info info = product_info(kInts, 16, 512, 256);
    rknn_matmul_ctx ctx = 0;
    rknn_matmul_io_attr io;
    ASSERT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_SUCC);
    std::array<rknn_tensor_mem*, 3> mems = {rknn_create_mem(ctx, io.A.size),
                                            rknn_create_mem(ctx, io.B.size),
                                            rknn_create_mem(ctx, io.C.size)};
    ASSERT_EQ(rknn_matmul_set_io_mem(ctx, mems[0], &io.A), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_set_io_mem(ctx, mems[1], &io.B), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_set_io_mem(ctx, mems[2], &io.C), RKNN_SUCC);
    std::atomic<bool> started{false};
    int last = 0;
    const std::string lines = log_of([&] {
      std::thread runner([&] {
        while ((last = rknn_matmul_run(ctx)) == RKNN_SUCC) started = true;
      });
      while (!started) std::this_thread::yield();
      EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
      runner.join();
    });
    EXPECT_EQ(last, RKNN_ERR_CTX_INVALID);
    EXPECT_THAT(lines, HasSubstr("was destroyed"));
    for (rknn_tensor_mem* mem : mems) EXPECT_EQ(rknn_destroy_mem(0, mem), RKNN_SUCC);
  }
}

TEST(RknnMatmulParallel, OfSeveralCallersOfDestroyOneGetsIt) {
  rknn_matmul_info info = product_info(kInts, 1, 64, 64);
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_io_attr io;
  ASSERT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_SUCC);
  std::atomic<int> got{0};
  log_of([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] { got += rknn_matmul_destroy(ctx) == RKNN_SUCC ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(got, 1);
}

}  // namespace
}  // namespace corelane::rknn
