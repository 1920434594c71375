#include "picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace page_reader {
namespace {

Picture noise(int width, int height, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> level(0, 255);
  Picture picture(width, height);
  const auto next = [&] { return static_cast<std::uint8_t>(level(random)); };
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) picture.set(x, y, {next(), next(), next()});
  return picture;
}

Picture grey_row(const std::vector<int>& levels) {
  Picture picture(static_cast<int>(levels.size()), 1);
  for (std::size_t x = 0; x < levels.size(); ++x) {
    const auto v = static_cast<std::uint8_t>(levels[x]);
    picture.set(static_cast<int>(x), 0, {v, v, v});
  }
  return picture;
}

/// Bilinear by its definition, in double, one pixel at a time.
double bilinear(const Picture& source, double x, double y, int channel) {
  const auto value = [&](int px, int py) {
    px = std::clamp(px, 0, source.width() - 1);
    py = std::clamp(py, 0, source.height() - 1);
    return static_cast<double>(source.row(py)[px * 3 + channel]);
  };
  const int x0 = static_cast<int>(std::floor(x)), y0 = static_cast<int>(std::floor(y));
  const double fx = x - x0, fy = y - y0;
  return (value(x0, y0) * (1 - fx) + value(x0 + 1, y0) * fx) * (1 - fy) +
         (value(x0, y0 + 1) * (1 - fx) + value(x0 + 1, y0 + 1) * fx) * fy;
}

TEST(Resize, LinearIsBilinearWithHalfPixelCentres) {
  const Picture source = noise(37, 23, 1);
  for (const auto& [w, h] : {std::pair{74, 46}, {19, 40}, {37, 23}, {5, 7}, {100, 3}}) {
    const Picture scaled = resize(source, w, h);
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        for (int c = 0; c < 3; ++c) {
          const double expected =
              bilinear(source, (x + 0.5) * 37 / w - 0.5, (y + 0.5) * 23 / h - 0.5, c);
          ASSERT_NEAR(scaled.row(y)[x * 3 + c], expected, 0.51) << w << "x" << h;
        }
      }
    }
  }
}

TEST(Resize, CubicHasTheKernelOfMinusThreeQuarters) {
  // Half way between pixels the weights are -3/32, 19/32, 19/32, -3/32.
  const Picture half = resize(grey_row({10, 20, 40, 80}), 2, 1, Filter::kCubic);
  EXPECT_EQ(half.at(0, 0).r, std::lround((-3 * 10 + 19 * 10 + 19 * 20 - 3 * 40) / 32.0));
  EXPECT_EQ(half.at(1, 0).r, std::lround((-3 * 20 + 19 * 40 + 19 * 80 - 3 * 80) / 32.0));
}

TEST(Resize, EveryFilterKeepsEvenPicturesAndSizes) {
  const Picture source = noise(20, 12, 2);
  for (const Filter filter : {Filter::kLinear, Filter::kCubic, Filter::kLanczos}) {
    const Picture even = resize(Picture(9, 9, {12, 130, 250}), 31, 5, filter);
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 31; ++x) ASSERT_EQ(even.at(x, y), (Colour{12, 130, 250}));
    EXPECT_EQ(resize(source, 20, 12, filter).bytes(), source.bytes());
  }
}

TEST(Resize, LanczosCutsRingingAtTheEndsOfTheRange) {
  const Picture edge = resize(grey_row({0, 0, 0, 0, 255, 255, 255, 255}), 64, 1, Filter::kLanczos);
  EXPECT_EQ(edge.at(0, 0).r, 0);
  EXPECT_EQ(edge.at(63, 0).r, 255);
  for (int x = 28; x + 1 < 36; ++x) EXPECT_LE(edge.at(x, 0).r, edge.at(x + 1, 0).r);
}

TEST(Straighten, AnUprightBoxIsACrop) {
  const Picture source = noise(40, 30, 3);
  const Picture part = straighten(source, {{{7, 4}, {27, 4}, {27, 14}, {7, 14}}}, 20, 10);
  EXPECT_EQ(part.bytes(), crop(source, 7, 4, 20, 10).bytes());
}

TEST(Straighten, FirstCornerComesToTheTopLeft) {
  const Picture source = noise(16, 16, 4);
  // Corners named from the lower right: the picture upside down.
  const Picture turned = straighten(source, {{{16, 16}, {0, 16}, {0, 0}, {16, 0}}}, 16, 16);
  EXPECT_EQ(turned.bytes(), turn(source, 2).bytes());
}

TEST(Straighten, UndoesPerspective) {
  // A white trapezium on black becomes all white; its corners lie exactly on the output's.
  Picture source(60, 60, kBlack);
  for (int y = 10; y < 50; ++y) {
    const double inset = 5 + (50 - y) * 0.25;
    for (int x = 0; x < 60; ++x)
      if (x + 0.5 > inset && x + 0.5 < 60 - inset) source.set(x, y, kWhite);
  }
  const Picture flat = straighten(source, {{{15, 10}, {45, 10}, {55, 50}, {5, 50}}}, 30, 30);
  for (int y = 2; y < 28; ++y)
    for (int x = 2; x < 28; ++x) ASSERT_GT(flat.at(x, y).g, 200) << x << "," << y;
}

TEST(Turn, QuartersAddUp) {
  const Picture source = noise(7, 5, 5);
  EXPECT_EQ(turn(turn(source, 1), 1).bytes(), turn(source, 2).bytes());
  EXPECT_EQ(turn(turn(source, 1), -1).bytes(), source.bytes());
  EXPECT_EQ(turn(source, 4).bytes(), source.bytes());
  const Picture left = turn(source, 1);
  EXPECT_EQ(left.width(), 5);
  EXPECT_EQ(left.at(0, 0), source.at(6, 0)) << "counter-clockwise";
}

TEST(OnCanvas, PadsAndCuts) {
  const Picture source = noise(4, 3, 6);
  const Picture wide = on_canvas(source, 6, 2, {1, 2, 3});
  EXPECT_EQ(wide.at(3, 1), source.at(3, 1));
  EXPECT_EQ(wide.at(4, 1), (Colour{1, 2, 3}));
  EXPECT_EQ(wide.height(), 2);
}

}  // namespace
}  // namespace page_reader
