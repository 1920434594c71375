#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corelane/driver/module.h"
#include "drivers/virtual/engine/engine_identity.h"
#include "drivers/virtual/test_programs.h"
#include "drivers/virtual/virtual_engine.h"

// Images that the virtual NPU takes or refuses, and the pre-compiled form.
namespace corelane::drivers::virtual_npu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Else lanes would not look for CPUs of their own.
TEST(VirtualDevice, ItsEngineComputesInTheThreadThatRunsAJob) {
  device::OpenRequest request;
  request.clock = real_clock();
  request.info.cores.resize(2);
  const auto opened = open_virtual_engine(request);
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_TRUE(opened->engine->computes_in_caller());
}

TEST(VirtualImage, StringsAreRefusedByName) {
  const std::string bytes = NetworkBuilder()
                                .input("text", {8}, 8)
                                .node("Identity", {"text"}, {"y"})
                                .output("y", {8}, 8)
                                .bytes();
  const auto program = make_virtual_engine(1)->prepare(onnx_image(bytes), {});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(program.error().message(), HasSubstr("'text'"));
}

TEST(VirtualImage, TypesThatNoConversionReadsAreForTheOtherEngine) {
  for (const int type : {17, 18, 19, 20, 23, 24, 25, 26}) {
    const auto cast = [](std::int64_t to) {
      return NetworkBuilder::Names{NetworkBuilder::int_attribute("to", to)};
    };
    for (const std::string& bytes : {NetworkBuilder()
                                         .input("small", {8}, type)
                                         .node("Cast", {"small"}, {"y"}, "cast", cast(kOnnxFloat))
                                         .output("y", {8})
                                         .bytes(25),
                                     NetworkBuilder()
                                         .input("x", {8})
                                         .node("Cast", {"x"}, {"small"}, "cast", cast(type))
                                         .output("small", {8}, type)
                                         .bytes(25)}) {
      const auto program = make_virtual_engine(1)->prepare(onnx_image(bytes), {});
      ASSERT_FALSE(program) << type;
      EXPECT_EQ(program.error().code(), Code::kUnsupportedModel) << program.error().to_string();
    }
  }
}

TEST(VirtualImage, UnknownOperatorNamesOperatorAndNode) {
  const std::string bytes = NetworkBuilder()
                                .input("x", {8})
                                .node("NoSuchOp", {"x"}, {"y"}, "the_node")
                                .output("y", {8})
                                .bytes();
  const auto program = make_virtual_engine(1)->prepare(onnx_image(bytes), {});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(program.error().message(), HasSubstr("'NoSuchOp'"));
  EXPECT_THAT(program.error().message(), HasSubstr("'the_node'"));
}

TEST(VirtualImage, ForeignImagesAreRefused) {
  device::Image image = onnx_image(relu_network());
  image.kind = "rknn";
  const auto program = make_virtual_engine(1)->prepare(image, {});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kForeignImage);
}

TEST(VirtualImage, PrecompiledFormGivesTheSameResult) {
  const device::Image image = onnx_image(matmul_network(1));
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1} << 20}) {
    device::PrepareOptions options;
    options.replicate_limit = limit;
    const auto compiled = prepare(image, options);
    EXPECT_FALSE(compiled->from_precompiled());
    const auto form = compiled->export_precompiled();
    ASSERT_TRUE(form) << form.error().to_string();
    EXPECT_THAT(form->tag, HasSubstr("openvino-" + engine_version()));
    device::Image again = image;
    again.precompiled = form->bytes;
    again.precompiled_tag = form->tag;
    const auto imported = prepare(again, options);
    EXPECT_TRUE(imported->from_precompiled());
    EXPECT_EQ(imported->inputs(), compiled->inputs());
    EXPECT_EQ(imported->outputs(), compiled->outputs());
    EXPECT_EQ(imported->placement(), compiled->placement());
    for (std::size_t core = 0; core < kLanes; ++core) {
      const auto r = request(*imported, 1, core);
      std::vector<float> x = {1, 10};
      ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 2})).ok());
      ASSERT_TRUE(r->run(1).ok());
      EXPECT_THAT(floats_of(*r, 0), ElementsAre(41, 52, 63));
    }
    EXPECT_EQ(imported->export_precompiled()->bytes, form->bytes);
  }
}

TEST(VirtualImage, PrecompiledFormThatDoesNotFitIsIgnored) {
  const device::Image image = onnx_image(matmul_network(1));
  const auto form = prepare(image)->export_precompiled();
  ASSERT_TRUE(form);
  device::Image other = image;
  other.precompiled = form->bytes;
  other.precompiled_tag = form->tag + "x";
  EXPECT_FALSE(prepare(other)->from_precompiled());
  other.precompiled_tag = form->tag;
  device::PrepareOptions options;
  options.input_shapes = {Shape{2, 2}};
  const auto program = prepare(other, options);
  EXPECT_FALSE(program->from_precompiled());
  EXPECT_EQ(program->outputs()[0].shape, (Shape{2, 3}));
  other.precompiled = ByteSpan(form->bytes).first(form->bytes.size() / 2);
  EXPECT_FALSE(prepare(other)->from_precompiled());
}

TEST(VirtualImage, MalformedImagesAreErrors) {
  for (const std::string& bytes : {std::string(), std::string("junk"), std::string("\x08\x09")}) {
    const auto program = make_virtual_engine(1)->prepare(onnx_image(bytes), {});
    ASSERT_FALSE(program);
    EXPECT_EQ(program.error().code(), Code::kMalformed);
  }
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
