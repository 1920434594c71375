#include "drivers/virtual/common/heap_growth.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace corelane::drivers::virtual_npu {
namespace {

/// Clang leaves out an allocation that nobody reads.
std::unique_ptr<char[]> filled(std::size_t size) {
  auto block = std::make_unique<char[]>(size);
  std::memset(block.get(), 1, size);
  asm volatile("" : : "r"(block.get()) : "memory");
  return block;
}

/// To read the exact size took a millisecond for each load and first run in a process that has run
/// for long.
TEST(HeapGrowth, IsToldByPagesOnceTheHeapIsInManyPieces) {
  constexpr std::size_t kLarge = std::size_t{64} << 20;
  std::vector<std::unique_ptr<char[]>> pieces(100000);
  for (auto& piece : pieces) piece = std::make_unique<char[]>(700);
  const std::size_t whole = heap_bytes();
  if (whole < pieces.size() * 700) GTEST_SKIP() << "this build has a heap of its own";
  for (std::size_t i = 0; i < pieces.size(); i += 2) pieces[i].reset();
  const std::size_t last_exact = heap_bytes();
  EXPECT_LT(last_exact, whole);
  // The same measure goes on: no step where the way of measuring changes.
  EXPECT_NEAR(static_cast<double>(heap_bytes()), static_cast<double>(last_exact), 4 << 20);
  const HeapGrowth growth;
  const auto large = filled(kLarge);
  EXPECT_NEAR(static_cast<double>(growth.bytes()), static_cast<double>(kLarge), 4 << 20);
  // What lies in pieces that were free takes no page more: this is what the estimate does not see.
  const std::size_t before = heap_bytes();
  const auto small = filled(600);
  EXPECT_NEAR(static_cast<double>(heap_bytes()), static_cast<double>(before), 1 << 20);
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
