#include "base/nearest_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace corelane {
namespace {

const std::vector<std::string> kKnown = {"instance_num", "batching_timeout", "model", "min", "max"};

TEST(NearestName, FindsAMisspeltName) {
  EXPECT_EQ(nearest_name("instnce_num", kKnown), "instance_num");            // Left out.
  EXPECT_EQ(nearest_name("batching_timeoutt", kKnown), "batching_timeout");  // Added.
  EXPECT_EQ(nearest_name("modal", kKnown), "model");                         // Replaced.
  EXPECT_EQ(nearest_name("mdoel", kKnown), "model");                         // Exchanged: one edit.
  EXPECT_EQ(nearest_name("MODEL", kKnown), "model");                         // The other case.
}

TEST(NearestName, OfTwoAsNearTheFirstIsFound) { EXPECT_EQ(nearest_name("mix", kKnown), "min"); }

TEST(NearestName, FarNamesAreNotGuessed) {
  EXPECT_EQ(nearest_name("threshold", kKnown), "");
  EXPECT_EQ(nearest_name("", kKnown), "");
  EXPECT_EQ(nearest_name("model", {}), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'm'), kKnown), "");
  const std::vector<std::string> longer = {std::string(100'000, 'm')};
  EXPECT_EQ(nearest_name("m", longer), "");
}

TEST(NearestName, HintEndsAMessage) {
  EXPECT_EQ(nearest_hint("modle", kKnown), "; did you mean 'model'?");
  EXPECT_EQ(nearest_hint("threshold", kKnown), "");
}

}  // namespace
}  // namespace corelane
