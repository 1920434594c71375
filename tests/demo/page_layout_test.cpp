#include "page_layout.h"

#include <gtest/gtest.h>

#include <cmath>

namespace page_reader {
namespace {

constexpr std::size_t kClasses = 3;
constexpr std::size_t kBins = 8;

/// A head of stride 64 (13 rows of 10 cells) without anything on it.
struct Head {
  Head() : scores(130 * kClasses, 0.01F), distances(130 * 4 * kBins, 0.0F) {}
  /// A cell that sees class `label` with sides `left`, `top`, `right`, `bottom` strides away.
  void see(std::size_t cell, std::size_t label, float score, std::array<int, 4> sides) {
    scores[cell * kClasses + label] = score;
    for (std::size_t k = 0; k < 4; ++k)
      distances[(cell * 4 + k) * kBins + static_cast<std::size_t>(sides[k])] = 50;
  }
  LayoutHead view() const { return {64, scores, distances}; }
  std::vector<float> scores, distances;
};

TEST(DecodeHead, AddsExpectedDistancesToTheCellCentre) {
  Head head;
  head.see(2 * 10 + 3, 1, 0.8F, {1, 2, 3, 4});
  std::vector<Region> regions;
  decode_head(head.view(), kClasses, kBins, 0.5F, regions);
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_EQ(regions[0].label, 1);
  EXPECT_FLOAT_EQ(regions[0].score, 0.8F);
  const double x = 3.5 * 64, y = 2.5 * 64;
  EXPECT_NEAR(regions[0].box.left, x - 64, 1e-6);
  EXPECT_NEAR(regions[0].box.top, y - 128, 1e-6);
  EXPECT_NEAR(regions[0].box.right, x + 192, 1e-6);
  EXPECT_NEAR(regions[0].box.bottom, y + 256, 1e-6);
}

TEST(DecodeHead, AFlatDistributionIsItsMiddle) {
  Head head;
  head.scores[0] = 0.9F;
  std::vector<Region> regions;
  decode_head(head.view(), kClasses, kBins, 0.5F, regions);
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_NEAR(regions[0].box.right, 32 + 3.5 * 64, 1e-6);
}

TEST(DecodeHead, TakesNoMoreCellsThanBothMapsHold) {
  Head head;
  head.see(129, 0, 0.9F, {1, 1, 1, 1});
  head.distances.resize(100 * 4 * kBins);
  std::vector<Region> regions;
  decode_head(head.view(), kClasses, kBins, 0.5F, regions);
  EXPECT_TRUE(regions.empty());
}

TEST(Suppress, KeepsTheBestOfBoxesThatOverlap) {
  const Region best{0, 0.9F, {0, 0, 100, 100}};
  const Region covered{0, 0.8F, {5, 5, 105, 105}};
  const Region apart{0, 0.6F, {200, 0, 300, 100}};
  const auto kept = suppress({apart, covered, best});
  EXPECT_EQ(kept, (std::vector<Region>{best, apart}));
}

TEST(Suppress, LeavesOtherClassesAlone) {
  const Region text{0, 0.9F, {0, 0, 100, 100}};
  const Region table{1, 0.8F, {0, 0, 100, 100}};
  EXPECT_EQ(suppress({text, table}).size(), 2U);
}

TEST(Suppress, ABoxThatWasSuppressedSuppressesNothing) {
  // b overlaps a and c, but a and c barely meet.
  const Region a{0, 0.9F, {0, 0, 100, 10}};
  const Region b{0, 0.8F, {30, 0, 130, 10}};
  const Region c{0, 0.7F, {60, 0, 160, 10}};
  EXPECT_EQ(suppress({a, b, c}), (std::vector<Region>{a, c}));
}

TEST(LayoutScale, StretchesPortraitPagesAndKeepsOthers) {
  const LayoutScale a4 = layout_scale(1240, 1754);
  EXPECT_NEAR(a4.x * 1240, 608, 1e-9);
  EXPECT_NEAR(a4.y * 1754, 800, 1e-9);
  const LayoutScale wide = layout_scale(384, 191);
  EXPECT_EQ(wide.x, wide.y);
  EXPECT_NEAR(wide.x * 384, 608, 1e-9);
}

TEST(FindRegions, AreInPagePixelsAndOnThePage) {
  Head head;
  head.see(0, 2, 0.9F, {7, 7, 7, 7});
  const LayoutHead heads[] = {head.view()};
  const auto regions = find_regions(heads, kClasses, kBins, 304, 400);
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_EQ(regions[0].box.left, 0);
  EXPECT_EQ(regions[0].box.top, 0);
  EXPECT_NEAR(regions[0].box.right, (32 + 7 * 64) / 2.0, 1e-6);
}

TEST(LayoutInput, LaysAWidePageOnWhite) {
  const ModelInput input = layout_input(Picture(600, 200, kBlack));
  EXPECT_EQ(input.pixels.width(), 608);
  EXPECT_EQ(input.pixels.height(), 800);
  EXPECT_EQ(input.pixels.at(300, 100), kBlack);
  EXPECT_EQ(input.pixels.at(300, 500), kWhite);
}

TEST(SplitLabels, OnePerLine) {
  EXPECT_EQ(split_labels("text\ntitle\n"), (std::vector<std::string>{"text", "title"}));
  EXPECT_EQ(split_labels("text\ntitle"), (std::vector<std::string>{"text", "title"}));
  EXPECT_TRUE(split_labels("").empty());
}

}  // namespace
}  // namespace page_reader
