#include "corelane/runtime/output_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corelane/program/program_file.h"
#include "corelane/runtime/compile_chain.h"
#include "corelane/runtime/program.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane {
namespace {

using testing::OnnxBuilder;
using Row = std::vector<std::optional<Shape>>;
using ::testing::ElementsAre;

std::shared_ptr<const ProgramFile> file_of(const std::string& onnx,
                                           const std::vector<std::vector<Shape>>& sets = {}) {
  CompileOptions options;
  options.import.shape_sets = sets;
  return ProgramFile::from_bytes(compile_bytes(as_byte_span(onnx), options).value()).value();
}

TEST(OutputShapes, AreDeclaredOrFollowFromTheSets) {
  const std::vector<OnnxBuilder::Dim> fixed{std::int64_t{2}, std::int64_t{3}};
  EXPECT_THAT(output_shapes(*file_of(testing::relu_model(fixed))).value(),
              ElementsAre(Row{Shape{2, 3}}));
  const std::vector<OnnxBuilder::Dim> open{std::string("n"), std::int64_t{3}};
  EXPECT_THAT(
      output_shapes(*file_of(testing::relu_model(open), {{Shape{1, 3}}, {Shape{4, 3}}})).value(),
      ElementsAre(Row{Shape{1, 3}}, Row{Shape{4, 3}}));
  EXPECT_THAT(output_shapes(*file_of(testing::relu_model(open))).value(),
              ElementsAre(Row{std::nullopt}))
      << "open, and no sets";
}

/// The part that stands for all has no network of its own.
TEST(OutputShapes, OfAChainFollowFromPartToPart) {
  const std::vector<OnnxBuilder::Dim> open{std::string("n"), std::int64_t{3}};
  const std::string onnx = OnnxBuilder()
                               .input("x", open)
                               .output("y", open)
                               .node("Relu", {"x"}, {"r"})
                               .node("Abs", {"r"}, {"y"})
                               .build();
  CompileOptions options;
  options.import.shape_sets = {{Shape{1, 3}}, {Shape{4, 3}}};
  const std::vector<CutNames> cuts{{"r"}};
  const auto bytes = compile_chain(as_byte_span(onnx), cuts, options);
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  const auto file = ProgramFile::from_bytes(*bytes).value();
  ASSERT_TRUE(file->is_chain());
  EXPECT_THAT(output_shapes(*file).value(), ElementsAre(Row{Shape{1, 3}}, Row{Shape{4, 3}}));
}

TEST(OutputShapes, AScalarIsOneWhereItIsKnown) {
  const std::string onnx = OnnxBuilder()
                               .input("x", {std::int64_t{5}})
                               .output("y", {})
                               .node("ReduceMax", {"x"}, {"y"}, {},
                                     {OnnxBuilder::attribute("keepdims", std::int64_t{0})})
                               .build();
  EXPECT_THAT(output_shapes(*file_of(onnx)).value(), ElementsAre(Row{Shape{}}));
}

}  // namespace
}  // namespace corelane
