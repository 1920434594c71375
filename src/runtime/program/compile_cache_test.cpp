#include "runtime/program/compile_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "corelane/base/file.h"
#include "corelane/base/log.h"
#include "onnx/onnx_import_from.h"
#include "runtime/program/engine_trial.h"
#include "runtime/program/program_load.h"
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
    if (const char* old = std::getenv("CORELANE_CACHE_DIR")) old_directory_ = old;
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    log::set_callback(
        [this](log::Level, std::string_view, std::string_view text) { lines_.emplace_back(text); });
  }
  void TearDown() override {
    log::set_callback({});
    fs::remove_all(folder_);
    if (old_directory_) ::setenv("CORELANE_CACHE_DIR", old_directory_->c_str(), 1);
    if (!old_directory_) ::unsetenv("CORELANE_CACHE_DIR");
    ::unsetenv("CORELANE_CACHE");
    ::unsetenv("CORELANE_CACHE_LIMIT_MB");
  }
  void age(const fs::path& file, int hours) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  fs::path folder_;
  std::vector<std::string> lines_;
  std::optional<std::string> old_directory_;
};

ByteVector program() {
  return testing::fake_file(testing::fake_description(testing::one_in_one_out(Shape{1})));
}

/// A key that begins with this digit.
std::string key(const std::string& digit) { return digit + std::string(31, '0'); }

TEST_F(CompileCacheTest, StoredEntriesAreFound) {
  const CompileCache cache(folder_, 1 << 20);
  EXPECT_EQ(cache.find(key("d")), nullptr);
  ASSERT_TRUE(cache.store(key("d"), program()).ok());
  const auto entry = cache.find(key("d"));
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->description().name, "fake");
}

TEST_F(CompileCacheTest, DamagedEntryIsLoggedIgnoredAndReplaced) {
  const CompileCache cache(folder_, 1 << 20);
  ByteVector bytes = program();
  bytes.back() ^= std::byte{1};
  ASSERT_TRUE(write_file_atomic(cache.path(key("d")), bytes).ok());
  EXPECT_EQ(cache.find(key("d")), nullptr);
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find(cache.path(key("d")).string()), std::string::npos);
  ASSERT_TRUE(cache.store(key("d"), program()).ok());
  EXPECT_NE(cache.find(key("d")), nullptr);
}

TEST_F(CompileCacheTest, OldestEntriesGoFirstAndUseMakesYoung) {
  const ByteVector bytes = program();
  const CompileCache cache(folder_, bytes.size() * 2 + bytes.size() / 2);
  ASSERT_TRUE(cache.store(key("a"), bytes).ok());
  ASSERT_TRUE(cache.store(key("b"), bytes).ok());
  age(cache.path(key("a")), 3);
  age(cache.path(key("b")), 2);
  ASSERT_NE(cache.find(key("a")), nullptr);
  ASSERT_TRUE(cache.store(key("c"), bytes).ok());
  EXPECT_TRUE(fs::exists(cache.path(key("a"))));
  EXPECT_FALSE(fs::exists(cache.path(key("b"))));
  EXPECT_TRUE(fs::exists(cache.path(key("c"))));
}

TEST_F(CompileCacheTest, EntryAboveTheLimitIsNotStored) {
  const CompileCache cache(folder_, 10);
  EXPECT_TRUE(cache.store(key("a"), program()).ok());
  EXPECT_FALSE(fs::exists(cache.path(key("a"))));
}

TEST_F(CompileCacheTest, LeftoversOfDeadWritersAreRemoved) {
  const CompileCache cache(folder_, 1 << 20);
  const std::string name = "." + key("d") + ".rknn.77.0123abcd.0.tmp";
  const std::string young = "." + key("d") + ".rknn.77.0123abcd.1.tmp";
  std::ofstream(folder_ / name) << "old";
  std::ofstream(folder_ / young) << "in progress";
  age(folder_ / name, 2);
  ASSERT_TRUE(cache.store(key("d"), program()).ok());
  EXPECT_FALSE(fs::exists(folder_ / name));
  EXPECT_TRUE(fs::exists(folder_ / young));
}

TEST_F(CompileCacheTest, FilesOfOthersAreNeverRemoved) {
  const ByteVector bytes = program();
  const CompileCache cache(folder_, bytes.size());
  const std::string entry = key("b") + ".rknn";
  const std::vector<std::string> names{"notes.txt",           ".hidden.tmp",
                                       "." + entry + ".tmp2", "mobilenet.rknn",
                                       key("b") + "0.rknn",   "B" + key("b").substr(1) + ".rknn",
                                       entry + ".1.2.tmp"};
  for (const auto& name : names) {
    std::ofstream(folder_ / name) << std::string(bytes.size(), 'x');
    age(folder_ / name, 100);
  }
  fs::create_symlink("notes.txt", folder_ / (key("e") + ".rknn"));
  ASSERT_TRUE(cache.store(key("a"), bytes).ok());
  ASSERT_TRUE(cache.store(key("c"), bytes).ok());
  for (const auto& name : names) EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  EXPECT_TRUE(fs::is_symlink(folder_ / (key("e") + ".rknn")));
  EXPECT_FALSE(fs::exists(cache.path(key("a"))));
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

TEST_F(CompileCacheTest, AFolderThatOthersMayHaveMadeIsNotTrusted) {
  const fs::path shared = folder_ / "shared";
  fs::create_directories(shared);
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);
  const fs::path own = shared / "cache";
  ::setenv("CORELANE_CACHE_DIR", own.c_str(), 1);
  EXPECT_TRUE(CompileCache::from_environment());
  EXPECT_EQ(fs::status(own).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(CompileCache::from_environment());
  EXPECT_TRUE(lines_.empty());

  ASSERT_EQ(::chmod(own.c_str(), 0770), 0);
  EXPECT_FALSE(CompileCache::from_environment());
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find("other users may write"), std::string::npos);
  fs::remove_all(own);
  fs::create_directories(folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", own);
  ::setenv("CORELANE_CACHE_DIR", (own.string() + "/").c_str(), 1);
  EXPECT_FALSE(CompileCache::from_environment());
  if (::geteuid() != 0) return;  // Only root can give a folder away.
  fs::remove(own);
  fs::create_directories(own);
  ASSERT_EQ(::chown(own.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(CompileCache::from_environment());
}

TEST_F(CompileCacheTest, FoldersAndEntriesAreMadeForTheirUserAlone) {
  const fs::path own = folder_ / "made" / "cache";
  ::setenv("CORELANE_CACHE_DIR", own.c_str(), 1);
  const auto cache = CompileCache::from_environment();
  ASSERT_TRUE(cache);
  ASSERT_TRUE(cache->store(key("a"), program()).ok());
  ASSERT_TRUE(cache->keep_note(key("a"), "note").ok());
  for (const fs::path& each : {own, own / "programs"})
    EXPECT_EQ(fs::status(each).permissions(), fs::perms::owner_all) << each;
  for (const fs::path& each : {cache->path(key("a")), own / "programs" / (key("a") + ".note")})
    EXPECT_EQ(fs::status(each).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_EQ(::chmod((own / "programs").c_str(), 0777), 0);
  EXPECT_FALSE(CompileCache::from_environment());
  EXPECT_EQ(lines_.size(), 1U);
}

TEST_F(CompileCacheTest, AnEntryOfAnotherUserHasNoEffect) {
  const CompileCache cache(folder_, 1 << 20);
  ASSERT_TRUE(cache.store(key("a"), program()).ok());
  ASSERT_TRUE(cache.keep_note(key("a"), "note").ok());
  ASSERT_EQ(::chmod(cache.path(key("a")).c_str(), 0666), 0);
  EXPECT_EQ(cache.find(key("a")), nullptr);
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find("other users may write"), std::string::npos);
  ASSERT_TRUE(cache.store(key("a"), program()).ok());
  EXPECT_NE(cache.find(key("a")), nullptr) << "written anew";
  if (::geteuid() != 0) return;  // Only root can give a file away.
  const fs::path note = folder_ / (key("a") + ".note");
  ASSERT_EQ(::chown(cache.path(key("a")).c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chown(note.c_str(), 12345, 12345), 0);
  EXPECT_EQ(cache.find(key("a")), nullptr);
  EXPECT_EQ(cache.note(key("a")), "");
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
  onnx::ExternalData none({}, {}, false);
  return compile_key(as_byte_span(model), none, options, i).value();
}

TEST(CompileKey, TextOfUsersIsNotTakenForAnotherOption) {
  const std::string model = testing::relu_model({4});
  LoadOptions range, text;
  range.import.batch_range = BatchRange{1, 4};
  text.import.custom_string = "\nrange 1 4";
  EXPECT_NE(key_of(model, range), key_of(model, text));
  LoadOptions one, two;
  one.import.partial_inputs = {"a\npartial b"};
  two.import.partial_inputs = {"a", "b"};
  EXPECT_NE(key_of(model, one), key_of(model, two));
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
  with([](LoadOptions& o) { o.import.partial_inputs = {"x"}; });
  with([](LoadOptions& o) { o.import.states = {{"y", "x"}}; });
  with([](LoadOptions& o) { o.import.custom_operators = {"MyOp"}; });
  with([](LoadOptions& o) { o.import.batch = 2; });
  with([](LoadOptions& o) { o.import.batch_range = BatchRange{1, 8}; });
  with([](LoadOptions& o) { o.import.open_batch = 1; });
  with([](LoadOptions& o) { o.import.cores = 2; });
  with([](LoadOptions& o) { o.import.io_dtype = DType::kF32; });
  with([](LoadOptions& o) { o.import.refuse_known_wrong = false; });
  auto other = info();
  other.engine = "engine 2";
  keys.push_back(key_of(model, {}, other));
  other = info();
  other.isa = "other";
  keys.push_back(key_of(model, {}, other));
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t k = i + 1; k < keys.size(); ++k) EXPECT_NE(keys[i], keys[k]) << i << " " << k;
  EXPECT_EQ(key_of(model), keys[0]);
  // What the cache recognises as an entry of its own.
  EXPECT_EQ(keys[0].size(), 32U);
  EXPECT_EQ(keys[0].find_first_not_of("0123456789abcdef"), std::string::npos);
}

/// relu of x [4] through the cache, on a device that begins on engine "b" and has a faster "a".
struct TwoEngines {
  explicit TwoEngines(Duration of_a) {
    testing::FakeConfig config = testing::one_in_one_out({4});
    config.engines = {"a", "b"};
    config.soonest = "b";
    device = std::make_shared<testing::FakeDevice>(config);
    device->run_times = {{"a", of_a}, {"b", std::chrono::microseconds(10)}};
    LoadOptions options;
    options.on = device;
    program = Program::load(as_byte_span(testing::relu_model({4})), options).value();
  }
  void run_until_timed() {
    Context context = program.new_context().value();
    for (std::uint32_t i = 0; i < kRunsBeforeTrial; ++i) ASSERT_TRUE(context.run().ok());
    program.wait_engines();
  }
  std::shared_ptr<testing::FakeDevice> device;
  Program program;
};

TEST_F(CompileCacheTest, TheFasterEngineIsKeptWithWhatItHasCompiled) {
  ::setenv("CORELANE_CACHE_DIR", folder_.c_str(), 1);
  ::setenv("CORELANE_TIME_ENGINES", "1", 1);
  {
    TwoEngines uncached(std::chrono::microseconds(5));
    EXPECT_EQ(uncached.program.engine().engine, "b");
    uncached.run_until_timed();
    EXPECT_EQ(uncached.program.engine().engine, "a");
  }
  {
    const TwoEngines cached(std::chrono::microseconds(5));
    EXPECT_EQ(cached.program.engine().engine, "a");
    EXPECT_EQ(cached.program.engine().why, "measured: 0.50 of the other's time");
    ASSERT_EQ(cached.device->images.size(), 1U);
    EXPECT_FALSE(cached.device->images[0].precompiled.empty());
  }
}

TEST_F(CompileCacheTest, WhereTheSoonestEngineWinsNothingIsCompiledAgain) {
  ::setenv("CORELANE_CACHE_DIR", folder_.c_str(), 1);
  ::setenv("CORELANE_TIME_ENGINES", "1", 1);
  TwoEngines(std::chrono::microseconds(20)).run_until_timed();
  TwoEngines cached(std::chrono::microseconds(20));
  EXPECT_EQ(cached.program.engine().engine, "b");
  cached.run_until_timed();
  EXPECT_EQ(cached.device->prepared.size(), 1U) << "the verdict is known";
}

/// y = x + a, of which "a" lies at `location`.
std::string model_with_external(const std::string& location) {
  return OnnxBuilder()
      .input("x", {1})
      .output("y", {1})
      .external("a", {1}, testing::kOnnxFloat, location, 0, 4)
      .node("Add", {"x", "a"}, {"y"})
      .build();
}

/// The key of the model in the file `path`.
Result<std::string> key_of_file(const fs::path& path, const LoadOptions& options = {}) {
  const MappedFile model = MappedFile::open(path).value();
  onnx::ExternalData external = onnx::external_data_of(path, options.import);
  return compile_key(model.bytes(), external, options, info());
}

TEST_F(CompileCacheTest, KeyFollowsTheContentOfExternalData) {
  const fs::path path = folder_ / "model.onnx";
  std::ofstream(path) << model_with_external("w.bin");
  EXPECT_EQ(key_of_file(path).error().code(), Code::kNotFound);
  std::ofstream(folder_ / "w.bin") << "aaaa";
  const std::string first = key_of_file(path).value();
  EXPECT_EQ(key_of_file(path).value(), first);
  std::ofstream(folder_ / "w.bin") << "bbbb";
  EXPECT_NE(key_of_file(path).value(), first);
}

TEST_F(CompileCacheTest, ExternalDataOutsideTheFolderHaveNoKey) {
  const fs::path models = folder_ / "models";
  fs::create_directories(models);
  std::ofstream(folder_ / "w.bin") << "aaaa";
  std::ofstream(models / "model.onnx") << model_with_external("../w.bin");
  EXPECT_EQ(key_of_file(models / "model.onnx").error().code(), Code::kInvalidArgument);
  fs::create_symlink(folder_ / "w.bin", models / "link.bin");
  std::ofstream(models / "linked.onnx") << model_with_external("link.bin");
  EXPECT_EQ(key_of_file(models / "linked.onnx").error().code(), Code::kInvalidArgument);
  std::ofstream(models / "inside.bin") << "aaaa";
  fs::create_symlink("inside.bin", models / "other.bin");
  std::ofstream(models / "strict.onnx") << model_with_external("other.bin");
  LoadOptions strict;
  strict.import.strict_links = true;
  EXPECT_TRUE(key_of_file(models / "strict.onnx"));
  EXPECT_EQ(key_of_file(models / "strict.onnx", strict).error().code(), Code::kInvalidArgument);
}

/// The key was of the data beside the link's target, the program of those beside the link.
TEST_F(CompileCacheTest, OfAModelThatIsALinkTheKeyIsOfWhatTheImportReads) {
  for (const char* each : {"link", "store", "blobs"}) fs::create_directories(folder_ / each);
  const fs::path stored = folder_ / "store" / "model.onnx";
  const fs::path linked = folder_ / "link" / "model.onnx";
  std::ofstream(stored) << model_with_external("w.bin");
  std::ofstream(folder_ / "store" / "w.bin") << "aaaa";
  fs::create_symlink(stored, linked);
  std::ofstream(folder_ / "link" / "w.bin") << "bbbb";
  EXPECT_NE(key_of_file(stored).value(), key_of_file(linked).value());
  const std::string first = key_of_file(linked).value();
  std::ofstream(folder_ / "link" / "w.bin") << "cccc";
  EXPECT_NE(key_of_file(linked).value(), first);
  // As stores of models are laid out: model and data are links to files of other names.
  std::ofstream(folder_ / "blobs" / "1") << model_with_external("w.bin");
  std::ofstream(folder_ / "blobs" / "2") << "dddd";
  fs::remove(linked);
  fs::remove(folder_ / "link" / "w.bin");
  fs::create_symlink(folder_ / "blobs" / "1", linked);
  fs::create_symlink(folder_ / "blobs" / "2", folder_ / "link" / "w.bin");
  EXPECT_TRUE(key_of_file(linked));
}

/// A file that was put in the model's place after its key was made got the old model's entry.
TEST_F(CompileCacheTest, TheProgramIsMadeOfTheBytesThatTheKeyIsOf) {
  ::setenv("CORELANE_CACHE_DIR", (folder_ / "own").c_str(), 1);
  const fs::path path = folder_ / "model.onnx";
  std::ofstream(path) << testing::relu_model({4});
  const auto mapped = std::make_shared<const MappedFile>(MappedFile::open(path).value());
  fs::remove(path);
  std::ofstream(path) << testing::relu_model({7});
  LoadOptions options;
  options.on = std::make_shared<testing::FakeDevice>(testing::one_in_one_out(Shape{4}));
  const auto program = load_program(LoadInput{mapped->bytes(), mapped, path, mapped}, options);
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_EQ((*program)->description.inputs[0].desc.shape, Shape{4});
}

TEST_F(CompileCacheTest, ANoteWithoutAnEntryIsNotKept) {
  const CompileCache cache(folder_, 0);
  ASSERT_TRUE(cache.store(key("a"), program()).ok());
  ASSERT_TRUE(cache.keep_note(key("a"), "note").ok());
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace corelane::runtime
