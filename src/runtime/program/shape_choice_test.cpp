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
  const Status few = check_shapes(d, std::vector{Shape{2}});
  EXPECT_EQ(few.code(), Code::kShapeMismatch);
  EXPECT_EQ(few.detail(Detail::kGiven), "[2]");
  EXPECT_EQ(few.detail(Detail::kAllowed), "image [?, 3, 48, ?], size [2]");
  const Status open = check_shapes(d, std::vector{Shape{-1, 3, 48, 8}, Shape{2}});
  EXPECT_EQ(open.code(), Code::kShapeMismatch);
  EXPECT_NE(open.message().find("open"), std::string::npos);
  EXPECT_EQ(open.detail(Detail::kGiven), "[?, 3, 48, 8], [2]");
}

TEST(ShapeChoice, ClosedListAcceptsItsSetsOnlyAndListsThem) {
  const auto d = with_sets();
  EXPECT_TRUE(check_shapes(d, std::vector{Shape{1, 3, 48, 200}, Shape{4}}).ok());
  const Status wrong = check_shapes(d, std::vector{Shape{1, 3, 48, 100}, Shape{4}});
  EXPECT_EQ(wrong.code(), Code::kShapeMismatch);
  EXPECT_NE(wrong.message().find("one of: image [1, 3, 48, 100], size [2]; "), std::string::npos)
      << wrong.message();
  EXPECT_EQ(wrong.detail(Detail::kGiven), "[1, 3, 48, 100], [4]");
  EXPECT_EQ(wrong.detail(Detail::kAllowed), allowed_shapes(d));
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
  const Status wrong = shapes_with_input(d, declared_shapes(d), 1, Shape{3}).error();
  EXPECT_EQ(wrong.code(), Code::kShapeMismatch);
  EXPECT_EQ(wrong.detail(Detail::kInput), "size");
  EXPECT_EQ(wrong.detail(Detail::kGiven), "[3]");
}

TEST(ShapeChoice, OneInputOfAClosedListPicksTheSetThatAgreesWithTheOthers) {
  const auto d = with_sets();
  const std::vector<Shape> current{Shape{1, 3, 48, 100}, Shape{4}};
  EXPECT_EQ(shapes_with_input(d, current, 0, Shape{1, 3, 48, 200}).value(), d.shape_sets[2]);
  EXPECT_EQ(shapes_with_input(d, d.shape_sets[0], 0, Shape{1, 3, 48, 200}).value(),
            d.shape_sets[1]);
  const Status wrong = shapes_with_input(d, current, 0, Shape{1, 3, 48, 300}).error();
  EXPECT_EQ(wrong.code(), Code::kShapeMismatch);
  EXPECT_EQ(wrong.detail(Detail::kInput), "image");
  EXPECT_EQ(wrong.detail(Detail::kAllowed), allowed_shapes(d));
}

TEST(ShapeChoice, FreezingFixesOpenBatchesAndNothingElse) {
  const auto frozen = freeze_batch(std::vector{Shape{-1, 3, -1}, Shape{2}, Shape{}});
  ASSERT_TRUE(frozen);
  EXPECT_EQ((*frozen)[0], (Shape{1, 3, -1}));
  EXPECT_EQ((*frozen)[1], (Shape{2}));
  EXPECT_FALSE(freeze_batch(std::vector{Shape{2, -1}}));
}

/// x [n, 4] and w [n, 2], with a bias [3] that has no batch, to y [n, 4]; for 2 to 8 rows.
ProgramDescription batched() {
  ProgramDescription d;
  const auto entry = [](std::string name, Shape shape, std::vector<std::string> names) {
    IoEntry e;
    e.desc.name = std::move(name);
    e.desc.shape = std::move(shape);
    e.desc.dim_names = std::move(names);
    return e;
  };
  d.inputs = {entry("x", {Shape::kOpen, 4}, {"n", ""}), entry("w", {Shape::kOpen, 2}, {"n", ""}),
              entry("bias", {3}, {})};
  d.outputs = {entry("y", {Shape::kOpen, 4}, {"n", ""})};
  d.batch_range = BatchRange{2, 8};
  return d;
}

TEST(ShapeChoice, ABatchIsTheSizeThatAllInputsHave) {
  const ProgramDescription d = batched();
  EXPECT_EQ(batch_shapes(d, 5), (std::vector<Shape>{{5, 4}, {5, 2}, {3}}));
  EXPECT_EQ(batch_of(d, batch_shapes(d, 5)), 5U);
  EXPECT_EQ(batch_of(d, batch_shapes(d, 1)), 0U) << "outside the range";
  EXPECT_EQ(batch_of(d, std::vector<Shape>{{5, 4}, {4, 2}, {3}}), 0U);
  EXPECT_EQ(batch_of(d, declared_shapes(d)), 0U);
  EXPECT_EQ(samples_of(d, batch_shapes(d, 5)), 5U);
}

TEST(ShapeChoice, InputsOfABatchRangeHaveOneSizeOfIt) {
  const ProgramDescription d = batched();
  EXPECT_TRUE(check_shapes(d, batch_shapes(d, 8)).ok());
  EXPECT_FALSE(check_shapes(d, batch_shapes(d, 9)).ok());
  EXPECT_FALSE(check_shapes(d, std::vector<Shape>{{5, 4}, {4, 2}, {3}}).ok());
  EXPECT_TRUE(shapes_with_input(d, declared_shapes(d), 0, Shape{8, 4}));
  EXPECT_FALSE(shapes_with_input(d, declared_shapes(d), 0, Shape{1, 4}));
  EXPECT_TRUE(shapes_with_input(d, declared_shapes(d), 2, Shape{3}));
}

TEST(ShapeChoice, AnOutputHasTheBatchWhereItsNameSaysSo) {
  ProgramDescription d = batched();
  const std::vector<Shape> five = batch_shapes(d, 5);
  EXPECT_EQ(with_batch(d, d.outputs[0].desc, five), (Shape{5, 4}));
  EXPECT_EQ(with_batch(d, d.outputs[0].desc, declared_shapes(d)), (Shape{Shape::kOpen, 4}));
  for (const char* other : {"m", "?", ""}) {
    d.outputs[0].desc.dim_names[0] = other;
    EXPECT_EQ(with_batch(d, d.outputs[0].desc, five), (Shape{Shape::kOpen, 4})) << other;
  }
}

}  // namespace
}  // namespace corelane::runtime
