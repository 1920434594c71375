#include "adapters/ggml/plugin/ggml_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "adapters/ggml/plugin/testing/fake_host.h"

namespace corelane::ggml {
namespace {

struct Product {
  Product(std::int64_t n, std::int64_t k, std::int64_t m, const char* name)
      : weights(fake_tensor(abi::kTypeF16, k, n)),
        activations(fake_tensor(abi::kTypeF32, k, m)),
        node(fake_product(weights, activations)) {
    std::strcpy(node.name, name);
  }
  abi::Tensor weights;
  abi::Tensor activations;
  abi::Tensor node;
};

bool passes(const std::string& text, std::int64_t n, std::int64_t k, std::int64_t m,
            const char* name) {
  Filter filter;
  std::string why;
  EXPECT_TRUE(Filter::parse(text, filter, why)) << why;
  return filter.passes(Product(n, k, m, name).node);
}

TEST(PluginFilter, NoneLetsEverythingPass) {
  EXPECT_TRUE(Filter().passes(Product(64, 32, 8, "out").node));
}

TEST(PluginFilter, AllNumbersAndTheNameCount) {
  const std::string text =
      R"({"pairs": [{"src0": {"row": 64, "col": 32}, "src1": {"row": 8, "col": 32}, "name": "up"}]})";
  EXPECT_TRUE(passes(text, 64, 32, 8, "up"));
  EXPECT_TRUE(passes(text, 64, 32, 8, "up-11")) << "of a layer";
  EXPECT_FALSE(passes(text, 64, 32, 8, "upper"));
  EXPECT_FALSE(passes(text, 64, 32, 9, "up"));
  EXPECT_FALSE(passes(text, 32, 64, 8, "up"));
}

TEST(PluginFilter, WhatIsLeftOutMeansAny) {
  EXPECT_TRUE(passes(R"({"pairs": [{"src0": {"row": 64}}]})", 64, 320, 7, "x"));
  EXPECT_FALSE(passes(R"({"pairs": [{"src0": {"row": 64}}]})", 65, 320, 7, "x"));
  EXPECT_FALSE(passes(R"({"pairs": []})", 64, 320, 7, "x"));
}

TEST(PluginFilter, AnotherTextIsRefusedWithWhatIsExpected) {
  for (const char* text :
       {"", "[]", "{}", R"({"pairs": [{"src0": {"row": "x"}}]})", "{\"pairs\": 3",
        R"({"pairs": [], "mode": 1})", R"({"pairs": [{"source": {"row": 64}}]})",
        R"({"pairs": [{"src0": {"rows": 64}}]})", R"({"pairs": [{"src0": {"row": -64}}]})",
        R"({"pairs": [{"src1": {"row": 16.9}}]})", R"({"pairs": [{"src0": {"row": 1e30}}]})",
        R"({"pairs": [{"src0": {"row": 99999999999999999999}}]})",
        R"({"pairs": [{"src0": {"row": true}}]})", R"({"pairs": [{"src0": 64}]})",
        R"({"pairs": [{"name": 7}]})", R"({"pairs": {"name": "up"}})", R"({"pairs": [3]})"}) {
    Filter filter;
    std::string why;
    EXPECT_FALSE(Filter::parse(text, filter, why)) << text;
    EXPECT_THAT(why, testing::StartsWith(R"(expected {"pairs": [...]})"));
  }
}

TEST(PluginFilter, ASizeThatIsAListOfAnyDepthIsRefusedInAShortLine) {
  for (const std::string& size :
       {std::string("[[7]]"), std::string(200000, '[') + std::string(200000, ']'),
        '"' + std::string(200000, 'x') + '"'}) {
    Filter filter;
    std::string why;
    EXPECT_FALSE(Filter::parse(R"({"pairs": [{"src0": {"row": )" + size + "}}]}", filter, why));
    EXPECT_THAT(why, testing::HasSubstr("src0.row is "));
    EXPECT_LT(why.size(), 200U);
  }
}

TEST(PluginFilter, AFileThatDoesNotServeIsNamed) {
  const std::string file = testing::TempDir() + "filter.json";
  std::ofstream(file) << "[]";
  const std::string pipe = testing::TempDir() + "filter.pipe";
  ::unlink(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);  // Opening it would wait for a writer.
  for (const std::string& path :
       {std::string("/nowhere/filter.json"), file, pipe, testing::TempDir()}) {
    Filter filter;
    std::string why;
    EXPECT_FALSE(Filter::read(path, filter, why));
    EXPECT_THAT(why, testing::StartsWith("GGML_RKNN_FILTER=" + path));
  }
}

}  // namespace
}  // namespace corelane::ggml
