#include "adapters/ggml/plugin/ggml_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace corelane::ggml {
namespace {

std::size_t available_in(const char* text, std::size_t total) {
  const std::string path = testing::TempDir() + "ggml_meminfo";
  std::ofstream(path) << text;
  return available_memory(path.c_str(), total);
}

TEST(PluginMemory, FreeIsWhatProgramsCanHaveRatherThanWhatLiesIdle) {
  const char* const text =
      "MemTotal:        8000 kB\nMemFree:          100 kB\nMemAvailable:    6000 kB\nBuffers: 1 "
      "kB\n";
  EXPECT_EQ(available_in(text, 8000 * 1024), 6000U * 1024);
  EXPECT_EQ(available_in(text, 1000), 1000U) << "never more than there is";
}

TEST(PluginMemory, AllIsFreeWhereTheSystemDoesNotSay) {
  EXPECT_EQ(available_in("MemTotal: 8000 kB\nMemFree: 100 kB\n", 4096), 4096U);
  EXPECT_EQ(available_in("", 4096), 4096U);
  EXPECT_EQ(available_memory("/nowhere/meminfo", 4096), 4096U);
}

}  // namespace
}  // namespace corelane::ggml
