#include "plane_geometry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace page_reader {
namespace {

std::vector<Point> turned_grid(double angle, int columns, int rows, Point centre) {
  std::vector<Point> points;
  for (int y = 0; y <= rows; ++y) {
    for (int x = 0; x <= columns; ++x) {
      const Point p{x - columns / 2.0, y - rows / 2.0};
      points.push_back({centre.x + p.x * std::cos(angle) - p.y * std::sin(angle),
                        centre.y + p.x * std::sin(angle) + p.y * std::cos(angle)});
    }
  }
  return points;
}

/// The least area over many directions: never below the true one.
double searched_area(const std::vector<Point>& points) {
  double best = INFINITY;
  for (int i = 0; i < 1800; ++i) {
    const double a = i * std::numbers::pi / 3600;
    double lu = INFINITY, hu = -INFINITY, lv = INFINITY, hv = -INFINITY;
    for (const Point& p : points) {
      const double u = p.x * std::cos(a) + p.y * std::sin(a);
      const double v = p.y * std::cos(a) - p.x * std::sin(a);
      lu = std::min(lu, u), hu = std::max(hu, u), lv = std::min(lv, v), hv = std::max(hv, v);
    }
    best = std::min(best, (hu - lu) * (hv - lv));
  }
  return best;
}

TEST(ConvexHull, KeepsCornersOnly) {
  const auto hull = convex_hull({{0, 0}, {2, 0}, {4, 0}, {4, 4}, {0, 4}, {2, 2}, {0, 2}, {4, 4}});
  EXPECT_EQ(hull.size(), 4U);
}

TEST(ConvexHull, OfALineIsItsEnds) {
  EXPECT_EQ(convex_hull({{1, 1}, {3, 3}, {2, 2}}), (std::vector<Point>{{1, 1}, {3, 3}}));
  EXPECT_EQ(convex_hull({{5, 6}, {5, 6}}), (std::vector<Point>{{5, 6}}));
  EXPECT_TRUE(convex_hull({}).empty());
}

TEST(ConvexHull, HoldsEveryPoint) {
  std::mt19937 random(7);
  std::normal_distribution<double> spread(0, 10);
  std::vector<Point> points(300);
  for (Point& p : points) p = {spread(random), spread(random)};
  const auto hull = convex_hull(points);
  for (const Point& p : points)
    for (std::size_t i = 0; i < hull.size(); ++i)
      ASSERT_GE(cross(hull[(i + 1) % hull.size()] - hull[i], p - hull[i]), -1e-9);
}

TEST(MinAreaRect, FindsATurnedRectangle) {
  for (const double degrees : {0.0, 3.0, 17.0, 45.0, 80.0, 90.0, -30.0}) {
    const double angle = degrees * std::numbers::pi / 180;
    const auto rect = min_area_rect(convex_hull(turned_grid(angle, 40, 10, {100, 50})));
    EXPECT_NEAR(rect.area(), 400, 1e-6) << degrees;
    EXPECT_NEAR(rect.short_side(), 10, 1e-6) << degrees;
    EXPECT_NEAR(rect.centre.x, 100, 1e-6) << degrees;
    EXPECT_NEAR(rect.centre.y, 50, 1e-6) << degrees;
  }
}

TEST(MinAreaRect, IsAtMostWhatASearchFinds) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> place(-50, 50);
  for (int round = 0; round < 30; ++round) {
    std::vector<Point> points(3 + round);
    for (Point& p : points) p = {place(random), place(random) / 4};
    const double searched = searched_area(points);
    const double area = min_area_rect(convex_hull(points)).area();
    EXPECT_LE(area, searched + 1e-6);
    EXPECT_GE(area, searched * 0.98) << "the search is at most a little worse";
  }
}

TEST(MinAreaRect, OfTwoPointsHasNoHeight) {
  const auto rect = min_area_rect(convex_hull({{0, 0}, {3, 4}}));
  EXPECT_NEAR(rect.width, 5, 1e-9);
  EXPECT_NEAR(rect.height, 0, 1e-9);
  EXPECT_EQ(min_area_rect({}).area(), 0);
}

TEST(Unclip, MovesSidesByAreaOverPerimeter) {
  const TurnedRect rect{{50, 20}, {1, 0}, 40, 10};
  EXPECT_DOUBLE_EQ(unclip_margin(rect, 1.5), 400 * 1.5 / 100);
  const TurnedRect grown = expand(rect, unclip_margin(rect, 1.5));
  EXPECT_DOUBLE_EQ(grown.width, 52);
  EXPECT_DOUBLE_EQ(grown.height, 22);
  EXPECT_EQ(grown.centre, rect.centre);
  EXPECT_EQ(unclip_margin({}, 1.5), 0);
}

TEST(Corners, BeginTopLeftWhicheverWayTheAxisPoints) {
  const Quad expected{{{0, 0}, {10, 0}, {10, 4}, {0, 4}}};
  for (const TurnedRect& rect :
       {TurnedRect{{5, 2}, {1, 0}, 10, 4}, TurnedRect{{5, 2}, {-1, 0}, 10, 4},
        TurnedRect{{5, 2}, {0, 1}, 4, 10}, TurnedRect{{5, 2}, {0, -1}, 4, 10}}) {
    const Quad quad = corners(rect);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(quad[i].x, expected[i].x, 1e-9);
      EXPECT_NEAR(quad[i].y, expected[i].y, 1e-9);
    }
  }
}

TEST(Overlap, IsIntersectionOverUnion) {
  EXPECT_DOUBLE_EQ(overlap({0, 0, 10, 10}, {5, 0, 15, 10}), 50.0 / 150);
  EXPECT_EQ(overlap({0, 0, 10, 10}, {10, 0, 20, 10}), 0);
  EXPECT_EQ(overlap({0, 0, 1, 1}, {0, 0, 1, 1}), 1);
  EXPECT_EQ(overlap({}, {}), 0);
}

}  // namespace
}  // namespace page_reader
