#include "corelane/base/large_bytes.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

namespace corelane {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

bool begins_at_multiple_of(std::size_t n, const LargeBytes& bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % n == 0;
}

bool all_are(std::byte value, const LargeBytes& bytes) {
  return std::ranges::all_of(bytes, [&](std::byte b) { return b == value; });
}

TEST(LargeBytes, AnySizeIsAlignedForVectorInstructions) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, kHugePage - 1, kHugePage,
                                 kHugePage + 1, 3 * kHugePage + 5000}) {
    LargeBytes bytes(size, std::byte{7});
    EXPECT_TRUE(begins_at_multiple_of(64, bytes)) << size;
    EXPECT_TRUE(all_are(std::byte{7}, bytes)) << size;
    const LargeBytes copy = bytes;
    const LargeBytes moved = std::move(bytes);
    EXPECT_EQ(copy, moved) << size;
  }
}

TEST(LargeBytes, NewMemoryThatIsLargeIsOfHugePagesAndGoesBackToTheSystem) {
  // Larger than what any test before has left on the heap.
  const std::size_t size = 64 * kHugePage + 1;
  auto bytes = std::make_unique<LargeBytes>(size);
  EXPECT_TRUE(begins_at_multiple_of(kHugePage, *bytes));
  std::byte* const memory = bytes->data();
  memory[0] = memory[size - 1] = std::byte{1};
  unsigned char page = 0;
  EXPECT_EQ(::mincore(memory, 1, &page), 0);
  bytes.reset();
  EXPECT_NE(::mincore(memory, 1, &page), 0) << "nothing is mapped there any more";
}

TEST(LargeBytes, GrowsWithItsContent) {
  LargeBytes bytes(1000, std::byte{1});
  bytes.resize(2 * kHugePage, std::byte{1});
  bytes.resize(5 * kHugePage, std::byte{1});
  EXPECT_TRUE(all_are(std::byte{1}, bytes));
  bytes.shrink_to_fit();
  bytes.resize(10);
  bytes.shrink_to_fit();
  EXPECT_TRUE(all_are(std::byte{1}, bytes));
}

TEST(LargeBytes, WhatNoMachineHasIsAFailedAllocation) {
  EXPECT_THROW(LargeBytes(SIZE_MAX / 4), std::bad_alloc);
  LargeAllocator<std::uint64_t> numbers;
  EXPECT_THROW(static_cast<void>(numbers.allocate(SIZE_MAX / 4)), std::bad_array_new_length);
  EXPECT_THROW(detail::take_large(SIZE_MAX), std::bad_alloc);
}

}  // namespace
}  // namespace corelane
