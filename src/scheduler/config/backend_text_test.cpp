#include "scheduler/config/backend_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace corelane::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string again(std::string_view text) {
  const auto parsed = parse_backend(text);
  return parsed ? parsed->text() : parsed.error().to_string();
}

TEST(BackendText, ReadsNestedNames) {
  const auto parsed = parse_backend("A[B[C]]");
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->name, "A");
  ASSERT_EQ(parsed->inner.size(), 1U);
  EXPECT_EQ(parsed->inner[0].name, "B");
  ASSERT_EQ(parsed->inner[0].inner.size(), 1U);
  EXPECT_EQ(parsed->inner[0].inner[0].name, "C");
  EXPECT_TRUE(parsed->inner[0].inner[0].inner.empty());
}

TEST(BackendText, ReadsStagesWithParametersAndFilters) {
  const auto parsed = parse_backend("S[a(k=v, l = two words),(swap)b,_c3]");
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  ASSERT_EQ(parsed->inner.size(), 3U);
  const BackendText& first = parsed->inner[0];
  EXPECT_EQ(first.filter, "");
  EXPECT_EQ(first.parameters.at("k"), "v");
  EXPECT_EQ(first.parameters.at("l"), "two words");
  EXPECT_EQ(parsed->inner[1].filter, "swap");
  EXPECT_EQ(parsed->inner[1].name, "b");
  EXPECT_EQ(parsed->inner[2].name, "_c3");
}

TEST(BackendText, WritesWhatItReadsWithoutBlanks) {
  EXPECT_EQ(again(" S [ a ( k = v ) , ( swap ) b [ c ] ] "), "S[a(k=v),(swap)b[c]]");
  EXPECT_EQ(again("Range(range=\"1,8\")[X]"), "Range(range=\"1,8\")[X]");
  EXPECT_EQ(again("A(k='\"a\", b')"), "A(k='\"a\", b')");
  EXPECT_EQ(again("A(k=\"\",l=' b')"), "A(k=\"\",l=\" b\")");
  EXPECT_EQ(again("A(k=1=2)"), "A(k=1=2)");
}

TEST(BackendText, ListsAreTheInsideOfBrackets) {
  const auto list = parse_backend_list("a(k=v),(swap)b[c,d]");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), 2U);
  EXPECT_EQ(list_text(*list), "a(k=v),(swap)b[c,d]");
}

struct Wrong {
  const char* text;
  const char* says;
};

TEST(BackendText, RefusesWithPlaceAndExpectation) {
  const std::vector<Wrong> all = {
      {"", "expected the name of a backend at character 1, found the end"},
      {"   ", "found the end"},
      {"A[", "expected the name of a backend at character 3, found the end"},
      {"A[B", "expected ',' or ']' at character 4, found the end"},
      {"A]", "at character 2, found \"]\""},
      {"A[B]]", "at character 5, found \"]\""},
      {"A[B](k=v)", "at character 5, found \"(\""},
      {"A[]", "expected the name of a backend at character 3"},
      {"A[b,]", "expected the name of a backend at character 5"},
      {"A[,b]", "expected the name of a backend at character 3"},
      {"[A]", "expected the name of a backend at character 1"},
      {"1A", "expected the name of a backend at character 1"},
      {"A B", "at character 3, found \"B\""},
      {"A-B", "at character 2, found \"-\""},
      {"A::B", "at character 2, found \":\""},
      {"A()", "expected the name of a parameter at character 3"},
      {"A(k)", "expected '=' after the parameter at character 4"},
      {"A(k=)", "expected a value at character 5"},
      {"A(k=v", "expected ',' or ')' at character 6, found the end"},
      {"A(k=\"v)", "expected the closing quote of a value"},
      {"A(k=v,k=w)", "parameter 'k' stands twice"},
      {"(swap b", "expected ')' after the filter"},
      {"()b", "expected the name of a filter"},
      {"a,b", "2 backends with ',' between them, one is allowed"},
      {"A\n", "found \"\\x0a\""},
      {"A\x01", "found \"\\x01\""},
      {"A[\x7f]", "found \"\\x7f\""},
      {"A(k=a\tb\nc)", "found \"\\x0a\""},
      {"A(k=\"\x1b[2J\")", "expected the closing quote of a value"},
      {"\xc3\xa4", "expected the name of a backend at character 1"},
  };
  for (const auto& [text, says] : all) {
    const auto parsed = parse_backend(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Code::kMalformed) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr(says)) << text;
    EXPECT_EQ(parsed.error().message().find_first_of("\n\x1b\x01\x7f"), std::string::npos) << text;
  }
}

TEST(BackendText, NamesHaveALimit) {
  EXPECT_TRUE(parse_backend(std::string(kMaxName, 'a')));
  const auto parsed = parse_backend("A[" + std::string(kMaxName + 1, 'a') + "]");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message(), HasSubstr("the name at character 3 has 129 letters"));
}

TEST(BackendText, RefusesZeroBytes) {
  const std::string text("A\0B", 3);
  const auto parsed = parse_backend(text);
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message(), HasSubstr("\\x00"));
}

std::string nested(std::size_t depth) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += "a[";
  return text + "a" + std::string(depth, ']');
}

TEST(BackendText, NestingHasALimit) {
  EXPECT_TRUE(parse_backend(nested(kMaxNesting)));
  for (const std::size_t depth : {kMaxNesting + 1, std::size_t{20'000}}) {
    const auto parsed = parse_backend(nested(depth));
    ASSERT_FALSE(parsed);
    EXPECT_THAT(parsed.error().message(), HasSubstr("more than 32 brackets"));
    EXPECT_LT(parsed.error().message().size(), 400U);
  }
}

TEST(BackendText, LongTextsAreRefusedUnread) {
  for (const char* filling : {"a", "a[", "(", " ", "a,", "&"}) {
    std::string text;
    while (text.size() < 1 << 20) text += filling;
    const auto parsed = parse_backend(text);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code(), Code::kMalformed);
    EXPECT_LT(parsed.error().message().size(), 400U);
  }
  std::string list = "S[a";
  while (list.size() + 3 < kMaxExpression) list += ",a";
  EXPECT_TRUE(parse_backend(list + "]"));
}

/// A random expression, written with blanks where they are allowed.
BackendText random_backend(std::mt19937_64& random, int depth) {
  const auto below = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
  const std::vector<std::string> values = {"v",     "1,8",  "",  " x", "a b",
                                           "\"q\"", "it's", "[", "k=v"};
  BackendText out;
  out.name = std::string(1, "aB_z"[below(4)]) + std::to_string(below(30));
  if (below(3) == 0) out.filter = "swap";
  for (unsigned i = below(3); i > 0; --i)
    out.parameters["k" + std::to_string(i)] = values[below(static_cast<unsigned>(values.size()))];
  if (depth > 0)
    for (unsigned i = below(4); i > 0; --i) out.inner.push_back(random_backend(random, depth - 1));
  return out;
}

TEST(BackendText, EveryTreeIsReadAsItWasWritten) {
  std::mt19937_64 random(16);
  for (int i = 0; i < 3000; ++i) {
    const BackendText tree = random_backend(random, 3);
    const auto parsed = parse_backend(tree.text());
    ASSERT_TRUE(parsed) << tree.text() << ": " << parsed.error().to_string();
    EXPECT_EQ(*parsed, tree) << tree.text();
  }
}

TEST(BackendText, AnyBytesAreReadOrRefused) {
  std::mt19937_64 random(61);
  constexpr std::string_view kLetters = "aB_9[](),=\"' \t\n\x01\xff&:";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto left = random() % 24; left > 0; --left) text += kLetters[random() % kLetters.size()];
    const auto parsed = parse_backend(text);
    if (!parsed) {
      EXPECT_EQ(parsed.error().code(), Code::kMalformed);
      continue;
    }
    const auto twice = parse_backend(parsed->text());
    ASSERT_TRUE(twice) << text;
    EXPECT_EQ(*twice, *parsed) << text;
  }
}

TEST(SplitParts, DividesAtEachMarkAndTrims) {
  const auto parts = split_parts("model", " a.onnx & b.onnx&\tc ");
  ASSERT_TRUE(parts);
  EXPECT_THAT(*parts, ElementsAre("a.onnx", "b.onnx", "c"));
  EXPECT_THAT(*split_parts("model", "one"), ElementsAre("one"));
}

TEST(SplitParts, RefusesEmptyParts) {
  for (const char* text : {"", " ", "&", "a&", "&a", "a&&b", "a& &b"}) {
    const auto parts = split_parts("model", text);
    ASSERT_FALSE(parts) << text;
    EXPECT_EQ(parts.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(parts.error().message(), HasSubstr("key 'model': given"));
    EXPECT_THAT(parts.error().message(), HasSubstr("is empty"));
  }
}

TEST(SplitParts, TheNumberOfPartsHasALimit) {
  std::string text = "a";
  for (std::size_t i = 1; i < kMaxParts; ++i) text += "&a";
  EXPECT_EQ(split_parts("model", text)->size(), kMaxParts);
  const auto more = split_parts("model", text + "&a");
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message(), HasSubstr("more than 64 parts"));
}

TEST(IsName, TakesLettersDigitsAndUnderscore) {
  for (const char* good : {"a", "_", "TensorrtTensor", "x1"}) EXPECT_TRUE(is_name(good)) << good;
  for (const char* bad : {"", "1a", "a-b", "a b", "a::b", "\xc3\xa4"})
    EXPECT_FALSE(is_name(bad)) << bad;
  EXPECT_FALSE(is_name(std::string(kMaxName + 1, 'a')));
}

}  // namespace
}  // namespace corelane::scheduler
