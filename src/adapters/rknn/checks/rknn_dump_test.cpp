/// RKNN_LOG_LEVEL 4 and 5, each in a process of its own: the level is read once.
#include "adapters/rknn/checks/rknn_dump.h"

#include <filesystem>
#include <fstream>
#include <map>

#include "adapters/rknn/api/rknn_test_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// A folder that the child process, which begins the test anew, has in common with its parent.
class TempFolder {
 public:
  TempFolder() {
    const char* const of_parent = std::getenv(kName);
    child_ = of_parent != nullptr;
    std::string text = (fs::temp_directory_path() / "corelane_dump_XXXXXX").string();
    path_ = child_ ? of_parent : mkdtemp(text.data());
    setenv(kName, path_.c_str(), 1);
  }
  ~TempFolder() {
    if (child_) return;
    unsetenv(kName);
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  static constexpr const char* kName = "CORELANE_TEST_FOLDER";
  fs::path path_;
  bool child_ = false;
};

struct Array {
  std::string header;
  std::string bytes;
  template <class T>
  std::vector<T> values() const {
    std::vector<T> v(bytes.size() / sizeof(T));
    std::memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
    return v;
  }
};

Array read_npy(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(all.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8)) << path;
  const std::size_t length = static_cast<unsigned char>(all[8]) +
                             static_cast<std::size_t>(static_cast<unsigned char>(all[9])) * 256;
  EXPECT_EQ((10 + length) % 64, 0u);
  EXPECT_EQ(all[9 + length], '\n');
  return {all.substr(10, length), all.substr(10 + length)};
}

std::map<std::string, Array> files_below(const fs::path& folder) {
  std::map<std::string, Array> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[entry.path().filename().string()] = read_npy(entry.path());
  return files;
}

class RknnDump : public ::testing::Test {
 protected:
  RknnDump() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(RknnDump, LevelFourTellsTheTimesOfLayersAfterEachRun) {
  const auto child = [] {
    setenv("RKNN_LOG_LEVEL", "4", 1);
    Model model(doubling({4}));
    EXPECT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    EXPECT_EQ(model.run(), RKNN_SUCC);
    model.destroy();
    leave();
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0),
              AllOf(HasSubstr("D RKNN: ["), HasSubstr("InputOperator:x"),
                    HasSubstr("Total Operator Elapsed Per Frame Time(us): ")));
}

TEST_F(RknnDump, VariablesOfTheVendorsMemoryAreAcceptedWithALineEach) {
  const auto child = [] {
    setenv("RKNN_LOG_LEVEL", "2", 1);
    setenv("RKNN_INTERNAL_MEM_TYPE", "sram#256", 1);
    setenv("RKNN_SEPARATE_WEIGHT_MEM", "1", 1);
    setenv("RKNN_WEIGHT_MEM_TYPE", "sram", 1);
    const Model first(doubling({4})), second(doubling({4}));
    leave();
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0),
              AllOf(HasSubstr("I RKNN: ["), HasSubstr("RKNN_INTERNAL_MEM_TYPE=sram#256 accepted"),
                    HasSubstr("RKNN_SEPARATE_WEIGHT_MEM=1"),
                    HasSubstr("RKNN_WEIGHT_MEM_TYPE=sram accepted")));
}

TEST_F(RknnDump, LevelFiveWritesInputsValuesAndOutputs) {
  const TempFolder folder;
  const auto child = [&] {
    setenv("RKNN_LOG_LEVEL", "5", 1);
    setenv("RKNN_DUMP_DIR", folder.path().c_str(), 1);
    const std::string bytes = OnnxBuilder()
                                  .input("x", {2, 2})
                                  .output("y", {2, 2})
                                  .constant<float>("two", {1}, testing::kOnnxFloat, {2.0F})
                                  .node("Mul", {"x", "two"}, {"in/ner"})
                                  .node("Neg", {"in/ner"}, {"y"})
                                  .build();
    Model model(bytes);
    EXPECT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    EXPECT_EQ(model.run(), RKNN_SUCC);
    EXPECT_THAT(model.floats(), ElementsAre(-2, -4, -6, -8));
    EXPECT_EQ(model.set({0, 0, 0, 1}), RKNN_SUCC);
    EXPECT_EQ(model.run(), RKNN_SUCC);
    model.destroy();
    leave();
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), HasSubstr("dump of frame 2: 3 tensors"));
  auto files = files_below(folder.path());
  ASSERT_EQ(files.size(), 6u);
  const Array& input = files["000001_000_input_x.npy"];
  EXPECT_THAT(input.header, HasSubstr("'descr': '<f4'"));
  EXPECT_THAT(input.header, HasSubstr("'shape': (2, 2), "));
  EXPECT_THAT(input.values<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(files["000001_001_layer_in_ner.npy"].values<float>(), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(files["000001_002_output_y.npy"].values<float>(), ElementsAre(-2, -4, -6, -8));
  EXPECT_THAT(files["000002_002_output_y.npy"].values<float>(), ElementsAre(0, 0, 0, -2));
}

TEST_F(RknnDump, BoundMemoryIsWrittenAsTheNetworkGetsIt) {
  const TempFolder folder;
  const Affine in{0.5F, 3}, out{0.25F, -2};
  const auto child = [&] {
    setenv("RKNN_LOG_LEVEL", "5", 1);
    setenv("RKNN_DUMP_DIR", folder.path().c_str(), 1);
    setenv("RKNN_DUMP_QUANT", "1", 1);
    Model model(quantised<std::int8_t>({4}, in, out));
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
    Mem mem(model.ctx, attr.size_with_stride);
    EXPECT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &attr), RKNN_SUCC);
    mem.fill<std::int8_t>({3, 5, 7, 1});
    EXPECT_EQ(model.run(), RKNN_SUCC);
    leave();
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), HasSubstr("dump of frame 1"));
  auto files = files_below(folder.path());
  EXPECT_THAT(files["000001_000_input_x.npy"].values<float>(), ElementsAre(0, 1, 2, -1));
  const Array& quant = files["000001_000_input_x_quant.npy"];
  EXPECT_THAT(quant.header, HasSubstr("'|i1'"));
  EXPECT_THAT(quant.values<std::int8_t>(), ElementsAre(3, 5, 7, 1));
  const auto last = std::find_if(files.begin(), files.end(), [](const auto& file) {
    return file.first.ends_with("output_y_quant.npy");
  });
  ASSERT_NE(last, files.end());
  EXPECT_THAT(last->second.values<std::int8_t>(), ElementsAre(-2, 2, 6, -6));
}

TEST(RknnNpy, TypesWithoutANameInTheFormatAreWidened) {
  const TempFolder folder;
  const auto written = [&](DType dtype, const auto& data, const Shape& shape) {
    TensorView view;
    view.data = data.data();
    view.size = data.size() * sizeof data[0];
    view.dtype = dtype;
    view.shape = shape;
    const Status status = write_npy(folder.path() / "a.npy", view);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return read_npy(folder.path() / "a.npy");
  };
  const Array half = written(DType::kF16, halves({1.5F, -2}), Shape({2}));
  EXPECT_THAT(half.header, HasSubstr("'<f4'"));
  EXPECT_THAT(half.header, HasSubstr("'shape': (2,), "));
  EXPECT_THAT(half.values<float>(), ElementsAre(1.5F, -2));
  const std::vector<std::int64_t> longs = {1, -5, std::int64_t{1} << 40};
  EXPECT_THAT(written(DType::kI64, longs, Shape({3, 1})).values<std::int64_t>(),
              ElementsAreArray(longs));
  const Array scalar = written(DType::kI32, std::vector<std::int32_t>{7}, Shape{});
  EXPECT_THAT(scalar.header, HasSubstr("'shape': (), "));
}

TEST(RknnNpy, AFolderThatIsNotThereIsAnError) {
  const std::vector<float> one = {1};
  const TensorView view{one.data(), 4, DType::kF32, Shape({1}), {}, {}};
  const Status status = write_npy("/nowhere/at/all.npy", view);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/at/all.npy"));
}

}  // namespace
}  // namespace corelane::rknn::test
