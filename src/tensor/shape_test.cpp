#include "corelane/tensor/shape.h"

#include <gtest/gtest.h>

namespace corelane {
namespace {

TEST(Shape, RankZeroIsAScalarOfOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0U);
  EXPECT_TRUE(scalar.is_static());
  EXPECT_EQ(scalar.elements(), 1U);
  EXPECT_EQ(scalar.to_string(), "[]");
}

TEST(Shape, ElementsAreTheProductUnlessOpenOrTooMany) {
  EXPECT_EQ(Shape({1, 3, 4, 5}).elements(), 60U);
  EXPECT_EQ(Shape({1, Shape::kOpen}).elements(), std::nullopt);
  EXPECT_EQ(Shape({-7}).elements(), std::nullopt);
  EXPECT_EQ(Shape({INT64_MAX, 4}).elements(), std::nullopt);
  EXPECT_EQ(Shape({INT64_MAX, INT64_MAX, 0}).elements(), 0U);
  EXPECT_EQ(Shape({0, Shape::kOpen}).elements(), std::nullopt);
}

TEST(Shape, OpenDimensionAcceptsAnySize) {
  const Shape declared{Shape::kOpen, 3, 224};
  EXPECT_TRUE(declared.accepts({1, 3, 224}));
  EXPECT_TRUE(declared.accepts({0, 3, 224}));
  EXPECT_FALSE(declared.accepts({1, 4, 224}));
  EXPECT_FALSE(declared.accepts({1, 3}));
  EXPECT_FALSE(declared.accepts({Shape::kOpen, 3, 224}));
  EXPECT_FALSE(declared.is_static());
}

TEST(Shape, TextShowsOpenDimensions) {
  EXPECT_EQ(Shape({1, Shape::kOpen, 7}).to_string(), "[1, ?, 7]");
}

TEST(ParseShape, ReadsBothSpellingsAndItsOwnText) {
  EXPECT_EQ(parse_shape("1,3,224,224").value(), Shape({1, 3, 224, 224}));
  EXPECT_EQ(parse_shape("1x3x224x224").value(), Shape({1, 3, 224, 224}));
  EXPECT_EQ(parse_shape(" ?, -1 ,0 ").value(), Shape({-1, -1, 0}));
  EXPECT_EQ(parse_shape("7").value(), Shape({7}));
  for (const Shape& s : {Shape(), Shape({1, -1, 7}), Shape({9})})
    EXPECT_EQ(parse_shape(s.to_string()).value(), s);
}

TEST(ParseShape, NamesTheTokenThatIsNotADimension) {
  for (const char* bad : {"", "1,,2", "1,a", "1.5", "-2", "1,2,", "99999999999999999999", "1 2"}) {
    const auto r = parse_shape(bad);
    ASSERT_FALSE(r) << bad;
    EXPECT_EQ(r.error().code(), Code::kInvalidArgument);
  }
  EXPECT_NE(parse_shape("1,wide").error().message().find("'wide'"), std::string::npos);
}

}  // namespace
}  // namespace corelane
