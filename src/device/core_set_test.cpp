#include "corelane/device/core_set.h"

#include <gtest/gtest.h>

namespace corelane::device {
namespace {

TEST(CoreSet, AnyPlatformAndCoreZeroAreDifferent) {
  EXPECT_NE(CoreSet::any(), CoreSet::of({0}));
  EXPECT_NE(CoreSet::any(), CoreSet::platform());
  EXPECT_NE(CoreSet::platform(), CoreSet::first(3));
  EXPECT_EQ(CoreSet(), CoreSet::any(1));
}

TEST(CoreSet, AnyOfSomeIsNeitherAnyNorTheMask) {
  const CoreSet some = CoreSet::any_of(CoreSet::of({1, 3}));
  EXPECT_NE(some, CoreSet::of({1, 3}));
  EXPECT_NE(some, CoreSet::any());
  EXPECT_NE(some, CoreSet::any_of(CoreSet::of({1, 3}), 2));
  EXPECT_FALSE(some.is_mask());
  EXPECT_EQ(some.bits(), 0U);
  EXPECT_EQ(some.among(), 0b1010U);
  EXPECT_EQ(some.count(), 1U);
  EXPECT_EQ(CoreSet::of({2}).among(), 0b100U);
  EXPECT_EQ(CoreSet::any(2).among(), CoreSet::first(64).bits());
}

TEST(CoreSet, SetOperationsWorkOnMasks) {
  const CoreSet left = CoreSet::of({0, 2});
  const CoreSet right = CoreSet::of({2, 5});
  EXPECT_EQ(left | right, CoreSet::of({0, 2, 5}));
  EXPECT_EQ(left & right, CoreSet::of({2}));
  EXPECT_EQ(left - right, CoreSet::of({0}));
  EXPECT_EQ(CoreSet::first(64).bits(), ~std::uint64_t{0});
  EXPECT_EQ(CoreSet::of({64, 99}).bits(), 0U);
  EXPECT_TRUE((left - left).empty());
}

TEST(CoreSet, CountIsWhatAJobTakes) {
  EXPECT_EQ(CoreSet::any(3).count(), 3U);
  EXPECT_EQ(CoreSet::of({1, 4}).count(), 2U);
  EXPECT_EQ(CoreSet::platform().count(), 0U);
}

TEST(CoreSet, CheckNamesWhatIsAllowed) {
  EXPECT_TRUE(CoreSet::platform().check(1).ok());
  EXPECT_TRUE(CoreSet::any(3).check(3).ok());
  EXPECT_EQ(CoreSet::any(4).check(3).code(), Code::kInvalidArgument);
  EXPECT_EQ(CoreSet::any(0).check(3).code(), Code::kInvalidArgument);
  EXPECT_EQ(CoreSet::of({}).check(3).code(), Code::kInvalidArgument);
  const Status status = CoreSet::of({1, 3}).check(3);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("0 to 2"), std::string::npos);
  EXPECT_TRUE(CoreSet::any_of(CoreSet::of({0, 2}), 2).check(3).ok());
  for (const CoreSet& wrong :
       {CoreSet::any_of(CoreSet::of({0, 3})), CoreSet::any_of(CoreSet::of({0, 2}), 3),
        CoreSet::any_of(CoreSet::of({})), CoreSet::any_of(CoreSet::of({0}), 0),
        CoreSet::any_of(CoreSet::of({0}), 257)})
    EXPECT_EQ(wrong.check(3).code(), Code::kInvalidArgument) << wrong.to_string();
}

TEST(CoreSet, TextGoesThereAndBack) {
  for (const CoreSet& set :
       {CoreSet::any(), CoreSet::any(7), CoreSet::platform(), CoreSet::of({0}),
        CoreSet::of({0, 2, 63}), CoreSet::first(64), CoreSet::any_of(CoreSet::of({0, 63})),
        CoreSet::any_of(CoreSet::first(64), 7)})
    EXPECT_EQ(parse_core_set(set.to_string()).value(), set) << set.to_string();
  EXPECT_EQ(parse_core_set("all").value(), CoreSet::platform());
  for (const char* text : {"", "x", "any:", "any:0", "any:65", "0,", ",1", "64", "0;1", "-1",
                           "any@", "@1", "any:0@1", "any@any", "0@1", "any@1@2", "platform@1"})
    EXPECT_EQ(parse_core_set(text).error().code(), Code::kInvalidArgument) << text;
}

}  // namespace
}  // namespace corelane::device
