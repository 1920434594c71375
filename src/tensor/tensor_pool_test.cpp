#include "tensor/tensor_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace corelane {
namespace {

constexpr std::int64_t kFloats = TensorPool::kFrom / sizeof(float);

Tensor tensor_of(TensorPool& pool, std::int64_t floats) {
  auto made = pool.allocate("y", DType::kF32, Shape{floats});
  EXPECT_TRUE(made) << made.error().to_string();
  return std::move(*made);
}

TEST(TensorPool, MemoryThatAUserFreedServesTheNextTensorOfTheSize) {
  TensorPool pool;
  Tensor first = tensor_of(pool, kFloats);
  EXPECT_EQ(first.size, TensorPool::kFrom);
  EXPECT_EQ(first.name, "y");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data.get()) % 64, 0U);
  void* const place = first.data.get();
  {
    const Tensor copy = first;
    first = {};
    EXPECT_EQ(pool.idle_bytes(), 0U) << "a copy still uses it";
  }
  EXPECT_EQ(pool.idle_bytes(), TensorPool::kFrom);
  const Tensor larger = tensor_of(pool, kFloats + 1);
  EXPECT_NE(larger.data.get(), place);
  const Tensor second = tensor_of(pool, kFloats);
  EXPECT_EQ(second.data.get(), place);
  EXPECT_EQ(pool.idle_bytes(), 0U);
}

TEST(TensorPool, TheSmallestThatFitsIsTakenAndNoneThatIsFarTooLarge) {
  TensorPool pool;
  const auto place_of = [&](std::int64_t floats) { return tensor_of(pool, floats).data.get(); };
  constexpr std::int64_t kLarge = kFloats * 3 / 2;
  const Tensor held = tensor_of(pool, kFloats);
  void* const large = place_of(kLarge);
  EXPECT_EQ(place_of(kFloats + 1), large);
  EXPECT_EQ(pool.idle_bytes(), kLarge * sizeof(float)) << "its whole memory comes back";
  {
    const Tensor first = tensor_of(pool, kLarge);
    const Tensor second = tensor_of(pool, kFloats + 8);
  }
  EXPECT_EQ(place_of(kLarge), large);
  EXPECT_NE(place_of(kFloats + 1), large) << "a smaller one fits";
  EXPECT_NE(place_of(kFloats), large);
  TensorPool other;
  void* const far = tensor_of(other, kLarge + 1).data.get();
  EXPECT_NE(tensor_of(other, kFloats).data.get(), far) << "a third of it would lie idle";
}

TEST(TensorPool, SmallTensorsAreTheHeaps) {
  TensorPool pool;
  tensor_of(pool, kFloats - 1) = {};
  EXPECT_EQ(pool.idle_bytes(), 0U);
  EXPECT_EQ(pool.allocate("y", DType::kF32, Shape{Shape::kOpen}).error().code(),
            Code::kInvalidArgument);
}

TEST(TensorPool, KeepsABoundedAmount) {
  TensorPool pool;
  {
    std::vector<Tensor> many;
    for (std::size_t i = 0; i < 2 * TensorPool::kMostIdleBlocks; ++i)
      many.push_back(tensor_of(pool, kFloats));
  }
  EXPECT_EQ(pool.idle_bytes(), TensorPool::kMostIdleBlocks * TensorPool::kFrom);
  {
    const auto large = static_cast<std::int64_t>(TensorPool::kMostIdleBytes / sizeof(float));
    tensor_of(pool, large) = {};
    EXPECT_EQ(pool.idle_bytes(), TensorPool::kMostIdleBytes) << "all the others went";
    tensor_of(pool, large + 1) = {};
    EXPECT_EQ(pool.idle_bytes(), TensorPool::kMostIdleBytes) << "too large to be kept";
  }
}

TEST(TensorPool, TensorsOutliveThePool) {
  Tensor tensor;
  {
    TensorPool pool;
    tensor = tensor_of(pool, kFloats);
  }
  std::memset(tensor.data.get(), 1, tensor.size);
}

TEST(TensorPool, ThreadsNeverShareMemory) {
  TensorPool pool;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const Tensor tensor = tensor_of(pool, kFloats + i % 3);
        auto* const bytes = static_cast<unsigned char*>(tensor.data.get());
        std::memset(bytes, t, tensor.size);
        for (std::size_t k = 0; k < tensor.size; k += 4096)
          if (bytes[k] != t) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace corelane
