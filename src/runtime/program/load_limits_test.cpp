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
