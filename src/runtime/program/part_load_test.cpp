// Parts of a program file: compiled together, loaded by name, from one mapping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "corelane/base/file.h"
#include "corelane/program/program_file.h"
#include "runtime/testing/fake_program.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::fake_description;
using testing::FakeConfig;
using testing::FakeDevice;
using ::testing::HasSubstr;
using testing::one_in_one_out;
using testing::OnnxBuilder;

/// y = x + ramp, of 1,000 floats; `scale` makes it another network over the same ramp.
std::string model(float scale) {
  std::vector<float> ramp;
  for (int i = 0; i < 1000; ++i) ramp.push_back(static_cast<float>(i));
  return OnnxBuilder()
      .input("x", {std::int64_t{1000}})
      .output("y", {std::int64_t{1000}})
      .constant<float>("ramp", {1000}, testing::kOnnxFloat, ramp)
      .constant<float>("scale", {1}, testing::kOnnxFloat, {scale})
      .node("Add", {"x", "ramp"}, {"z"})
      .node("Mul", {"z", "scale"}, {"y"})
      .build("main_graph");
}

class PartLoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("corelane-part-test-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, ByteSpan bytes) const {
    EXPECT_TRUE(write_file_atomic(folder_ / name, bytes).ok());
    return folder_ / name;
  }
  PartSource source(const std::string& file, float scale, std::string name = {}) const {
    return {write(file, as_byte_span(model(scale))), std::move(name), {}};
  }
  ByteVector two_parts(const CompileOptions& options = {}) const {
    const std::vector<PartSource> parts{source("decoder.onnx", 1), source("encoder.onnx", 2)};
    auto bytes = compile_parts(parts, options);
    EXPECT_TRUE(bytes) << bytes.error().to_string();
    return bytes ? *bytes : ByteVector();
  }
  static std::shared_ptr<FakeDevice> device(FakeConfig config = one_in_one_out(Shape{1000})) {
    return std::make_shared<FakeDevice>(std::move(config));
  }
  static LoadOptions part(std::shared_ptr<FakeDevice> d, std::string name) {
    LoadOptions options;
    options.on = std::move(d);
    options.part = std::move(name);
    return options;
  }

  fs::path folder_;
};

TEST_F(PartLoadTest, EqualConstantsAreWrittenOnceAndPartsAreNamedAsTheirFiles) {
  const auto file = ProgramFile::from_bytes(two_parts()).value();
  ASSERT_EQ(file->part_count(), 2U);
  EXPECT_EQ(file->description(0).part, "decoder");
  EXPECT_EQ(file->description(1).part, "encoder");
  EXPECT_EQ(file->find(SegmentKind::kConstants).value()->size(), 4000U);
}

TEST_F(PartLoadTest, ANameChoosesAndTheFirstIsTheOneWithout) {
  const auto path = write("two.rknn", two_parts());
  const auto file = ProgramFile::open(path).value();
  const auto d = device();
  for (const std::string name : {"", "decoder", "encoder"}) {
    const auto program = Program::load(path, part(d, name));
    ASSERT_TRUE(program) << program.error().to_string();
    const std::size_t index = name == "encoder" ? 1 : 0;
    EXPECT_EQ(program->description(), file->description(index));
    EXPECT_THAT(program->parts(), ElementsAre("decoder", "encoder"));
    EXPECT_EQ(as_string_view(d->images.back().bytes),
              as_string_view(file->find(SegmentKind::kGraph, {}, index).value().value()));
    EXPECT_EQ(d->images.back().constants.size(), 4000U);
  }
  EXPECT_TRUE(Program().parts().empty());
}

TEST_F(PartLoadTest, AnUnknownNameSaysWhichThereAre) {
  const ByteVector bytes = two_parts();
  const auto unknown = Program::load(bytes, part(device(), "x"));
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
  EXPECT_THAT(unknown.error().message(), AllOf(HasSubstr("'decoder'"), HasSubstr("'encoder'")));
  const auto single = compile_file(write("one.onnx", as_byte_span(model(1)))).value();
  EXPECT_EQ(Program::load(single, part(device(), "x")).error().code(), Code::kNotFound);
  const auto onnx = Program::load(folder_ / "one.onnx", part(device(), "x"));
  EXPECT_EQ(onnx.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(onnx.error().message(), HasSubstr("'x'"));
}

TEST_F(PartLoadTest, AnErrorNamesThePart) {
  ByteVector bytes = two_parts();
  const auto file = ProgramFile::from_bytes(bytes).value();
  const auto graph = std::ranges::find_if(file->segments(), [](const SegmentInfo& s) {
    return s.kind == SegmentKind::kGraph && s.part == 1;
  });
  ASSERT_NE(graph, file->segments().end());
  bytes[graph->offset] ^= std::byte{1};
  ASSERT_TRUE(Program::load(bytes, part(device(), "decoder")));
  const auto broken = Program::load(bytes, part(device(), "encoder"));
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code(), Code::kCorrupted);
  EXPECT_THAT(broken.error().to_string(), HasSubstr("part 'encoder'"));
}

TEST_F(PartLoadTest, LoadingAPathAgainMapsItOnce) {
  const auto path = write("two.rknn", two_parts());
  const auto d = device();
  const Program first = Program::load(path, part(d, "decoder")).value();
  const Program second = Program::load(path, part(d, "encoder")).value();
  LoadOptions everything = part(d, "decoder");
  everything.verify = Verify::kEverything;
  const Program third = Program::load(path, everything).value();
  ASSERT_EQ(d->images.size(), 3U);
  for (const device::Image& image : d->images) {
    EXPECT_TRUE(image.immutable);
    EXPECT_EQ(image.constants.data(), d->images[0].constants.data());
  }
  EXPECT_NE(d->images[1].bytes.data(), d->images[0].bytes.data());
  EXPECT_EQ(d->images[2].bytes.data(), d->images[0].bytes.data());
  // Another file of the same name, while the programs of the first are there.
  write("two.rknn", two_parts());
  const Program other = Program::load(path, part(d, "decoder")).value();
  EXPECT_NE(d->images[3].constants.data(), d->images[0].constants.data());
}

TEST_F(PartLoadTest, AnOpenFileIsLoadedAsItIs) {
  const auto path = write("two.rknn", two_parts());
  const auto file = ProgramFile::open(path).value();
  const auto d = device();
  const Program program = Program::load(file, part(d, "encoder")).value();
  EXPECT_EQ(d->images[0].constants.data(), file->find(SegmentKind::kConstants).value()->data());
  EXPECT_TRUE(d->images[0].immutable);
  EXPECT_EQ(Program::load(std::shared_ptr<const ProgramFile>()).error().code(),
            Code::kInvalidArgument);
}

TEST_F(PartLoadTest, MemoryOfTheCallerIsNotTakenForUnchanging) {
  const auto bytes = std::make_shared<const ByteVector>(two_parts());
  const auto d = device();
  ASSERT_TRUE(Program::load(*bytes, part(d, ""), bytes));
  ASSERT_TRUE(Program::load(*bytes, part(d, "")));
  EXPECT_FALSE(d->images[0].immutable);
  EXPECT_TRUE(d->images[1].immutable);  // A copy of its own.
}

TEST_F(PartLoadTest, ADeviceThatOpensFilesGetsOneOfThePartAlone) {
  FakeConfig config = one_in_one_out(Shape{1000});
  config.image_kinds = {"program"};
  const auto d = device(config);
  ASSERT_TRUE(Program::load(two_parts(), part(d, "encoder")));
  const auto given = ProgramFile::from_bytes(d->images.back().bytes).value();
  EXPECT_EQ(given->part_count(), 1U);
  EXPECT_EQ(given->description().part, "");
  EXPECT_EQ(given->find(SegmentKind::kConstants).value()->size(), 4000U);
  ProgramDescription expected = ProgramFile::from_bytes(two_parts()).value()->description(1);
  expected.part.clear();
  EXPECT_EQ(given->description(), expected);
}

TEST_F(PartLoadTest, RemovedWeightsComeFromAProgramWithTheSame) {
  CompileOptions options;
  options.remove_weights = true;
  const ByteVector without = two_parts(options);
  EXPECT_LT(without.size(), 4000U + two_parts().size() / 2);
  const auto d = device();
  LoadOptions load = part(d, "encoder");
  EXPECT_EQ(Program::load(without, load).error().code(), Code::kWrongState);
  const ByteVector whole = two_parts();
  load.weights_of = std::make_shared<const Program>(Program::load(whole, part(d, "")).value());
  const auto program = Program::load(without, load);
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_EQ(program->constants().data(), load.weights_of->constants().data());
  d->images.clear();  // They hold the program of the weights, which holds the device.
}

TEST_F(PartLoadTest, NamesThatAreTakenAreRefusedWithTheWayOut) {
  fs::create_directories(folder_ / "b");
  std::vector<PartSource> parts{source("net.onnx", 1), source("b/net.onnx", 2)};
  const auto twice = compile_parts(parts);
  EXPECT_EQ(twice.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(twice.error().message(), AllOf(HasSubstr("b/net.onnx"), HasSubstr("--part")));
  parts[1].name = "other";
  EXPECT_TRUE(compile_parts(parts));
  EXPECT_EQ(compile_parts({}).error().code(), Code::kInvalidArgument);
}

TEST_F(PartLoadTest, OptionsOfOneNetworkAreRefusedOrForOnePart) {
  std::vector<PartSource> parts{source("a.onnx", 1), source("b.onnx", 2)};
  CompileOptions options;
  options.attach = {{"rknn", folder_ / "a.onnx"}};
  EXPECT_EQ(compile_parts(parts, options).error().code(), Code::kInvalidArgument);
  options = {};
  options.import.cores = 2;
  parts[1].import = ImportOptions{};
  parts[1].import->custom_string = "of b";
  const auto file = ProgramFile::from_bytes(compile_parts(parts, options).value()).value();
  EXPECT_EQ(file->description(0).cores, 2U);
  EXPECT_EQ(file->description(1).cores, 1U);
  EXPECT_EQ(file->description(1).custom_string, "of b");
  // What fails says in which network.
  options.import.dims = {{"nowhere", 3}};
  const auto failed = compile_parts(parts, options);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().to_string(), HasSubstr("part 'a'"));
}

}  // namespace
}  // namespace corelane
