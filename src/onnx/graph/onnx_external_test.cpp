#include "onnx/graph/onnx_external.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <numeric>
#include <thread>

#include "onnx/onnx_import_from.h"
#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A folder with a model whose weights (512 floats) lie in a file of any name.
class OnnxExternal : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("corelane-external-" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "model");
  }
  void TearDown() override { fs::remove_all(root_); }

  static void write(const fs::path& path, ByteSpan bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  static void write_weights(const fs::path& path, std::size_t bytes = 2048) {
    write(path, ByteVector(bytes, std::byte{1}));
  }

  TestModel model(const std::string& location, const std::string& offset = "0",
                  const std::string& length = "2048") {
    TestModel m;
    m.input("x", {512}).output("y", {512});
    auto& w = *m.graph().add_initializer();
    w.set_name("w");
    w.set_data_type(::onnx::TensorProto::FLOAT);
    w.add_dims(512);
    w.set_data_location(::onnx::TensorProto::EXTERNAL);
    const std::pair<const char*, std::string> entries[] = {
        {"location", location}, {"offset", offset}, {"length", length}};
    for (const auto& [key, value] : entries) {
      auto& entry = *w.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    m.node("Add", {"x", "w"}, {"y"});
    return m;
  }
  Result<ImportedModel> import(const TestModel& m, const ImportOptions& options = {}) {
    write(root_ / "model" / "m.onnx", m.bytes());
    return import_onnx_file(root_ / "model" / "m.onnx", options);
  }

  fs::path root_;
};

TEST_F(OnnxExternal, FileBesideTheModelIsTaken) {
  write_weights(root_ / "model" / "w.bin");
  const auto imported = import(model("w.bin"));
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->constants, LargeBytes(2048, std::byte{1}));
}

TEST_F(OnnxExternal, LargeWeightsOfTheModelItselfAreReadFromItsFile) {
  constexpr std::int64_t kFloats = 50'000;
  std::vector<double> values(kFloats);
  std::iota(values.begin(), values.end(), 1.0);
  TestModel m;
  m.input("x", {kFloats}).output("y", {kFloats}).floats("w", {kFloats}, values);
  m.node("Add", {"x", "w"}, {"y"});
  const ByteVector bytes = m.bytes();
  const auto of_file = import(m);
  const auto of_memory = import_onnx(bytes);
  ASSERT_TRUE(of_file) << of_file.error().to_string();
  EXPECT_EQ(of_file->constants.size(), kFloats * sizeof(float));
  EXPECT_EQ(of_file->constants, of_memory->constants);

  const fs::path path = root_ / "model" / "m.onnx";
  const MappedFile mapped = MappedFile::open(path).value();
  ExternalData external = external_data_of(path, {});
  external.lend(mapped.bytes());
  external.read_model_from(mapped, path);
  LargeBytes copy(bytes.size());
  ASSERT_TRUE(external.copy(mapped.bytes(), copy.data()).ok());
  EXPECT_EQ(as_string_view(copy), as_string_view(bytes));
  // Reading the pages that are mapped would end the process.
  ASSERT_EQ(::truncate(path.c_str(), 100), 0);
  EXPECT_EQ(external.copy(mapped.bytes(), copy.data()).code(), Code::kCorrupted);
}

TEST_F(OnnxExternal, AModelWhoseFileWasReplacedIsTakenAsItWasMapped) {
  const fs::path path = root_ / "model" / "m.onnx";
  write(path, ByteVector(100'000, std::byte{1}));
  const MappedFile mapped = MappedFile::open(path).value();
  fs::remove(path);
  write(path, ByteVector(100'000, std::byte{2}));
  ExternalData external = external_data_of(path, {});
  external.lend(mapped.bytes());
  external.read_model_from(mapped, path);
  LargeBytes copy(100'000);
  ASSERT_TRUE(external.copy(mapped.bytes(), copy.data()).ok());
  EXPECT_EQ(copy, LargeBytes(100'000, std::byte{1}));
}

TEST_F(OnnxExternal, PathsOutsideTheFolderAreRefused) {
  write_weights(root_ / "w.bin");
  for (const std::string& location :
       {std::string("../w.bin"), (root_ / "w.bin").string(), std::string("a/../../w.bin"),
        std::string(""), std::string("../absent.bin")}) {
    const auto imported = import(model(location));
    EXPECT_EQ(imported.error().code(), Code::kInvalidArgument) << location;
    EXPECT_THAT(imported.error().to_string(), HasSubstr("'w'"));
  }
}

TEST_F(OnnxExternal, LinkThatLeavesTheFolderIsRefused) {
  write_weights(root_ / "w.bin");
  fs::create_symlink(root_ / "w.bin", root_ / "model" / "w.bin");
  EXPECT_EQ(import(model("w.bin")).error().code(), Code::kInvalidArgument);
}

TEST_F(OnnxExternal, DataBesideTheFileThatTheModelLinksToAreTaken) {
  fs::create_directories(root_ / "blobs");
  write(root_ / "blobs" / "m", model("w.bin").bytes());
  write_weights(root_ / "blobs" / "w");
  fs::create_symlink("../blobs/m", root_ / "model" / "linked.onnx");
  fs::create_symlink("../blobs/w", root_ / "model" / "w.bin");
  const auto imported = import_onnx_file(root_ / "model" / "linked.onnx");
  EXPECT_TRUE(imported) << imported.error().to_string();
}

TEST_F(OnnxExternal, StrictModeRefusesAnyLink) {
  write_weights(root_ / "model" / "real.bin");
  fs::create_symlink("real.bin", root_ / "model" / "w.bin");
  EXPECT_TRUE(import(model("w.bin")));
  ImportOptions options;
  options.strict_links = true;
  const auto imported = import(model("w.bin"), options);
  EXPECT_EQ(imported.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(imported.error().to_string(), HasSubstr("link"));
  EXPECT_TRUE(import(model("real.bin"), options));
}

TEST_F(OnnxExternal, StrictModeRefusesASecondHardLink) {
  write_weights(root_ / "elsewhere.bin");
  fs::create_hard_link(root_ / "elsewhere.bin", root_ / "model" / "w.bin");
  EXPECT_TRUE(import(model("w.bin")));
  ImportOptions options;
  options.strict_links = true;
  const auto imported = import(model("w.bin"), options);
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(imported.error().to_string(), HasSubstr("2 names"));
}

/// The file is exchanged for a link to a file outside again and again while models are imported:
/// the data come from inside, or are refused.
TEST_F(OnnxExternal, AFileThatIsExchangedForALinkDoesNotLeaveTheFolder) {
  const fs::path inside = root_ / "model" / "w.bin";
  write(root_ / "secret", ByteVector(2048, std::byte{7}));
  write(root_ / "model" / "m.onnx", model("w.bin").bytes());
  fs::create_symlink(root_ / "secret", root_ / "model" / "link");
  write_weights(root_ / "model" / "plain");
  fs::copy(root_ / "model" / "plain", inside);
  std::atomic<bool> ended = false;
  std::thread exchanges([&] {
    const fs::path draft = root_ / "model" / "draft";
    while (!ended) {
      for (const char* next : {"link", "plain"}) {
        std::error_code ec;
        fs::copy(root_ / "model" / next, draft, fs::copy_options::copy_symlinks, ec);
        fs::rename(draft, inside, ec);
      }
    }
  });
  for (int i = 0; i < 500; ++i) {
    const auto imported = import_onnx_file(root_ / "model" / "m.onnx");
    if (imported) EXPECT_EQ(imported->constants, LargeBytes(2048, std::byte{1}));
  }
  ended = true;
  exchanges.join();
}

TEST_F(OnnxExternal, MissingFileIsNotFound) {
  EXPECT_EQ(import(model("w.bin")).error().code(), Code::kNotFound);
}

TEST_F(OnnxExternal, OffsetsAndLengthsMustFitTheFile) {
  write_weights(root_ / "model" / "w.bin");
  EXPECT_EQ(import(model("w.bin", "1")).error().code(), Code::kMalformed);
  EXPECT_EQ(import(model("w.bin", "18446744073709551615")).error().code(), Code::kMalformed);
  EXPECT_EQ(import(model("w.bin", "-1")).error().code(), Code::kMalformed);
  EXPECT_EQ(import(model("w.bin", "0", "1024")).error().code(), Code::kMalformed);
}

TEST_F(OnnxExternal, BytesAloneHaveNoFolder) {
  write_weights(root_ / "model" / "w.bin");
  EXPECT_EQ(import_onnx(model("w.bin").bytes()).error().code(), Code::kInvalidArgument);
  ImportOptions options;
  options.external_data_root = root_ / "model";
  EXPECT_TRUE(import_onnx(model("w.bin").bytes(), options));
}

/// Adds an external f32 vector.
void add_external(TestModel& m, const std::string& name, const std::string& location,
                  std::size_t offset, std::size_t bytes) {
  auto& w = *m.graph().add_initializer();
  w.set_name(name);
  w.set_data_type(::onnx::TensorProto::FLOAT);
  w.add_dims(static_cast<std::int64_t>(bytes / 4));
  w.set_data_location(::onnx::TensorProto::EXTERNAL);
  const std::pair<const char*, std::string> entries[] = {{"location", location},
                                                         {"offset", std::to_string(offset)},
                                                         {"length", std::to_string(bytes)}};
  for (const auto& [key, value] : entries) {
    auto& entry = *w.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
}

TEST_F(OnnxExternal, TensorsThatShareBytesShareTheConstants) {
  write_weights(root_ / "model" / "w.bin", 4096);
  TestModel m = model("w.bin");
  add_external(m, "again", "w.bin", 0, 2048);
  add_external(m, "named otherwise", "./w.bin", 0, 2048);
  add_external(m, "other bytes", "w.bin", 2048, 2048);
  for (const char* name : {"again", "named otherwise", "other bytes"})
    m.node("Add", {"x", name}, {std::string(name) + "/y"});
  const auto imported = import(m);
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->constants.size(), 4096U);
  const auto graph = graph_of(*imported);
  for (const auto& t : graph.initializer()) {
    const auto bytes = constants_slice(t, imported->constants);
    ASSERT_TRUE(bytes) << t.name();
    EXPECT_EQ(bytes->data() - imported->constants.data(), t.name() == "other bytes" ? 2048 : 0);
  }
}

TEST_F(OnnxExternal, OverlapsThatUnfoldTheFileAreRefused) {
  constexpr std::size_t kFile = std::size_t{16} << 20;
  write_weights(root_ / "model" / "w.bin");
  fs::resize_file(root_ / "model" / "w.bin", kFile);  // A hole: takes no room on the disk.
  TestModel m = model("w.bin");
  for (std::size_t i = 0; i < 4; ++i) {
    add_external(m, "overlap" + std::to_string(i), i % 2 == 0 ? "w.bin" : "./w.bin", 64 * i,
                 kFile - 1024);
  }
  const auto imported = import(m);
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(imported.error().to_string(), HasSubstr("'overlap"));
}

}  // namespace
}  // namespace corelane::onnx
