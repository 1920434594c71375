#include "runtime/program/shape_choice.h"

#include <gtest/gtest.h>

namespace corelane::runtime {
namespace {

ProgramDescription two_inputs() {
  ProgramDescription d;
  d.inputs.resize(2);
  d.inputs[0].desc.name = "image";
  d.inputs[0].desc.shape = Shape{-1, 3, 48, -1};
  d.inputs[1].desc.name = "size";
  d.inputs[1].desc.shape = Shape{2};
  return d;
}

ProgramDescription with_sets() {
  ProgramDescription d = two_inputs();
  d.shape_sets = {{Shape{1, 3, 48, 100}, Shape{2}},
                  {Shape{1, 3, 48, 200}, Shape{2}},
                  {Shape{1, 3, 48, 200}, Shape{4}}};
  return d;
}

TEST(ShapeChoice, OpenDimensionsTakeAnySizeAndFixedOnesTheirOwn) {
  const auto d = two_inputs();
  EXPECT_TRUE(check_shapes(d, std::vector{Shape{2, 3, 48, 77}, Shape{2}}).ok());
  const Status wrong = check_shapes(d, std::vector{Shape{2, 4, 48, 77}, Shape{2}});
  EXPECT_EQ(wrong.code(), Code::kShapeMismatch);
  EXPECT_NE(wrong.message().find("image [?, 3, 48, ?], size [2]"), std::string::npos)
      << wrong.message();
}

TEST(ShapeChoice, CountAndOpenDimensionsAreRefused) {
  const auto d = two_inputs();
  EXPECT_EQ(check_shapes(d, std::vector{Shape{2}}).code(), Code::kShapeMismatch);
  const Status open = check_shapes(d, std::vector{Shape{-1, 3, 48, 8}, Shape{2}});
  EXPECT_EQ(open.code(), Code::kShapeMismatch);
  EXPECT_NE(open.message().find("open"), std::string::npos);
}

TEST(ShapeChoice, ClosedListAcceptsItsSetsOnlyAndListsThem) {
  const auto d = with_sets();
  EXPECT_TRUE(check_shapes(d, std::vector{Shape{1, 3, 48, 200}, Shape{4}}).ok());
  const Status wrong = check_shapes(d, std::vector{Shape{1, 3, 48, 100}, Shape{4}});
  EXPECT_EQ(wrong.code(), Code::kShapeMismatch);
  EXPECT_NE(wrong.message().find("one of: image [1, 3, 48, 100], size [2]; "), std::string::npos)
      << wrong.message();
}

TEST(ShapeChoice, SamplesAreTheOpenFirstDimensionTimesTheBatch) {
  auto d = two_inputs();
  EXPECT_EQ(samples_of(d, std::vector{Shape{6, 3, 48, 9}, Shape{2}}), 6U);
  EXPECT_EQ(samples_of(d, declared_shapes(d)), 1U);  // Not chosen yet.
  EXPECT_EQ(samples_of(d, std::vector{Shape{0, 3, 48, 9}, Shape{2}}), 1U);
  d.batch = 4;
  EXPECT_EQ(samples_of(d, std::vector{Shape{6, 3, 48, 9}, Shape{2}}), 24U);
  // Compiled in: dimension 0 is fixed, and the description has counted it.
  d.inputs[0].desc.shape = Shape{4, 3, 48, -1};
  EXPECT_EQ(samples_of(d, std::vector{Shape{4, 3, 48, 9}, Shape{2}}), 4U);
  EXPECT_EQ(samples_of({}, {}), 1U);
}

TEST(ShapeChoice, SamplesOfDamagedFiguresDoNotWrap) {
  auto d = two_inputs();
  d.batch = 0xFFFFFFFF;
  EXPECT_EQ(samples_of(d, std::vector{Shape{1 << 20, 3, 48, 9}, Shape{2}}), 0xFFFFFFFFU);
}

TEST(ShapeChoice, LongListsAreShortened) {
  auto d = two_inputs();
  for (std::int64_t w = 1; w <= 20; ++w) d.shape_sets.push_back({Shape{1, 3, 48, w}, Shape{2}});
  EXPECT_NE(allowed_shapes(d).find("and 12 more"), std::string::npos);
}

TEST(ShapeChoice, OneInputOfAnOpenProgramChangesAlone) {
  const auto d = two_inputs();
  const auto shapes = shapes_with_input(d, declared_shapes(d), 0, Shape{1, 3, 48, 9});
  ASSERT_TRUE(shapes);
  EXPECT_EQ((*shapes)[0], (Shape{1, 3, 48, 9}));
  EXPECT_EQ((*shapes)[1], (Shape{2}));
  EXPECT_EQ(shapes_with_input(d, declared_shapes(d), 1, Shape{3}).error().code(),
            Code::kShapeMismatch);
}

TEST(ShapeChoice, OneInputOfAClosedListPicksTheSetThatAgreesWithTheOthers) {
  const auto d = with_sets();
  const std::vector<Shape> current{Shape{1, 3, 48, 100}, Shape{4}};
  EXPECT_EQ(shapes_with_input(d, current, 0, Shape{1, 3, 48, 200}).value(), d.shape_sets[2]);
  EXPECT_EQ(shapes_with_input(d, d.shape_sets[0], 0, Shape{1, 3, 48, 200}).value(),
            d.shape_sets[1]);
  EXPECT_EQ(shapes_with_input(d, current, 0, Shape{1, 3, 48, 300}).error().code(),
            Code::kShapeMismatch);
}

TEST(ShapeChoice, FreezingFixesOpenBatchesAndNothingElse) {
  const auto frozen = freeze_batch(std::vector{Shape{-1, 3, -1}, Shape{2}, Shape{}});
  ASSERT_TRUE(frozen);
  EXPECT_EQ((*frozen)[0], (Shape{1, 3, -1}));
  EXPECT_EQ((*frozen)[1], (Shape{2}));
  EXPECT_FALSE(freeze_batch(std::vector{Shape{2, -1}}));
}

}  // namespace
}  // namespace corelane::runtime
