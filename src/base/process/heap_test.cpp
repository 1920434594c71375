#include "base/process/heap.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <vector>

namespace corelane {
namespace {

TEST(Heap, PagesInWhichNothingIsLeftGoBackToTheSystem) {
  if (mallinfo2().arena == 0) GTEST_SKIP() << "the heap is not glibc's, as under a sanitizer";
  constexpr std::size_t kPiece = 16384;  // Too small to be mapped one by one.
  constexpr std::size_t kPieces = 2048;
  std::vector<std::unique_ptr<char[]>> pieces;
  for (std::size_t i = 0; i < kPieces; ++i) pieces.push_back(std::make_unique<char[]>(kPiece));
  // A piece above them keeps the heap's end where it is, so that free() itself gives nothing back.
  const auto above = std::make_unique<char[]>(64);
  pieces.clear();
  const std::size_t kept = mallinfo2().fordblks;
  ASSERT_GE(kept, kPiece * kPieces / 2);
  const auto resident = [] {
    std::size_t pages = 0;
    std::size_t total = 0;
    if (FILE* file = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(file, "%zu %zu", &total, &pages) != 2) pages = 0;
      std::fclose(file);
    }
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  };
  const std::size_t before = resident();
  trim_heap();
  EXPECT_LT(resident() + kPiece * kPieces / 2, before);
}

}  // namespace
}  // namespace corelane
