/// What must hold of any bytes that are opened: an error with a message, or a program that can be
/// read and written again; and memory in proportion.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "corelane/program/program_file.h"
#include "counted_memory.h"
#include "program/testing/program_copy.h"
#include "program/testing/random_program.h"

namespace corelane::robustness {

inline constexpr std::size_t kMemoryBase = std::size_t{256} << 20;

inline void expect_bounded(const PeakMemory& memory, std::size_t file_size) {
  if (!memory_is_counted()) return;
  EXPECT_LE(memory.bytes(), 2 * file_size + kMemoryBase);
}

/// Writes the program again; the copy says the same.
inline void expect_rewritable(const ProgramFile& file) {
  // A kind that only a later version knows can be read, not written.
  if (!file.verify_segments().ok()) return;
  const auto again = testing::write_again(file);
  if (!again && again.error().code() == Code::kUnsupported) return;
  ASSERT_TRUE(again) << again.error().to_string();
  const auto reopened = ProgramFile::from_bytes(*again, nullptr, Verify::kEverything);
  ASSERT_TRUE(reopened) << reopened.error().to_string();
  EXPECT_TRUE(testing::same_descriptions(**reopened, file));
}

/// Opens bytes that lie in memory of exactly their size, so that a sanitizer sees a read past the
/// end. True when they are a valid program.
inline bool open_and_judge(const ByteVector& bytes, Verify verify = Verify::kEverything) {
  // Not counted: the file itself.
  const std::shared_ptr<std::byte[]> exact(new std::byte[std::max<std::size_t>(bytes.size(), 1)]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const PeakMemory memory;
  const auto file = ProgramFile::from_bytes({exact.get(), bytes.size()}, exact, verify);
  if (file) {
    expect_rewritable(**file);
  } else {
    EXPECT_NE(file.error().code(), Code::kInternal) << file.error().to_string();
    EXPECT_FALSE(file.error().message().empty());
  }
  expect_bounded(memory, bytes.size());
  return file.has_value();
}

}  // namespace corelane::robustness
