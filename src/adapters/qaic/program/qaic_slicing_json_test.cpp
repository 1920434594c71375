// The JSON of slicing specifications: what is read, and that everything else is refused.
#include "adapters/qaic/program/qaic_slicing_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace corelane::qaic {
namespace {

using ::testing::HasSubstr;

const std::string kGood = R"({"BufferSpecs": [
  {"Name": "past_key\\.[0-9]+.*", "ElemSize": 4, "DimSpecs":
    [{"start": "batch_index"}, {"start": 0}, {"start": "ctx_start"}, {"start": 7}]},
  {"Name": "mask", "ElemSize": 1, "DimSpecs": []}]})";

std::string refusal(const std::string& json) {
  const auto read = read_slicing(json);
  EXPECT_FALSE(read) << json;
  if (read) return {};
  EXPECT_EQ(read.error().code(), Code::kMalformed);
  return read.error().message();
}

TEST(QaicSlicingJson, NamesNumbersAndParametersAreRead) {
  const auto rules = read_slicing(kGood).value();
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].name, "past_key\\.[0-9]+.*");
  EXPECT_EQ(rules[0].element_size, 4U);
  ASSERT_EQ(rules[0].starts.size(), 4U);
  EXPECT_EQ(rules[0].starts[0].parameter, "batch_index");
  EXPECT_TRUE(rules[0].starts[1].parameter.empty());
  EXPECT_EQ(rules[0].starts[1].constant, 0);
  EXPECT_EQ(rules[0].starts[3].constant, 7);
  EXPECT_TRUE(rules[1].starts.empty());
}

TEST(QaicSlicingJson, WhatIsWrongIsNamedByItsPlace) {
  const auto with = [](const std::string& entry) {
    return refusal(R"({"BufferSpecs": [)" + entry + "]}");
  };
  EXPECT_THAT(refusal(""), HasSubstr("it is not JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("it is not an object with BufferSpecs"));
  EXPECT_THAT(refusal(R"({"BufferSpecs": {}})"), HasSubstr("not a list of 1 to 1024"));
  EXPECT_THAT(refusal(R"({"BufferSpecs": []})"), HasSubstr("not a list of 1 to 1024"));
  EXPECT_THAT(refusal(R"({"BufferSpecs": [], "More": 1})"),
              HasSubstr("'More', which is not known"));
  EXPECT_THAT(with("1"),
              HasSubstr("BufferSpecs[0] is not an object with Name, ElemSize, DimSpecs"));
  EXPECT_THAT(with(R"({"Name": "a", "DimSpecs": []})"),
              HasSubstr("BufferSpecs[0] has no 'ElemSize'"));
  EXPECT_THAT(with(R"({"Name": 1, "ElemSize": 1, "DimSpecs": []})"),
              HasSubstr("Name is not a text"));
  for (const char* const size : {"0", "-4", "1.5", "\"4\"", "18446744073709551615", "1e3"})
    EXPECT_THAT(with(std::string(R"({"Name": "a", "DimSpecs": [], "ElemSize": )") + size + "}"),
                HasSubstr("BufferSpecs[0].ElemSize is not a whole number of at least 1"))
        << size;
  const auto start = [&](const std::string& text) {
    return with(R"({"Name": "a", "ElemSize": 4, "DimSpecs": [{"start": 0}, )" + text + "]}");
  };
  EXPECT_THAT(start("{}"), HasSubstr("BufferSpecs[0].DimSpecs[1] has no 'start'"));
  EXPECT_THAT(start(R"({"start": 0, "stop": 4})"), HasSubstr("'stop', which is not known"));
  EXPECT_THAT(start(R"({"start": -1})"),
              HasSubstr("DimSpecs[1].start (or a parameter) is not a whole"));
  EXPECT_THAT(start(R"({"start": null})"), HasSubstr("is not a whole number"));
  EXPECT_THAT(start(R"({"start": ""})"), HasSubstr("a name of 0 characters"));
  EXPECT_THAT(start("{\"start\": \"" + std::string(65, 'p') + "\"}"),
              HasSubstr("of 65 characters"));
}

TEST(QaicSlicingJson, SizeDepthAndCountsAreBounded) {
  EXPECT_THAT(refusal(std::string((256 << 10) + 1, ' ')), HasSubstr("at most 262144 are allowed"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("lie 100000 deep; at most 8"));
  EXPECT_THAT(refusal("\"" + std::string(1000, 'x')).size(), ::testing::Lt(400U));
  // Brackets in texts are none, also after a quote that is written out.
  EXPECT_THAT(refusal(R"({"BufferSpecs": "\"[[[[[[[[[[[["})"), HasSubstr("not a list of 1"));
  const std::string one = R"({"Name": "a", "ElemSize": 4, "DimSpecs": []})";
  std::string many;
  for (int i = 0; i < 1025; ++i) many += (i == 0 ? "" : ",") + one;
  EXPECT_THAT(refusal(R"({"BufferSpecs": [)" + many + "]}"), HasSubstr("1 to 1024"));
  std::string dims;
  for (int i = 0; i < 33; ++i) dims += std::string(i == 0 ? "" : ",") + R"({"start": 0})";
  EXPECT_THAT(
      refusal(R"({"BufferSpecs": [{"Name": "a", "ElemSize": 4, "DimSpecs": [)" + dims + "]}]}"),
      HasSubstr("at most 32 dimensions"));
}

/// Every beginning of it, and 10,000 mutants: read, or refused with a Status.
TEST(QaicSlicingJson, TruncatedAndDamagedTextIsAnError) {
  for (std::size_t size = 0; size < kGood.size(); ++size)
    EXPECT_FALSE(read_slicing(kGood.substr(0, size))) << size;
  std::mt19937 random(19);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::string letters = "{}[]\",:\\0-9e.\x80\xff\x01nft";
  std::size_t read = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text = kGood;
    for (std::size_t n = 1 + below(4); n > 0; --n) {
      const std::size_t at = below(text.size());
      if (below(3) == 0)
        text.erase(at, 1 + below(8));
      else
        text.insert(at, 1, letters[below(letters.size())]);
    }
    const auto rules = read_slicing(text);
    if (!rules) continue;
    ++read;
    EXPECT_LE(rules->size(), 2U);
    for (const SliceRule& rule : *rules) EXPECT_LE(rule.starts.size(), 4U);
  }
  EXPECT_GT(read, 0U) << "some mutants only change a name";
}

}  // namespace
}  // namespace corelane::qaic
