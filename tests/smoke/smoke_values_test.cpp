// Strings, sequences and maps through every way to run a program.
#include <gmock/gmock.h>

#include "corelane/onnx/onnx_import.h"
#include "corelane/program/program_file.h"
#include "corelane/session/session.h"
#include "corelane/tensor/value.h"
#include "smoke_support.h"

namespace corelane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::load;
using testing::on;
using testing::OnnxBuilder;
using testing::own_device;

constexpr int kOnnxString = 8;

/// y = s, two strings a row.
std::string strings_model() {
  return OnnxBuilder()
      .input("s", {"n", 2}, kOnnxString)
      .output("y", {"n", 2}, kOnnxString)
      .node("Identity", {"s"}, {"y"})
      .build("strings");
}

ByteVector flat(const std::vector<std::string_view>& words) {
  ValueBuilder builder;
  builder.strings({static_cast<std::int64_t>(words.size() / 2), 2}, words);
  return builder.finish().value();
}

std::vector<std::string_view> strings_of(const TensorView& view) {
  const ByteSpan bytes(static_cast<const std::byte*>(view.data), view.size);
  const auto value = read_value(bytes);
  EXPECT_TRUE(value) << value.error().to_string();
  return value ? value->strings() : std::vector<std::string_view>();
}

TEST(SmokeValues, AContextTakesTheFlatFormInEachWay) {
  const Program program = load(strings_model(), on(own_device()));
  EXPECT_TRUE(program.engine().engine.starts_with("ONNX Runtime "));
  Context context = program.new_context().value();
  EXPECT_EQ(context.inputs()[0].value.to_string(), "tensor(string)");
  EXPECT_EQ(context.outputs()[0].value.to_string(), "tensor(string)");
  const ByteVector two = flat({"a", "b"});
  ASSERT_TRUE(context.bind_input(0, flat_view(two)).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_THAT(strings_of(*context.output(0)), ElementsAre("a", "b"));
  const ByteVector four = flat({"one", "two", "three", "four"});
  ASSERT_TRUE(context.set_input(0, flat_view(four)).ok());
  ByteVector room(1024);
  ASSERT_TRUE(
      context.bind_output(0, {room.data(), room.size(), DType::kU8, Shape{Shape::kOpen}, {}, {}})
          .ok());
  RunOptions options;
  options.timeout = std::chrono::seconds(60);
  ASSERT_TRUE(context.run(options).ok());
  EXPECT_THAT(strings_of(*context.output(0)), ElementsAre("one", "two", "three", "four"));
  ASSERT_TRUE(context.submit()->wait().ok());
  EXPECT_EQ(read_value(room)->size(), 4U);
}

TEST(SmokeValues, NothingIsConvertedToBytes) {
  const Program program = load(strings_model(), on(own_device()));
  Context context = program.new_context().value();
  const std::vector<float> x(8, 1);
  const Status floats = context.bind_input(0, testing::in_view(x, Shape{8}));
  EXPECT_EQ(floats.code(), Code::kTypeMismatch);
  EXPECT_THAT(floats.message(), HasSubstr("tensor(string)"));
  const ByteVector bytes(64);
  ASSERT_TRUE(context.bind_input(0, flat_view(bytes)).ok());
  EXPECT_EQ(context.run().code(), Code::kMalformed);
}

TEST(SmokeValues, ASessionTakesThemOneByOneAndSplitsNone) {
  SessionOptions options;
  options.load = on(own_device());
  options.output_form = OutputForm::kFloat;
  options.input_rules = InputRules::kLenient;
  Session session = Session::create(as_byte_span(strings_model()), options).value();
  const ByteVector bytes = flat({"a", "b"});
  const Feed feed = {{"s", flat_view(bytes), nullptr}};
  const Outputs outputs = session.run(feed).value();
  EXPECT_EQ(outputs[0].value.to_string(), "tensor(string)");
  EXPECT_THAT(strings_of(outputs[0].view()), ElementsAre("a", "b"));
  EXPECT_THAT(strings_of(session.submit(feed)->get()->front().view()), ElementsAre("a", "b"));
  const auto batch = session.run_batch(feed);
  EXPECT_EQ(batch.error().code(), Code::kUnsupported);
  EXPECT_THAT(batch.error().message(), HasSubstr("'s'"));
  const std::vector<float> x(8, 1);
  EXPECT_EQ(session.run({{"s", testing::in_view(x, Shape{8}), nullptr}}).error().code(),
            Code::kTypeMismatch);
}

TEST(SmokeValues, AnEngineThatCannotSaysSo) {
  LoadOptions options = on(own_device());
  options.engine = "openvino";
  const auto program = Program::load(as_byte_span(strings_model()), options);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(program.error().message(), HasSubstr("input 's' is a tensor(string)"));
}

TEST(SmokeValues, AProgramFileKeepsThem) {
  const auto imported = import_onnx(as_byte_span(strings_model()), {}).value();
  ProgramWriter writer(imported.description);
  writer.add_segment(SegmentKind::kGraph, "", imported.graph);
  const ByteVector file = writer.finish().value();
  auto program = Program::load(file, on(own_device()));
  ASSERT_TRUE(program) << program.error().to_string();
  Context context = program->new_context().value();
  const ByteVector bytes = flat({"a", "b"});
  ASSERT_TRUE(context.bind_input(0, flat_view(bytes)).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_THAT(strings_of(*context.output(0)), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace corelane
