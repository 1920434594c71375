#include "text_detector.h"

#include <gtest/gtest.h>

#include <cmath>

namespace page_reader {
namespace {

/// A probability map with blocks painted on it.
struct Map {
  Map(int w, int h) : width(w), height(h), values(static_cast<std::size_t>(w * h), 0.01F) {}
  void block(int x, int y, int w, int h, float value) {
    for (int j = y; j < y + h; ++j)
      for (int i = x; i < x + w; ++i) values[static_cast<std::size_t>(j * width + i)] = value;
  }
  std::vector<TextBox> find(Extent page, const TextDetectorSettings& settings = {}) const {
    return find_text(values, width, height, page, settings);
  }
  int width, height;
  std::vector<float> values;
};

TEST(DetectorExtent, KeepsSidesInLimitsAndMultiplesOf32) {
  EXPECT_EQ(detector_extent(384, 191), (Extent{1472, 736}));
  EXPECT_EQ(detector_extent(1000, 1400), (Extent{992, 1408}));
  EXPECT_EQ(detector_extent(4000, 3000), (Extent{2016, 1504})) << "2000 is not a multiple of 32";
  EXPECT_EQ(detector_extent(100000, 10), (Extent{2016, 32})) << "a strip stays within the limit";
}

TEST(FindText, GrowsAKernelByItsMargin) {
  Map map(200, 100);
  map.block(50, 40, 60, 10, 0.9F);
  const auto boxes = map.find({200, 100});
  ASSERT_EQ(boxes.size(), 1U);
  const double margin = 60 * 10 * 1.6 / (2 * 70);
  EXPECT_NEAR(boxes[0].quad[0].x, 50 - margin, 1e-6);
  EXPECT_NEAR(boxes[0].quad[0].y, 40 - margin, 1e-6);
  EXPECT_NEAR(boxes[0].quad[2].x, 110 + margin, 1e-6);
  EXPECT_NEAR(boxes[0].quad[2].y, 50 + margin, 1e-6);
  EXPECT_NEAR(boxes[0].score, 0.9F, 1e-5);
}

TEST(FindText, ScalesToThePageAndStaysOnIt) {
  Map map(100, 50);
  map.block(0, 0, 40, 10, 0.8F);
  const auto boxes = map.find({200, 200});
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_EQ(boxes[0].quad[0], (Point{0, 0}));
  const double margin = 40 * 10 * 1.6 / 100;
  EXPECT_NEAR(boxes[0].quad[2].x, (40 + margin) * 2, 1e-6);
  EXPECT_NEAR(boxes[0].quad[2].y, (10 + margin) * 4, 1e-6);
}

TEST(FindText, DropsFaintThinAndUnsureBlobs) {
  Map map(100, 100);
  map.block(5, 5, 40, 10, 0.25F);  // Below the threshold.
  map.block(5, 30, 40, 2, 0.9F);   // Two pixels thin.
  map.block(5, 50, 40, 10, 0.4F);  // Above the threshold, below the box threshold.
  map.block(5, 80, 40, 10, 0.6F);
  const auto boxes = map.find({100, 100});
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_NEAR(boxes[0].score, 0.6F, 1e-5);
}

TEST(FindText, JoinsBlobsThatTouchAtACorner) {
  Map map(100, 40);
  map.block(10, 10, 20, 8, 0.9F);
  map.block(30, 18, 20, 8, 0.9F);
  TextDetectorSettings settings;
  settings.box_threshold = 0.3F;
  EXPECT_EQ(map.find({100, 40}, settings).size(), 1U);
  Map apart(100, 40);
  apart.block(10, 10, 20, 8, 0.9F);
  apart.block(32, 10, 20, 8, 0.9F);
  EXPECT_EQ(apart.find({100, 40}).size(), 2U);
}

TEST(FindText, FollowsASlantedLine) {
  Map map(300, 200);
  const double slope = std::tan(8 * 3.14159265358979 / 180);
  for (int x = 50; x < 250; ++x)
    map.block(x, static_cast<int>(80 + (x - 50) * slope), 1, 12, 0.95F);
  const auto boxes = map.find({300, 200});
  ASSERT_EQ(boxes.size(), 1U);
  const Point along = boxes[0].quad[1] - boxes[0].quad[0];
  EXPECT_NEAR(std::atan2(along.y, along.x) * 180 / 3.14159265358979, 8, 0.7);
}

TEST(FindText, StopsAtTheMostBoxes) {
  Map map(100, 100);
  for (int y = 0; y < 100; y += 10) map.block(10, y, 50, 5, 0.9F);
  TextDetectorSettings settings;
  settings.max_boxes = 4;
  EXPECT_EQ(map.find({100, 100}, settings).size(), 4U);
  EXPECT_EQ(map.find({100, 100}).size(), 10U);
}

TEST(FindText, TakesNoMapThatIsTooShort) {
  const std::vector<float> values(10, 0.9F);
  EXPECT_TRUE(find_text(values, 10, 10, {10, 10}).empty());
}

TextBox at(double x, double y) {
  return {{{{x, y}, {x + 30, y}, {x + 30, y + 10}, {x, y + 10}}}, 1};
}

TEST(SortForReading, GoesByLinesThenFromTheLeft) {
  std::vector<TextBox> boxes{at(50, 43), at(100, 0), at(0, 4), at(5, 40), at(50, 2)};
  sort_for_reading(boxes);
  std::vector<double> xs;
  for (const TextBox& b : boxes) xs.push_back(b.quad[0].x);
  EXPECT_EQ(xs, (std::vector<double>{0, 50, 100, 5, 50}));
}

TEST(CutOut, TurnsVerticalLines) {
  const Picture page(100, 100);
  const Picture flat = cut_out(page, {{{10, 10}, {60, 10}, {60, 20}, {10, 20}}});
  EXPECT_EQ(flat.width(), 50);
  EXPECT_EQ(flat.height(), 10);
  const Picture tall = cut_out(page, {{{10, 10}, {20, 10}, {20, 60}, {10, 60}}});
  EXPECT_EQ(tall.width(), 50);
  EXPECT_EQ(tall.height(), 10);
}

}  // namespace
}  // namespace page_reader
