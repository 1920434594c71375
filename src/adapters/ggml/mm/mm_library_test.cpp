#include "adapters/ggml/mm/mm_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace corelane::ggml {
namespace {

using testing::HasSubstr;
using testing::Not;

/// One line that says what to do.
void expect_line(const std::string& why) {
  EXPECT_THAT(why, HasSubstr("GGML_RKNN_LIBRARY"));
  EXPECT_THAT(why, Not(HasSubstr("\n")));
}

TEST(MmLibrary, OursHasAllFunctions) {
  std::string why;
  const auto library = RknnLibrary::open(RKNNRT_FILE, why);
  ASSERT_NE(library, nullptr) << why;
  EXPECT_EQ(library->name, RKNNRT_FILE);
  EXPECT_NE(library->call.matmul_run, nullptr);
}

TEST(MmLibrary, OneThatIsNotThereIsNamed) {
  std::string why;
  EXPECT_EQ(RknnLibrary::open("/nowhere/librknnrt.so", why), nullptr);
  EXPECT_THAT(why, HasSubstr("cannot load /nowhere/librknnrt.so"));
  expect_line(why);
}

TEST(MmLibrary, ABrokenFileIsNamed) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("broken_" + std::to_string(getpid()) + "_librknnrt.so");
  std::ofstream(path) << "\x7f"
                      << "ELF, but no more";
  std::string why;
  EXPECT_EQ(RknnLibrary::open(path.string(), why), nullptr);
  std::filesystem::remove(path);
  EXPECT_THAT(why, HasSubstr(path.string()));
  expect_line(why);
}

TEST(MmLibrary, OneWithoutMatmulFunctionsIsRefusedByTheFirstThatIsMissing) {
  std::string why;
  EXPECT_EQ(RknnLibrary::open("libm.so.6", why), nullptr);
  EXPECT_THAT(why, HasSubstr("libm.so.6 has no function rknn_matmul_create_dynamic_shape"));
  expect_line(why);
}

}  // namespace
}  // namespace corelane::ggml
