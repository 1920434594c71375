#include "runtime/program/load_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corelane/onnx/onnx_import.h"
#include "corelane/runtime/program.h"
#include "runtime/testing/fake_program.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Relu over 1024 floats: 8 KiB of input and output.
const std::string& model() {
  static const std::string bytes = testing::relu_model({1, 1024});
  return bytes;
}

LoadOptions options() {
  LoadOptions o;
  o.on = std::make_shared<testing::FakeDevice>(testing::one_in_one_out(Shape{1, 1024}));
  o.cache = false;
  return o;
}

Status load(const LoadOptions& o) {
  const auto program = Program::load(as_byte_span(model()), o);
  return program ? Status() : program.error();
}

TEST(LoadLimits, ModelsDoNotMeetTheDefaults) { EXPECT_TRUE(load(options()).ok()); }

TEST(LoadLimits, ANetworkThatNeedsMoreMemoryIsRefusedBeforeAnEngineSeesIt) {
  LoadOptions o = options();
  o.load_memory = 8192;
  const Status s = load(o);
  EXPECT_EQ(s.code(), Code::kOutOfMemory);
  EXPECT_THAT(s.message(),
              AllOf(HasSubstr("program 'relu' needs "), HasSubstr("(Relu)"),
                    HasSubstr("; 8192 bytes are allowed"), HasSubstr("the option load_memory")));
  EXPECT_EQ(s.detail(Detail::kOperator), "Relu");
  EXPECT_EQ(s.detail(Detail::kLimit), "8192 bytes");
  o.load_memory = 16384;
  EXPECT_TRUE(load(o).ok());
}

TEST(LoadLimits, TheSameHoldsForProgramFiles) {
  const auto file = compile_bytes(as_byte_span(model()));
  ASSERT_TRUE(file) << file.error().to_string();
  LoadOptions o = options();
  o.load_memory = 8192;
  const auto program = Program::load(*file, o);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kOutOfMemory);
  o.load_memory = 0;
  o.load_timeout = Duration{1};
  EXPECT_EQ(Program::load(*file, o).error().code(), Code::kTimeout);
}

/// Open dimensions counted as 1, although the program says how large they get.
TEST(LoadLimits, TheLargestShapesCount) {
  const std::string open = testing::relu_model({std::string("n"), std::int64_t{1024}});
  LoadOptions sets = options();
  sets.on = std::make_shared<testing::FakeDevice>(testing::one_in_one_out(Shape{-1, 1024}));
  LoadOptions range = sets;
  sets.import.shape_sets = {{Shape{1, 1024}}, {Shape{4, 1024}}, {Shape{2, 1024}}};
  range.import.batch_range = BatchRange{1, 4};
  for (LoadOptions* each : {&sets, &range}) {
    each->load_memory = 2 * 4 * 4096 + 1024;  // With the network itself.
    const auto fits = Program::load(as_byte_span(open), *each);
    EXPECT_TRUE(fits) << fits.error().to_string();
    each->load_memory = std::uint64_t{2} * 4 * 4096;
    EXPECT_EQ(Program::load(as_byte_span(open), *each).error().code(), Code::kOutOfMemory);
  }
}

TEST(LoadLimits, ALoadTellsTheWorkOfTheLargestShapes) {
  EXPECT_EQ(Program::load(as_byte_span(model()), options())->work(), 2U * 1024 * 8);
  const std::string open = testing::relu_model({std::string("n"), std::int64_t{1024}});
  LoadOptions any = options();
  any.on = std::make_shared<testing::FakeDevice>(testing::one_in_one_out(Shape{-1, 1024}));
  const Program program = Program::load(as_byte_span(open), any).value();
  const auto work = [&](const Shape& shape) { return program.work(std::vector{shape}); };
  EXPECT_EQ(program.work(), std::nullopt);
  EXPECT_EQ(work({1, 1024}), 2U * 1024 * 8);
  EXPECT_EQ(work({3, 1024}), 3U * 2 * 1024 * 8);
  EXPECT_EQ(work({3, 1023}), std::nullopt) << "the program does not take it";
  EXPECT_EQ(program.work(std::vector<Shape>(2, Shape{3, 1024})), std::nullopt);
  any.import.batch_range = BatchRange{1, 4};
  const Program ranged = Program::load(as_byte_span(open), any).value();
  EXPECT_EQ(ranged.work(), 4U * 2 * 1024 * 8);
  EXPECT_EQ(ranged.work(std::vector{Shape{2, 1024}}), 4U * 2 * 1024 * 8) << "at most";
  EXPECT_EQ(Program().work(), std::nullopt);
}

TEST(LoadLimits, HeightAndWidthOfAPictureCountAs320) {
  LoadOptions any = options();
  any.on = std::make_shared<testing::FakeDevice>(testing::one_in_one_out(Shape{-1, 3, -1, -1}));
  const std::string model =
      testing::relu_model({std::string("n"), 3, std::string("h"), std::string("w")});
  const Program program = Program::load(as_byte_span(model), any).value();
  EXPECT_EQ(program.work(std::vector{Shape{1, 3, 48, 320}}), 2U * 3 * 320 * 320 * 8);
  EXPECT_EQ(program.work(std::vector{Shape{1, 3, 321, 5}}), 2U * 3 * 321 * 5 * 8);
}

TEST(LoadLimits, SamplesOfASoundCountAs1024) {
  LoadOptions any = options();
  any.on = std::make_shared<testing::FakeDevice>(testing::one_in_one_out(Shape{-1, -1}));
  const std::string model = testing::relu_model({std::string("n"), std::string("samples")});
  const Program program = Program::load(as_byte_span(model), any).value();
  EXPECT_EQ(program.work(std::vector{Shape{1, 512}}), 2U * 1024 * 8);
  EXPECT_EQ(program.work(std::vector{Shape{1, 1025}}), 2U * 1025 * 8);
}

/// The lengths of several inputs are one as a rule.
TEST(LoadLimits, FloatsBesideAnotherLengthAreNoSound) {
  const auto work_of = [](const Shape& other, const std::vector<testing::OnnxBuilder::Dim>& dims) {
    LoadOptions any = options();
    testing::FakeConfig config = testing::one_in_one_out(Shape{-1, -1});
    config.inputs.push_back(config.inputs[0]);
    config.inputs[1].name = "z";
    config.inputs[1].shape = other;
    any.on = std::make_shared<testing::FakeDevice>(config);
    const std::string model = testing::OnnxBuilder()
                                  .input("x", {std::string("n"), std::string("t")})
                                  .input("z", dims)
                                  .output("y", {std::string("n"), std::string("t")})
                                  .node("Relu", {"x"}, {"y"})
                                  .build();
    const Program program = Program::load(as_byte_span(model), any).value();
    Shape least = other;
    for (std::size_t i = 0; i < least.rank(); ++i)
      if (least[i] == Shape::kOpen) least[i] = 1;
    return program.work(std::vector{Shape{1, 8}, least});
  };
  EXPECT_EQ(work_of({-1, -1}, {std::string("n"), std::string("t")}), 2U * 64 * 8);
  EXPECT_EQ(work_of({2, -1, 128}, {2, std::string("n"), 128}), 2U * 1024 * 8);
}

TEST(LoadLimits, TheSecondDimensionOfAStateIsTheBatch) {
  LoadOptions any = options();
  any.on = std::make_shared<testing::FakeDevice>(testing::one_in_one_out(Shape{2, -1, 128}));
  const std::string model = testing::relu_model({2, std::string("n"), 128});
  const Program program = Program::load(as_byte_span(model), any).value();
  EXPECT_EQ(program.work(std::vector{Shape{2, 1, 128}}), 2U * 2 * 128 * 8);
  EXPECT_EQ(program.work(std::vector{Shape{2, 3, 128}}), 2U * 2 * 3 * 128 * 8);
}

/// Otherwise the first run would look at all nodes again.
TEST(LoadLimits, TheWorkOfSizesOfEverydayUseIsKnownFromTheLoad) {
  LoadOptions any = options();
  any.on = std::make_shared<testing::FakeDevice>(testing::one_in_one_out(Shape{-1, -1, 2}));
  const auto load_of = [&](const std::vector<testing::OnnxBuilder::Dim>& dims) {
    return Program::load(as_byte_span(testing::relu_model(dims)), any).value();
  };
  const Program program = load_of({std::string("n"), std::string("t"), 2});
  EXPECT_EQ(program.work(std::vector{Shape{1, 5, 2}}), 2U * 128 * 8) << "that of 64";
  EXPECT_EQ(program.work(std::vector{Shape{1, 65, 2}}), 2U * 130 * 8);
  EXPECT_EQ(program.work(std::vector{Shape{2, 5, 2}}), 2U * 2 * 10 * 8);
  // They need more memory than is allowed, or the network does not take them: 1 counts.
  any.load_memory = 600;
  const Program small = load_of({std::string("n"), std::string("t"), 2});
  EXPECT_EQ(small.work(std::vector{Shape{1, 5, 2}}), 2U * 10 * 8);
}

TEST(LoadLimits, ALoadThatTakesTooLongIsGivenUpBetweenSteps) {
  LoadOptions o = options();
  o.load_timeout = Duration{1};
  const Status s = load(o);
  EXPECT_EQ(s.code(), Code::kTimeout);
  EXPECT_THAT(s.to_string(), AllOf(HasSubstr("the option load_timeout"),
                                   HasSubstr("the deadline has passed before the model is read")));
  EXPECT_EQ(s.detail(Detail::kLimit), "1e-09 s");
  o.load_timeout = Duration{0};
  EXPECT_TRUE(load(o).ok()) << "0 stands for no limit";
  o.load_timeout = Duration::max();
  EXPECT_TRUE(load(o).ok());
}

TEST(LoadLimits, TheImportHasADeadlineOfItsOwn) {
  ImportOptions o;
  o.deadline = TimePoint{};
  EXPECT_EQ(import_onnx(as_byte_span(model()), o).error().code(), Code::kTimeout);
}

TEST(LoadLimits, TheDefaultIsWhatTheMachineHas) {
  const std::uint64_t machine = runtime::memory_allowed({});
  EXPECT_GT(machine, std::uint64_t{64} << 20);
  LoadOptions o;
  o.load_memory = 5;
  EXPECT_EQ(runtime::memory_allowed(o), 5U);
}

}  // namespace
}  // namespace corelane
