#include "drivers/virtual/ort/ort_zip_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corelane/tensor/value.h"
#include "drivers/virtual/common/onnx_parts.h"
#include "drivers/virtual/test_networks.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// seq(map(int64,tensor(float))), an encoded TypeProto.
const std::string kRows("\x22\x0c\x0a\x0a\x2a\x08\x08\x07\x12\x04\x0a\x02\x08\x01", 14);

NetworkBuilder classifier() {
  return NetworkBuilder()
      .input("x", {-1, 2})
      .node("Softmax", {"x"}, {"p"})
      .node("ZipMap", {"p"}, {"y"}, "zip",
            {NetworkBuilder::ints_attribute("classlabels_int64s", {3, 7})}, "ai.onnx.ml")
      .typed_output("y", kRows);
}

PatchedModel patched(const std::string& model) {
  device::Image image;
  image.bytes = as_byte_span(model);
  return patch_onnx(image, {}, PatchFor::kOnnxRuntime).value();
}

TEST(OrtZipMap, AtTheEndOfANetworkItIsLeftOut) {
  PatchedModel model = patched(classifier().bytes());
  const ZippedOutputs zipped = unzip_outputs(model).value();
  ASSERT_EQ(zipped.size(), 1U);
  EXPECT_THAT(zipped.at(0).numbers, ElementsAre(3, 7));
  EXPECT_EQ(model.bytes.find("ZipMap"), std::string::npos);
  EXPECT_NE(model.bytes.find("Identity"), std::string::npos);
  EXPECT_EQ(model.outputs[0].type.to_string(), "seq(map(int64,tensor(float)))");
  EXPECT_EQ(patched(model.bytes).outputs[0].type.to_string(), "tensor(float)");
}

TEST(OrtZipMap, KeysAreInAscendingOrderWithTheirColumns) {
  PatchedModel model = patched(
      NetworkBuilder()
          .input("x", {-1, 3})
          .node("Softmax", {"x"}, {"p"})
          .node("ZipMap", {"p"}, {"y"}, "zip",
                {NetworkBuilder::ints_attribute("classlabels_int64s", {7, -1, 3})}, "ai.onnx.ml")
          .typed_output("y", kRows)
          .bytes());
  const ZippedOutputs zipped = unzip_outputs(model).value();
  EXPECT_THAT(zipped.at(0).numbers, ElementsAre(-1, 3, 7));
  const float numbers[3] = {0.7F, -0.1F, 0.3F};
  const ByteVector bytes =
      zip_rows({numbers, 12, DType::kF32, Shape{1, 3}, {}, {}}, zipped.at(0), "y").value();
  const float sorted[3] = {-0.1F, 0.3F, 0.7F};
  const ByteVector alike =
      zip_rows({sorted, 12, DType::kF32, Shape{1, 3}, {}, {}}, ZipLabels{{-1, 3, 7}, {}, {}}, "y")
          .value();
  EXPECT_EQ(bytes, alike);
}

TEST(OrtZipMap, WhereSomethingElseReadsItItStays) {
  PatchedModel read =
      patched(classifier().node("Identity", {"y"}, {"z"}).typed_output("z", kRows).bytes());
  // With lengths in their shortest form, which a graph that is written anew has.
  const std::string before = rewrite_graph(as_byte_span(read.bytes), [](ByteSpan graph) {
                               return Result<std::string>(as_string_view(graph));
                             }).value();
  EXPECT_TRUE(unzip_outputs(read)->empty());
  EXPECT_EQ(read.bytes, before);
}

TEST(OrtZipMap, RowsAreMapsOfTheLabels) {
  const float numbers[4] = {0.25F, 0.75F, 1, 0};
  const TensorView two{numbers, 16, DType::kF32, Shape{2, 2}, {}, {}};
  const ZipLabels texts{{}, {"a", "b"}};
  const ByteVector bytes = zip_rows(two, texts, "y").value();
  const std::vector<ValueView> rows = corelane::read_value(bytes)->items();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[1].keys().strings(), ElementsAre("a", "b"));
  EXPECT_EQ(static_cast<const float*>(rows[0].values().tensor().data)[1], 0.75F);
  const ByteVector one =
      zip_rows({numbers, 8, DType::kF32, Shape{2}, {}, {}}, {{1, 2}, {}}, "y").value();
  EXPECT_EQ(corelane::read_value(one)->items().size(), 1U);
  const ByteVector none =
      zip_rows({nullptr, 0, DType::kF32, Shape{0, 2}, {}, {}}, texts, "y").value();
  EXPECT_EQ(corelane::read_value(none)->size(), 0U);
  const auto wrong = zip_rows(two, {{1, 2, 3}, {}}, "y");
  EXPECT_EQ(wrong.error().code(), Code::kEngineFailed);
  EXPECT_THAT(wrong.error().message(), HasSubstr("3 labels"));
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu::ort
