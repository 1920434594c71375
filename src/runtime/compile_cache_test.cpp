#include "runtime/compile_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "corelane/base/file.h"
#include "corelane/base/log.h"
#include "runtime/testing/fake_program.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::runtime {
namespace {

namespace fs = std::filesystem;
using testing::OnnxBuilder;

class CompileCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("corelane-cache-test-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    log::set_callback(
        [this](log::Level, std::string_view, std::string_view text) { lines_.emplace_back(text); });
  }
  void TearDown() override {
    log::set_callback({});
    fs::remove_all(folder_);
    ::unsetenv("CORELANE_CACHE");
    ::unsetenv("CORELANE_CACHE_LIMIT_MB");
  }
  void age(const fs::path& file, int hours) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  fs::path folder_;
  std::vector<std::string> lines_;
};

ByteVector program() {
  return testing::fake_file(testing::fake_description(testing::one_in_one_out(Shape{1})));
}

TEST_F(CompileCacheTest, StoredEntriesAreFound) {
  const CompileCache cache(folder_, 1 << 20);
  EXPECT_EQ(cache.find("k"), nullptr);
  ASSERT_TRUE(cache.store("k", program()).ok());
  const auto entry = cache.find("k");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->description().name, "fake");
}

TEST_F(CompileCacheTest, DamagedEntryIsLoggedIgnoredAndReplaced) {
  const CompileCache cache(folder_, 1 << 20);
  ByteVector bytes = program();
  bytes.back() ^= std::byte{1};
  ASSERT_TRUE(write_file_atomic(cache.path("k"), bytes).ok());
  EXPECT_EQ(cache.find("k"), nullptr);
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find(cache.path("k").string()), std::string::npos);
  ASSERT_TRUE(cache.store("k", program()).ok());
  EXPECT_NE(cache.find("k"), nullptr);
}

TEST_F(CompileCacheTest, OldestEntriesGoFirstAndUseMakesYoung) {
  const ByteVector bytes = program();
  const CompileCache cache(folder_, bytes.size() * 2 + bytes.size() / 2);
  ASSERT_TRUE(cache.store("a", bytes).ok());
  ASSERT_TRUE(cache.store("b", bytes).ok());
  age(cache.path("a"), 3);
  age(cache.path("b"), 2);
  ASSERT_NE(cache.find("a"), nullptr);
  ASSERT_TRUE(cache.store("c", bytes).ok());
  EXPECT_TRUE(fs::exists(cache.path("a")));
  EXPECT_FALSE(fs::exists(cache.path("b")));
  EXPECT_TRUE(fs::exists(cache.path("c")));
}

TEST_F(CompileCacheTest, EntryAboveTheLimitIsNotStored) {
  const CompileCache cache(folder_, 10);
  EXPECT_TRUE(cache.store("a", program()).ok());
  EXPECT_FALSE(fs::exists(cache.path("a")));
}

TEST_F(CompileCacheTest, LeftoversOfDeadWritersAreRemoved) {
  const ByteVector bytes = program();
  const CompileCache cache(folder_, 1 << 20);
  std::ofstream(folder_ / "k.rknn.tmp1") << "old";
  std::ofstream(folder_ / "k.rknn.tmp2") << "in progress";
  age(folder_ / "k.rknn.tmp1", 2);
  ASSERT_TRUE(cache.store("k", bytes).ok());
  EXPECT_FALSE(fs::exists(folder_ / "k.rknn.tmp1"));
  EXPECT_TRUE(fs::exists(folder_ / "k.rknn.tmp2"));
}

TEST_F(CompileCacheTest, TheEnvironmentSwitchesOffAndLimits) {
  EXPECT_TRUE(CompileCache::from_environment());
  ::setenv("CORELANE_CACHE_LIMIT_MB", "many", 1);
  EXPECT_TRUE(CompileCache::from_environment());
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find("'many'"), std::string::npos);
  ::setenv("CORELANE_CACHE", "0", 1);
  EXPECT_FALSE(CompileCache::from_environment());
}

device::DeviceInfo info() {
  device::DeviceInfo i;
  i.kind = "virtual";
  i.engine = "engine 1";
  i.isa = "isa";
  return i;
}

std::string key_of(const std::string& model, const LoadOptions& options = {},
                   const device::DeviceInfo& i = info()) {
  return compile_key(as_byte_span(model), {}, options, i).value();
}

TEST(CompileKey, EverythingThatChangesTheProgramChangesTheKey) {
  const std::string model = testing::relu_model({4});
  std::vector<std::string> keys{key_of(model), key_of(testing::relu_model({5}))};
  const auto with = [&](auto change) {
    LoadOptions o;
    change(o);
    keys.push_back(key_of(model, o));
  };
  with([](LoadOptions& o) { o.precision = device::Precision::kF16; });
  with([](LoadOptions& o) { o.fast_math = true; });
  with([](LoadOptions& o) { o.profile_layers = true; });
  with([](LoadOptions& o) { o.exposed_values = {"v"}; });
  with([](LoadOptions& o) { o.import.input_shapes["x"] = Shape{4}; });
  with([](LoadOptions& o) { o.import.dims["n"] = 4; });
  with([](LoadOptions& o) { o.import.shape_sets = {{Shape{4}}}; });
  with([](LoadOptions& o) { o.import.mean["x"] = {1}; });
  with([](LoadOptions& o) { o.import.std["x"] = {1}; });
  with([](LoadOptions& o) { o.import.custom_string = "c"; });
  with([](LoadOptions& o) { o.import.custom_operators = {"MyOp"}; });
  with([](LoadOptions& o) { o.import.batch = 2; });
  with([](LoadOptions& o) { o.import.cores = 2; });
  with([](LoadOptions& o) { o.import.io_dtype = DType::kF32; });
  with([](LoadOptions& o) { o.import.refuse_known_wrong = false; });
  auto other = info();
  other.engine = "engine 2";
  keys.push_back(key_of(model, {}, other));
  other = info();
  other.isa = "other";
  keys.push_back(key_of(model, {}, other));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t k = i + 1; k < keys.size(); ++k) EXPECT_NE(keys[i], keys[k]) << i << " " << k;
  }
  EXPECT_EQ(key_of(model), keys[0]);
}

TEST_F(CompileCacheTest, KeyFollowsTheContentOfExternalData) {
  const std::string model = OnnxBuilder()
                                .input("x", {1})
                                .output("y", {1})
                                .external("a", {1}, testing::kOnnxFloat, "w.bin", 0, 4)
                                .node("Add", {"x", "a"}, {"y"})
                                .build();
  const auto key = [&](LoadOptions options = {}) {
    return compile_key(as_byte_span(model), folder_, options, info());
  };
  EXPECT_EQ(key().error().code(), Code::kNotFound);
  std::ofstream(folder_ / "w.bin") << "aaaa";
  const std::string first = key().value();
  EXPECT_EQ(key().value(), first);
  std::ofstream(folder_ / "w.bin") << "bbbb";
  EXPECT_NE(key().value(), first);
  LoadOptions strict;
  strict.import.strict_links = true;
  EXPECT_EQ(key(strict).error().code(), Code::kUnsupported);
}

TEST_F(CompileCacheTest, ExternalDataOutsideTheFolderHaveNoKey) {
  fs::create_directories(folder_ / "models");
  std::ofstream(folder_ / "w.bin") << "aaaa";
  const std::string model =
      OnnxBuilder().external("a", {1}, testing::kOnnxFloat, "../w.bin", 0, 4).build();
  EXPECT_EQ(compile_key(as_byte_span(model), folder_ / "models", {}, info()).error().code(),
            Code::kInvalidArgument);
  fs::create_symlink(folder_ / "w.bin", folder_ / "models" / "link.bin");
  const std::string linked =
      OnnxBuilder().external("a", {1}, testing::kOnnxFloat, "link.bin", 0, 4).build();
  EXPECT_EQ(compile_key(as_byte_span(linked), folder_ / "models", {}, info()).error().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace corelane::runtime
