#include "adapters/ggml/plugin/ggml_stats.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace corelane::ggml {
namespace {

TEST(PluginStats, AreOneLineOfJsonThatCountsByReason) {
  Stats stats;
  stats.count(Answer::kYes);
  stats.count(Answer::kFewRows);
  stats.count(Answer::kFewRows);
  stats.offloaded(true, false);
  stats.offloaded(true, true);
  const std::string line = stats.json(nullptr);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json.at("asked").at("yes"), 1);
  EXPECT_EQ(json.at("asked").at("few_rows"), 2);
  EXPECT_EQ(json.at("asked").at("memory"), 0);
  EXPECT_EQ(json.at("offloaded").at("weights"), 2);
  EXPECT_EQ(json.at("offloaded").at("int4"), 1);
  EXPECT_EQ(json.at("products").at("conversions"), 0);
}

}  // namespace
}  // namespace corelane::ggml
