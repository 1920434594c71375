#include "drivers/virtual/ort/ort_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "corelane/tensor/value.h"
#include "drivers/virtual/ort/ort_engine.h"
#include "drivers/virtual/test_networks.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Encoded TypeProtos.
const std::string kFloats("\x0a\x02\x08\x01", 4);                     // tensor(float)
const std::string kFloatList("\x22\x06\x0a\x04\x0a\x02\x08\x01", 8);  // seq(tensor(float))
const std::string kFloatsOrNothing("\x4a\x06\x0a\x04\x0a\x02\x08\x01",
                                   8);  // optional(tensor(float))
constexpr std::int64_t kOnnxString = 8;
constexpr std::int64_t kOnnxBool = 9;

/// A program with one request, its one input and its one output.
struct Opened {
  std::shared_ptr<device::LaneProgram> program;
  std::unique_ptr<device::LaneRequest> request;

  /// `declared`: what the image says of its outputs.
  explicit Opened(const std::string& model, std::vector<TensorDesc> declared = {}) {
    device::Image image;
    image.kind = "onnx";
    image.bytes = as_byte_span(model);
    image.outputs = std::move(declared);
    auto made = make_ort_engine(1)->prepare(image, {});
    EXPECT_TRUE(made) << made.error().to_string();
    if (!made) return;
    program = std::move(*made);
    request = std::move(*program->new_request(1, 0));
  }

  /// The output for the flat form in `bytes`.
  Result<ValueView> run(ByteSpan bytes) const {
    void* const data = const_cast<std::byte*>(bytes.data());
    CORELANE_TRY(request->set_input(0, {data, bytes.size(), flat_view(bytes).shape, nullptr}));
    CORELANE_TRY(request->run(1));
    CORELANE_ASSIGN(const device::TensorRef out, request->output(0));
    return read_value(ByteSpan(static_cast<const std::byte*>(out.data), out.size));
  }
};

std::string same_strings() {
  return NetworkBuilder()
      .input("s", {-1, 2}, kOnnxString)
      .node("Identity", {"s"}, {"y"})
      .output("y", {-1, 2}, kOnnxString)
      .bytes();
}

ByteVector flat_strings(const Shape& shape, const std::vector<std::string_view>& words) {
  ValueBuilder builder;
  return builder.strings(shape, words).finish().value();
}

ByteVector flat_list(std::size_t count) {
  static const float numbers[3] = {1, 2, 3};
  ValueBuilder builder;
  builder.sequence(count);
  for (std::size_t i = 0; i < count; ++i)
    builder.tensor({numbers, sizeof(numbers), DType::kF32, Shape{3}, {}, {}});
  return builder.finish().value();
}

TEST(OrtValues, StringsPassAsTheyAre) {
  const Opened opened(same_strings());
  EXPECT_EQ(opened.program->inputs()[0].to_string(), "s: tensor(string) [?, 2]");
  const std::vector<std::string_view> words = {"a", "", std::string_view("x\0y", 3), "gr\xc3\xbcn"};
  const ByteVector bytes = flat_strings({2, 2}, words);
  EXPECT_EQ(opened.run(bytes)->strings(), words);
  // Other words in the same memory, as a caller leaves them there.
  ByteVector place = flat_strings({1, 2}, {"one", "two"});
  EXPECT_THAT(opened.run(place)->strings(), ElementsAre("one", "two"));
  const ByteVector other = flat_strings({1, 2}, {"six", "ten"});
  std::copy(other.begin(), other.end(), place.begin());
  EXPECT_THAT(opened.run(place)->strings(), ElementsAre("six", "ten"));
}

TEST(OrtValues, MemoryThatIsNotAlignedIsTaken) {
  const Opened opened(NetworkBuilder()
                          .typed_input("q", kFloatList)
                          .node("Identity", {"q"}, {"y"})
                          .typed_output("y", kFloatList)
                          .bytes());
  const ByteVector bytes = flat_list(2);
  ByteVector shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  const auto out = opened.run(ByteSpan(shifted).subspan(1));
  ASSERT_TRUE(out) << out.error().to_string();
  EXPECT_EQ(static_cast<const float*>(out->items()[1].tensor().data)[2], 3.0F);
  EXPECT_EQ(opened.run(flat_list(0))->size(), 0U);
}

TEST(OrtValues, BytesOfAnotherTypeOrNoneAreRefused) {
  const Opened opened(same_strings());
  const auto list = opened.run(flat_list(1));
  EXPECT_EQ(list.error().code(), Code::kTypeMismatch);
  EXPECT_THAT(list.error().message(), HasSubstr("input 's'"));
  EXPECT_EQ(opened.run(flat_strings({1}, {"a"})).error().code(), Code::kShapeMismatch);
  EXPECT_EQ(opened.run(ByteVector(64)).error().code(), Code::kMalformed);
  EXPECT_THAT(opened.run(flat_strings({1, 2}, {"a", "b"}))->strings(), ElementsAre("a", "b"));
}

TEST(OrtValues, NothingBoundIsAWrongState) {
  const Opened opened(same_strings());
  EXPECT_EQ(opened.request->run(1).code(), Code::kWrongState);
}

TEST(OrtValues, AnOptionalMayHoldNothing) {
  const Opened opened(NetworkBuilder()
                          .typed_input("o", kFloatsOrNothing)
                          .node("OptionalHasElement", {"o"}, {"y"})
                          .output("y", {}, kOnnxBool)
                          .bytes(18));
  const float number = 1;
  for (const bool there : {false, true, false}) {
    ValueBuilder builder;
    builder.optional(there);
    if (there) builder.tensor({&number, 4, DType::kF32, Shape{1}, {}, {}});
    const ByteVector bytes = builder.finish().value();
    void* const data = const_cast<std::byte*>(bytes.data());
    ASSERT_TRUE(
        opened.request->set_input(0, {data, bytes.size(), flat_view(bytes).shape, nullptr}).ok());
    const Status ran = opened.request->run(1);
    ASSERT_TRUE(ran.ok()) << ran.to_string();
    EXPECT_EQ(*static_cast<const bool*>(opened.request->output(0)->data), there);
  }
}

TEST(OrtValues, RanksThatAreNotDeclaredAreThoseOfTheRun) {
  const Opened opened(NetworkBuilder()
                          .typed_input("x", kFloats)
                          .node("Add", {"x", "x"}, {"y"})
                          .typed_output("y", kFloats)
                          .bytes());
  EXPECT_TRUE(opened.program->outputs()[0].any_rank);
  const float numbers[4] = {1, 2, 3, 4};
  for (const Shape& shape : {Shape{2, 2}, Shape{4}, Shape{1, 4, 1}}) {
    ValueBuilder builder;
    const ByteVector bytes =
        builder.tensor({numbers, sizeof(numbers), DType::kF32, shape, {}, {}}).finish().value();
    void* const data = const_cast<std::byte*>(bytes.data());
    ASSERT_TRUE(
        opened.request->set_input(0, {data, bytes.size(), flat_view(bytes).shape, nullptr}).ok());
    ASSERT_TRUE(opened.request->run(1).ok());
    EXPECT_EQ(opened.request->output(0)->shape, shape);
  }
}

/// A run may still give any rank.
TEST(OrtValues, AnOutputWithoutARankIsDescribedAsItIsDeclaredWhereThatIsOpen) {
  const std::string model = NetworkBuilder()
                                .typed_input("x", kFloats)
                                .node("Add", {"x", "x"}, {"y"})
                                .typed_output("y", kFloats)
                                .bytes();
  const auto described = [&](const Shape& declared) {
    TensorDesc y;
    y.name = "y";
    y.dtype = DType::kF32;
    y.shape = declared;
    return Opened(model, {y}).program->outputs()[0];
  };
  EXPECT_EQ(described({Shape::kOpen, 1}).shape, (Shape{Shape::kOpen, 1}));
  EXPECT_TRUE(described({Shape::kOpen, 1}).any_rank);
  EXPECT_EQ(described({2, 1}).shape, Shape{Shape::kOpen});
  EXPECT_EQ(described({}).shape, Shape{Shape::kOpen});
}

/// Each ended the process; where a rank is declared the run was refused.
TEST(OrtValues, EmptyTensorsThatTheEngineCannotTakeAreRefusedWithoutADeclaredRankToo) {
  const Opened unique(
      NetworkBuilder()
          .typed_input("x", kFloats)
          .node("Unique", {"x"}, {"y"}, "unlike", {NetworkBuilder::int_attribute("axis", 0)})
          .typed_output("y", kFloats)
          .bytes());
  const Opened steps(NetworkBuilder()
                         .typed_input("x", kFloats)
                         .floats("w", {1, 3, 1}, {1, 1, 1})
                         .floats("r", {1, 3, 1}, {1, 1, 1})
                         .node("GRU", {"x", "w", "r"}, {"all", "y"}, "steps",
                               {NetworkBuilder::int_attribute("hidden_size", 1)})
                         .output("y", {1, -1, 1})
                         .bytes());
  const auto run = [](const Opened& opened, const Shape& shape, std::size_t elements) {
    static const float numbers[4] = {1, 2, 3, 4};
    ValueBuilder builder;
    const ByteVector bytes =
        builder.tensor({numbers, elements * sizeof(float), DType::kF32, shape, {}, {}})
            .finish()
            .value();
    void* const data = const_cast<std::byte*>(bytes.data());
    EXPECT_TRUE(
        opened.request->set_input(0, {data, bytes.size(), flat_view(bytes).shape, nullptr}).ok());
    return opened.request->run(1);
  };
  for (int round = 0; round < 2; ++round) {
    const Status slices = run(unique, Shape{3, 0}, 0);
    EXPECT_EQ(slices.code(), Code::kUnsupported);
    EXPECT_THAT(slices.message(), HasSubstr("node unlike (Unique)"));
    EXPECT_TRUE(run(unique, Shape{2, 2}, 4).ok());
    EXPECT_THAT(run(steps, Shape{2, 0, 1}, 0).message(), HasSubstr("steps (GRU)"));
    EXPECT_TRUE(run(steps, Shape{2, 1, 1}, 2).ok());
  }
}

TEST(OrtValues, BoundMemoryThatIsTooSmallIsSaid) {
  const Opened opened(same_strings());
  ByteVector room(8);
  ASSERT_TRUE(opened.request->set_output(0, {room.data(), room.size(), Shape{8}, nullptr}).ok());
  EXPECT_FALSE(opened.run(flat_strings({1, 2}, {"a", "b"})));
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu::ort
