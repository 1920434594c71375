#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "corelane/device/device.h"
#include "smoke_support.h"

extern char** environ;

namespace corelane {
namespace {

namespace fs = std::filesystem;
using namespace testing;

std::string cached_model() { return affine_model(32, 7); }

class SmokeCache : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("corelane-smoke-cache-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    if (const char* old = std::getenv("CORELANE_CACHE_DIR")) old_ = old;
    ::setenv("CORELANE_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::setenv("CORELANE_CACHE_DIR", old_.c_str(), 1);
    if (old_.empty()) ::unsetenv("CORELANE_CACHE_DIR");
    fs::remove_all(folder_);
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> files;
    for (const auto& e : fs::directory_iterator(folder_ / "programs")) files.push_back(e.path());
    return files;
  }
  fs::path folder_;
  std::string old_;
};

Program load_cached(std::shared_ptr<device::Device> device) {
  LoadOptions options = on(std::move(device));
  options.cache = true;
  return load(cached_model(), options);
}

bool runs_right(const Program& program) {
  Context context = program.new_context().value();
  const std::vector<float> x(32, 2);
  return context.set_input(0, in_view(x, Shape{32})).ok() && context.run().ok() &&
         floats_of(context.output(0).value()) == std::vector<float>(32, 15);
}

TEST_F(SmokeCache, SecondLoadComesPrecompiledFromTheCache) {
  const Program cold = load_cached(own_device());
  EXPECT_FALSE(cold.precompiled());
  EXPECT_TRUE(runs_right(cold));
  const Program warm = load_cached(own_device());
  EXPECT_TRUE(warm.precompiled());
  EXPECT_TRUE(runs_right(warm));
  EXPECT_EQ(entries().size(), 1U);
}

TEST_F(SmokeCache, TheFirstLoadReadsItsConstantsInTheEntryAsLaterOnesDo) {
  const auto is_mapped = [&] {
    std::ifstream maps("/proc/self/maps");
    const std::string all((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
    return all.find(folder_.string()) != std::string::npos;
  };
  EXPECT_FALSE(is_mapped());
  const Program cold = load_cached(own_device());
  EXPECT_TRUE(is_mapped());
  // As a user who clears the cache does.
  fs::remove_all(folder_);
  EXPECT_TRUE(runs_right(cold));
}

TEST_F(SmokeCache, WhatNoEngineTakesLeavesNoEntry) {
  const std::string strange = OnnxBuilder()
                                  .input("x", {4})
                                  .output("y", {4})
                                  .node("NoSuchThing", {"x"}, {"y"}, "com.microsoft")
                                  .build("strange");
  LoadOptions options = on(own_device());
  options.cache = true;
  const auto program = Program::load(as_byte_span(strange), options);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kUnsupportedModel);
  EXPECT_TRUE(entries().empty());
}

TEST_F(SmokeCache, ADamagedEntryIsIgnoredAndRewritten) {
  ASSERT_TRUE(runs_right(load_cached(own_device())));
  const fs::path entry = entries().at(0);
  {
    std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-9, std::ios::end);
    file.put('\x55');
  }
  const Program damaged = load_cached(own_device());
  EXPECT_FALSE(damaged.precompiled());
  EXPECT_TRUE(runs_right(damaged));
  EXPECT_TRUE(load_cached(own_device()).precompiled());
}

// Run by the next test in processes of their own.
TEST(SmokeCacheChild, DISABLED_LoadsAndRuns) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(runs_right(load_cached(own_device())));
}

TEST_F(SmokeCache, ConcurrentProcessesAllGetAWholeProgram) {
  const std::string self = fs::read_symlink("/proc/self/exe");
  std::string filter = "--gtest_filter=SmokeCacheChild.*";
  std::string also = "--gtest_also_run_disabled_tests";
  std::string brief = "--gtest_brief=1";
  char* arguments[] = {const_cast<char*>(self.c_str()), filter.data(), also.data(), brief.data(),
                       nullptr};
  std::vector<pid_t> children(4);
  for (pid_t& child : children)
    ASSERT_EQ(::posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, environ), 0);
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(entries().size(), 1U);
  EXPECT_TRUE(load_cached(own_device()).precompiled());
}

}  // namespace
}  // namespace corelane
