#include "corelane/tensor/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "corelane/tensor/value_type.h"
#include "tensor/testing/value_copy.h"

namespace corelane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorView view_of(const std::vector<float>& numbers, Shape shape) {
  return {numbers.data(), numbers.size() * sizeof(float), DType::kF32, std::move(shape), {}, {}};
}

TEST(Value, ATensorOfStringsHasItsElementsInPlace) {
  const std::vector<std::string_view> words = {"a", "", std::string_view("x\0y", 3), "\xff"};
  ValueBuilder builder;
  const ByteVector bytes = builder.strings({2, 2}, words).finish().value();
  EXPECT_EQ(bytes.size() % 8, 0U);
  const ValueView value = read_value(bytes).value();
  EXPECT_EQ(value.kind(), ValueKind::kTensor);
  EXPECT_EQ(value.dtype(), DType::kString);
  EXPECT_EQ(value.shape(), (Shape{2, 2}));
  EXPECT_EQ(value.strings(), words);
  EXPECT_EQ(value.string(4), "");
  EXPECT_EQ(value.tensor().data, nullptr);
}

TEST(Value, AnEmptyTensorIsEmptyWhereverItsZeroStands) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 40;
  for (const Shape& shape : {Shape{0, kLarge, kLarge}, Shape{kLarge, kLarge, 0}}) {
    ValueBuilder builder;
    const ByteVector bytes = builder.tensor(view_of({}, shape)).finish().value();
    const auto value = read_value(bytes);
    ASSERT_TRUE(value) << value.error().to_string();
    EXPECT_EQ(value->shape(), shape);
  }
}

TEST(Value, TheExampleOfItsPageIsWritten) {
  const std::vector<std::string_view> words = {"a", "bcd"};
  ValueBuilder builder;
  const ByteVector bytes = builder.strings({2}, words).finish().value();
  const std::string expected(
      "CLV1\0\0\0\0\x40\0\0\0\0\0\0\0\1\x10\1\0\0\0\0\0\2\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
      "abcd\0\0\0\0",
      64);
  EXPECT_EQ(as_string_view(bytes), expected);
}

TEST(Value, ASequenceOfMapsIsReadRowByRow) {
  const std::vector<std::int64_t> keys = {7, 9};
  const std::vector<float> first = {0.25F, 0.75F};
  const std::vector<float> second = {1.0F, 0.0F};
  const TensorView key_view{keys.data(), 16, DType::kI64, Shape{2}, {}, {}};
  ValueBuilder builder;
  builder.sequence(2);
  builder.map(DType::kI64).tensor(key_view).tensor(view_of(first, {2}));
  builder.map(DType::kI64).tensor(key_view).tensor(view_of(second, {2}));
  const ByteVector bytes = builder.finish().value();
  const ValueView value = read_value(bytes).value();
  EXPECT_EQ(value.to_string(), "seq(map(int64,tensor(float)))");
  const std::vector<ValueView> rows = value.items();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].size(), 2U);
  EXPECT_EQ(static_cast<const std::int64_t*>(rows[0].keys().tensor().data)[1], 9);
  EXPECT_EQ(static_cast<const float*>(rows[1].values().tensor().data)[0], 1.0F);
}

TEST(Value, AnOptionalIsThereOrNot) {
  const std::vector<float> numbers = {1, 2, 3};
  ValueBuilder builder;
  const ByteVector some =
      builder.optional(true).sequence(1).tensor(view_of(numbers, {3})).finish().value();
  const ByteVector none = builder.optional(false).finish().value();
  EXPECT_EQ(read_value(some)->items()[0].items()[0].tensor().size, 12U);
  EXPECT_TRUE(read_value(none)->items().empty());
  EXPECT_EQ(read_value(none)->to_string(), "optional(nothing)");
}

TEST(Value, WhatDoesNotGoTogetherIsRefusedAtTheEnd) {
  const std::vector<float> numbers = {1, 2, 3};
  ValueBuilder builder;
  EXPECT_EQ(builder.finish().error().code(), Code::kInvalidArgument);
  EXPECT_EQ(builder.sequence(2).tensor(view_of(numbers, {3})).finish().error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(builder.tensor(view_of(numbers, {4})).finish().error().code(), Code::kInvalidArgument);
  EXPECT_EQ(builder.tensor(view_of(numbers, {-1})).finish().error().code(), Code::kInvalidArgument);
  EXPECT_EQ(builder.strings({2}, {}).finish().error().code(), Code::kInvalidArgument);
  builder.map(DType::kI64).tensor(view_of(numbers, {3})).tensor(view_of(numbers, {3}));
  EXPECT_EQ(builder.finish().error().code(), Code::kInvalidArgument);
  builder.tensor(view_of(numbers, {3})).tensor(view_of(numbers, {3}));
  EXPECT_EQ(builder.finish().error().code(), Code::kInvalidArgument);
}

TEST(Value, TypesAreCheckedByWhatIsInside) {
  const std::vector<float> numbers = {1, 2, 3};
  ValueBuilder builder;
  const ByteVector bytes = builder.sequence(1).tensor(view_of(numbers, {1, 3})).finish().value();
  const ValueView value = read_value(bytes).value();
  EXPECT_TRUE(value.check(*parse_value_type("seq(tensor(float))"), "input 'x'").ok());
  const Status other = value.check(*parse_value_type("seq(tensor(string))"), "input 'x'");
  EXPECT_EQ(other.code(), Code::kTypeMismatch);
  EXPECT_THAT(other.message(), HasSubstr("input 'x'"));
  EXPECT_FALSE(value.check(*parse_value_type("tensor(float)"), "x").ok());
  ValueType shaped = *parse_value_type("seq(tensor(float))");
  shaped.shape = Shape{Shape::kOpen, 3};
  EXPECT_TRUE(value.check(shaped, "x").ok());
  shaped.shape = Shape{2, 3};
  EXPECT_EQ(value.check(shaped, "x").code(), Code::kShapeMismatch);
}

TEST(ValueTypeText, IsTheInverseOfItself) {
  for (const char* text :
       {"tensor(string)", "seq(tensor(float))", "seq(map(int64,tensor(float)))",
        "map(string,tensor(double))", "optional(seq(tensor(uint8)))", "tensor(bfloat16)"}) {
    const auto type = parse_value_type(text);
    ASSERT_TRUE(type) << text;
    EXPECT_EQ(type->to_string(), text);
  }
  for (const char* text : {"", "tensor", "tensor()", "tensor(float", "seq(float)",
                           "map(tensor(float))", "map(x,tensor(float))", "seq(tensor(float)))",
                           "seq()", "seq(seq(seq(seq(seq(seq(seq(seq(seq(tensor(float))))))))))"})
    EXPECT_EQ(parse_value_type(text).error().code(), Code::kMalformed) << text;
}

/// A random value, and the same by the words of a reader.
class RandomValue {
 public:
  explicit RandomValue(std::uint32_t seed) : random_(seed) {}

  ByteVector make() {
    add(0);
    return builder_.finish().value();
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  void add(int depth) {
    switch (depth < 4 ? below(5) : below(2)) {
      case 0:
        return strings({static_cast<std::int64_t>(below(3)), static_cast<std::int64_t>(below(4))});
      case 1:
        return numbers({static_cast<std::int64_t>(below(7))});
      case 2: {
        const std::size_t count = below(4);
        builder_.sequence(count);
        for (std::size_t i = 0; i < count; ++i) add(depth + 1);
        return;
      }
      case 3: {
        const auto pairs = static_cast<std::int64_t>(below(4));
        builder_.map(DType::kString);
        strings({pairs});
        return numbers({pairs});
      }
      default: {
        const bool there = below(2) == 1;
        builder_.optional(there);
        if (there) add(depth + 1);
      }
    }
  }

  void strings(const Shape& shape) {
    std::vector<std::string> kept(*shape.elements());
    for (std::string& s : kept) s.assign(below(12), static_cast<char>('a' + below(26)));
    builder_.strings(shape, std::vector<std::string_view>(kept.begin(), kept.end()));
  }

  void numbers(const Shape& shape) {
    const DType types[] = {DType::kF32, DType::kU8, DType::kI64, DType::kI4, DType::kF64};
    const DType type = types[below(5)];
    const ByteVector bytes(dtype_bytes(type, *shape.elements()), std::byte{1});
    builder_.tensor({bytes.data(), bytes.size(), type, shape, {}, {}});
  }

  std::mt19937 random_;
  ValueBuilder builder_;
};

TEST(ValueProperties, WhatIsReadAndWrittenAgainIsTheSameBytes) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const ByteVector bytes = RandomValue(seed).make();
    ValueBuilder again;
    corelane::testing::copy_value(read_value(bytes).value(), again);
    EXPECT_EQ(again.finish().value(), bytes) << seed;
  }
}

TEST(ValueProperties, EveryTruncationIsRefused) {
  const ByteVector bytes = RandomValue(11).make();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const ByteVector part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(read_value(part)) << size;
  }
}

/// Nothing outside is read, which the address sanitizer sees: each mutant has memory of its own.
TEST(ValueProperties, MutantsAreRefusedOrReadWithinTheirBytes) {
  std::mt19937 random(3);
  std::size_t accepted = 0;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    ByteVector bytes = RandomValue(seed % 97).make();
    for (std::size_t n = 0; n <= random() % 3; ++n) {
      const std::size_t at = random() % bytes.size();
      if (random() % 2 == 0)
        bytes[at] = static_cast<std::byte>(random());
      else
        bytes[at] ^= static_cast<std::byte>(1U << (random() % 8));
    }
    const auto value = read_value(bytes);
    if (!value) {
      EXPECT_EQ(value.error().code(), Code::kMalformed);
      continue;
    }
    ++accepted;
    ValueBuilder again;
    corelane::testing::copy_value(*value, again);
    EXPECT_TRUE(again.finish()) << seed;
    EXPECT_FALSE(value->to_string().empty());
  }
  EXPECT_GT(accepted, 100U);
}

TEST(OnnxValueType, IsReadFromTheMessage) {
  const auto read = [](std::string_view bytes) { return read_onnx_type(as_byte_span(bytes)); };
  // optional { elem_type { sequence { elem_type { tensor { elem_type: FLOAT } } } } }
  const auto deep = read(std::string_view("\x4a\x0a\x0a\x08\x22\x06\x0a\x04\x0a\x02\x08\x01", 12));
  ASSERT_TRUE(deep);
  EXPECT_EQ(deep->to_string(), "optional(seq(tensor(float)))");
  EXPECT_FALSE(deep->shape);
  // map { key_type: INT64 value_type { tensor { elem_type: FLOAT } } }
  const auto map = read(std::string_view("\x2a\x08\x08\x07\x12\x04\x0a\x02\x08\x01", 10));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->to_string(), "map(int64,tensor(float))");
  // tensor { elem_type: STRING shape { dim { dim_param: "n" } dim { dim_value: 2 } } }
  const auto strings =
      read(std::string_view("\x0a\x0d\x08\x08\x12\x09\x0a\x03\x12\x01n\x0a\x02\x08\x02", 15));
  ASSERT_TRUE(strings);
  EXPECT_EQ(*strings->shape, (Shape{Shape::kOpen, 2}));
  EXPECT_THAT(strings->dim_names, ElementsAre("n", ""));
  EXPECT_TRUE(read("")->empty());
  EXPECT_EQ(read(std::string_view("\x42\x02\x08\x01", 4)).error().code(), Code::kUnsupportedModel);
}

TEST(BorderType, NumbersOfAKnownRankStayTensors) {
  ValueType floats = *parse_value_type("tensor(float)");
  EXPECT_FALSE(border_type(floats, true).empty());
  EXPECT_TRUE(border_type(floats, false).empty());
  floats.shape = Shape{2};
  EXPECT_TRUE(border_type(floats, true).empty());
  EXPECT_FALSE(border_type(*parse_value_type("tensor(string)"), false).empty());
  EXPECT_FALSE(border_type(*parse_value_type("seq(tensor(float))"), false).empty());
}

}  // namespace
}  // namespace corelane
