// Program files, one of them of several networks, cut at every byte.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "corelane/base/file.h"
#include "outcome.h"
#include "program/testing/program_surgery.h"
#include "program/testing/random_program.h"

namespace corelane::robustness {
namespace {

std::vector<ByteVector> some_programs() {
  std::vector<ByteVector> files;
  for (const std::uint64_t seed : {3, 14, 15}) {
    files.push_back(testing::sample_program(seed));
    EXPECT_GT(files.back().size(), 500U);
    EXPECT_TRUE(open_and_judge(files.back()));
  }
  files.push_back(testing::sample_parts(3));
  EXPECT_TRUE(open_and_judge(files.back()));
  return files;
}

TEST(ProgramTruncation, IsAnErrorAtEveryByte) {
  for (const ByteVector& file : some_programs()) {
    for (std::size_t n = 0; n < file.size(); ++n) {
      const ByteVector cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
      ASSERT_FALSE(open_and_judge(cut, Verify::kHeader)) << n << " of " << file.size();
    }
  }
}

TEST(ProgramTruncation, IsAnErrorAtEveryByteWhenTheHeaderIsMadeToAgree) {
  for (const ByteVector& file : some_programs()) {
    for (std::size_t n = 0; n < file.size(); ++n) {
      ByteVector cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
      testing::repair_header(cut);
      ASSERT_FALSE(open_and_judge(cut, Verify::kHeader)) << n << " of " << file.size();
    }
  }
}

TEST(ProgramTruncation, IsAnErrorAtEveryByteOfAMappedFile) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("corelane-truncation-" + std::to_string(::getpid()) + ".rknn");
  for (const ByteVector& file : some_programs()) {
    ASSERT_TRUE(write_file_atomic(path, file).ok());
    EXPECT_TRUE(ProgramFile::open(path, Verify::kEverything));
    for (std::size_t n = file.size(); n-- > 0;) {
      std::filesystem::resize_file(path, n);
      const auto opened = ProgramFile::open(path, Verify::kHeader);
      ASSERT_FALSE(opened) << n;
      ASSERT_NE(opened.error().message().find(path.string()), std::string::npos);
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace corelane::robustness
