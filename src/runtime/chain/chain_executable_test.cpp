// Chains on a fake device, which refuses what a test says.
#include "runtime/chain/chain_executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "corelane/runtime/compile_chain.h"
#include "runtime/testing/fake_program.h"

namespace corelane {
namespace {

using testing::f32_desc;
using testing::FakeDevice;
using ::testing::HasSubstr;

/// b = x + u; y = b * u, cut at b: both parts have two inputs and an output.
ByteVector sum_and_product() {
  const std::vector<testing::OnnxBuilder::Dim> dims{"n", std::int64_t{4}};
  testing::OnnxBuilder model;
  model.input("x", dims).input("u", dims).output("y", dims);
  model.node("Add", {"x", "u"}, {"b"}).node("Mul", {"b", "u"}, {"y"});
  const std::string bytes = model.build("pair");
  return compile_chain(as_byte_span(bytes), std::array{CutNames{"b"}}).value();
}

struct PairBench {
  PairBench() {
    testing::FakeConfig config;
    config.inputs = {f32_desc("0", Shape{-1, 4}), f32_desc("1", Shape{-1, 4})};
    config.outputs = {f32_desc("2", Shape{-1, 4})};
    device = std::make_shared<FakeDevice>(config);
    device->on_prepare = [](const device::PrepareOptions& options) -> Status {
      const auto& shapes = options.input_shapes;
      if (shapes.empty() || shapes[0] == shapes[1]) return {};
      return error(Code::kUnsupportedModel, "fake: sizes differ; mend that node")
          .with(Detail::kNode, "Add_b");
    };
    LoadOptions options;
    options.on = device;
    options.cache = false;
    program = Program::load(sum_and_product(), options).value();
  }
  std::shared_ptr<FakeDevice> device;
  Program program;
};

TEST(ChainExecutable, SizesThatAPartDoesNotTakeAreAMistakeOfTheCaller) {
  const PairBench bench;
  Context context = bench.program.new_context().value();
  const Status why = context.set_input_shapes({Shape{2, 4}, Shape{3, 4}});
  EXPECT_EQ(why.code(), Code::kShapeMismatch) << why.to_string();
  EXPECT_THAT(why.message(), HasSubstr("x [2, 4], u [3, 4]"));
  EXPECT_THAT(why.message(), HasSubstr("'Add_b'"));
  EXPECT_THAT(why.message(), ::testing::Not(HasSubstr("mend")));
  EXPECT_TRUE(context.set_input_shapes({Shape{3, 4}, Shape{3, 4}}).ok());
}

TEST(ChainExecutable, APartThatTakesNoSizesAtAllIsAMistakeOfTheModel) {
  const PairBench bench;
  bench.device->on_prepare = [](const device::PrepareOptions&) -> Status {
    return error(Code::kUnsupportedModel, "fake: no such operator");
  };
  Context context = bench.program.new_context().value();
  const Status why = context.set_input_shapes({Shape{2, 4}, Shape{2, 4}});
  EXPECT_EQ(why.code(), Code::kUnsupportedModel);
  EXPECT_THAT(why.to_string(), HasSubstr("no such operator"));
}

}  // namespace
}  // namespace corelane
