#include "base/wire.h"

#include <gtest/gtest.h>

#include <array>

namespace corelane {
namespace {

std::vector<WireField> read_all(std::string_view message) {
  std::vector<WireField> all;
  for (WireReader fields(as_byte_span(message)); !fields.at_end();) {
    const auto field = fields.next();
    EXPECT_TRUE(field) << field.error().to_string();
    if (!field) break;
    all.push_back(*field);
  }
  return all;
}

Code code_of(std::string_view message) {
  WireReader fields(as_byte_span(message));
  while (!fields.at_end())
    if (const auto field = fields.next(); !field) return field.error().code();
  return Code::kOk;
}

TEST(Wire, FieldsOfEveryTypeAreRead) {
  std::string message;
  append_varint_field(message, 1, 300);
  append_bytes_field(message, 2, "text");
  append_varint(message, (3U << 3U) | 5U);
  message.append(std::string("\x00\x00\xc0\x3f", 4));
  append_varint(message, (4U << 3U) | 1U);
  message.append(std::string("\x01\0\0\0\0\0\0\x80", 8));
  const auto fields = read_all(message);
  ASSERT_EQ(fields.size(), 4U);
  EXPECT_TRUE(fields[0].is_varint(1));
  EXPECT_EQ(fields[0].integer(), 300);
  EXPECT_TRUE(fields[1].is_bytes(2));
  EXPECT_EQ(fields[1].text(), "text");
  EXPECT_EQ(fields[2].number_as_float(), 1.5F);
  EXPECT_EQ(fields[3].value, 0x8000000000000001U);
}

TEST(Wire, RawFieldsTogetherAreTheMessage) {
  std::string message;
  append_varint_field(message, 7, ~std::uint64_t{0});
  append_bytes_field(message, 200'000, std::string(300, 'x'));
  std::string copy;
  for (const WireField& field : read_all(message)) append_raw(copy, field.raw);
  EXPECT_EQ(copy, message);
}

TEST(Wire, OpenFieldsTakeWhatIsAppendedUntilTheyEnd) {
  const std::string large(20'000, 'x');
  std::string message;
  {
    const OpenBytesField outer(message, 3);
    append_varint_field(message, 1, 7);
    {
      const OpenBytesField inner(message, 200'000);
      message += large;
    }
    { const OpenBytesField empty(message, 2); }
    append_bytes_field(message, 4, "end");
  }
  append_varint_field(message, 5, 1);
  const auto top = read_all(message);
  ASSERT_EQ(top.size(), 2U);
  ASSERT_TRUE(top[0].is_bytes(3));
  EXPECT_TRUE(top[1].is_varint(5));
  const auto within = read_all(top[0].text());
  ASSERT_EQ(within.size(), 4U);
  EXPECT_EQ(within[0].integer(), 7);
  ASSERT_TRUE(within[1].is_bytes(200'000));
  EXPECT_EQ(within[1].text(), large);
  EXPECT_EQ(within[2].text(), "");
  EXPECT_EQ(within[3].text(), "end");
}

TEST(Wire, RepeatsTakesTheRestOfAListAndNoOtherField) {
  std::string list;
  for (const std::uint64_t value : {0ULL, 300ULL, ~0ULL}) append_varint_field(list, 8, value);
  std::string floats;
  for (int i = 0; i < 3; ++i) {
    append_varint(floats, (7U << 3U) | 5U);
    floats.append("\x00\x00\xc0\x3f", 4);
  }
  const std::string message = list + floats + "\x12\x01x\x12\x01y" + list.substr(0, 2);
  WireReader fields(as_byte_span(message));
  const auto integer = fields.next();
  ASSERT_TRUE(integer);
  const WireRepeats integers = fields.repeats(*integer);
  EXPECT_EQ(integers.count, 2U);
  EXPECT_EQ(as_string_view(integers.raw), std::string_view(list).substr(2));
  const auto number = fields.next();
  ASSERT_TRUE(number);
  EXPECT_EQ(number->type, WireType::kFixed32);
  EXPECT_EQ(fields.repeats(*number).raw.size(), 10U);
  const auto text = fields.next();
  ASSERT_TRUE(text);
  EXPECT_EQ(fields.repeats(*text).count, 0U) << "texts are read one by one";
  EXPECT_EQ(fields.next()->text(), "y");
  EXPECT_EQ(fields.next()->value, 0U);
  EXPECT_TRUE(fields.at_end());
}

TEST(Wire, RepeatsLeavesADamagedFieldToNext) {
  for (const std::string_view cut : {"\x40\x01\x40", "\x40\x01\x40\x80", "\x45zzzz\x45zz"}) {
    WireReader fields(as_byte_span(cut));
    const auto first = fields.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(fields.repeats(*first).count, 0U);
    EXPECT_EQ(fields.next().error().code(), Code::kMalformed);
  }
}

TEST(Wire, NegativeIntegersTakeTenBytes) {
  std::string message;
  append_varint(message, static_cast<std::uint64_t>(std::int64_t{-1}));
  EXPECT_EQ(message.size(), 10U);
  WireReader numbers(as_byte_span(message));
  EXPECT_EQ(numbers.varint(), ~std::uint64_t{0});
  EXPECT_TRUE(numbers.at_end());
}

TEST(Wire, TakingAVarintThatIsCutOffTakesNothing) {
  const std::array<std::byte, 2> cut{std::byte{0x80}, std::byte{0x80}};
  ByteSpan bytes(cut);
  EXPECT_FALSE(take_varint(bytes));
  EXPECT_EQ(bytes.size(), 2U);
  const std::string eleven(11, '\x80');
  bytes = as_byte_span(eleven);
  EXPECT_FALSE(take_varint(bytes));
}

TEST(Wire, EveryCutOfAMessageIsMalformedOrEndsBetweenFields) {
  std::string message;
  append_bytes_field(message, 2, "text");
  const std::size_t first = message.size();
  append_varint_field(message, 1, 300);
  for (std::size_t size = 1; size < message.size(); ++size)
    EXPECT_EQ(code_of(message.substr(0, size)), size == first ? Code::kOk : Code::kMalformed)
        << size;
}

TEST(Wire, GroupsAndNumbersThatProtobufRefusesAreMalformed) {
  std::string long_key;
  append_varint(long_key, (std::uint64_t{1} << 32) | 8U);
  long_key.push_back('\0');
  for (const std::string& message :
       {std::string("\x0b"), std::string("\x0c"), std::string("\x0e\x01"), std::string("\x0f\x01"),
        std::string("\x00\x01", 2), long_key})
    EXPECT_EQ(code_of(message), Code::kMalformed) << message.size();
}

TEST(Wire, DepthHasOneLimitThatTheFailureNames) {
  EXPECT_TRUE(check_wire_depth(kMaxWireDepth).ok());
  const Status deep = check_wire_depth(kMaxWireDepth + 1);
  EXPECT_EQ(deep.code(), Code::kMalformed);
  EXPECT_EQ(deep.detail(Detail::kLimit), std::to_string(kMaxWireDepth));
}

}  // namespace
}  // namespace corelane
