#include "plane_geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace page_reader {
namespace {

/// Appends one side of the hull (monotone chain) over points in the order given.
template <class Iterator>
void add_chain(Iterator first, Iterator last, std::vector<Point>& hull) {
  const std::size_t start = hull.size();
  for (; first != last; ++first) {
    while (hull.size() >= start + 2 &&
           cross(hull.back() - hull[hull.size() - 2], *first - hull.back()) <= 0)
      hull.pop_back();
    hull.push_back(*first);
  }
  hull.pop_back();  // It opens the other chain.
}

/// The tightest rectangle with one side along `axis`.
TurnedRect rect_along(std::span<const Point> hull, Point axis) {
  const Point normal{-axis.y, axis.x};
  double low_u = std::numeric_limits<double>::max(), high_u = -low_u;
  double low_v = low_u, high_v = -low_u;
  for (const Point& p : hull) {
    low_u = std::min(low_u, dot(p, axis));
    high_u = std::max(high_u, dot(p, axis));
    low_v = std::min(low_v, dot(p, normal));
    high_v = std::max(high_v, dot(p, normal));
  }
  return {axis * ((low_u + high_u) / 2) + normal * ((low_v + high_v) / 2), axis, high_u - low_u,
          high_v - low_v};
}

}  // namespace

double distance(Point a, Point b) noexcept { return std::hypot(a.x - b.x, a.y - b.y); }

std::vector<Point> convex_hull(std::vector<Point> points) {
  std::sort(points.begin(), points.end(),
            [](Point a, Point b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  points.erase(std::unique(points.begin(), points.end()), points.end());
  if (points.size() < 3) return points;
  std::vector<Point> hull;
  add_chain(points.begin(), points.end(), hull);
  add_chain(points.rbegin(), points.rend(), hull);
  return hull;
}

// The best rectangle has a side on an edge of the hull. A hull of text pixels has few corners, so
// each edge looks at all of them instead of moving four calipers along.
TurnedRect min_area_rect(std::span<const Point> hull) {
  if (hull.empty()) return {};
  TurnedRect best = rect_along(hull, {1, 0});
  for (std::size_t i = 0; i < hull.size(); ++i) {
    const Point edge = hull[(i + 1) % hull.size()] - hull[i];
    const double length = std::hypot(edge.x, edge.y);
    if (length == 0) continue;
    const TurnedRect rect = rect_along(hull, edge * (1 / length));
    // An equal area keeps the earlier one, so that upright boxes stay upright.
    if (rect.area() < best.area() - 1e-9) best = rect;
  }
  return best;
}

TurnedRect expand(const TurnedRect& rect, double margin) noexcept {
  TurnedRect grown = rect;
  grown.width = std::max(0.0, rect.width + 2 * margin);
  grown.height = std::max(0.0, rect.height + 2 * margin);
  return grown;
}

double unclip_margin(const TurnedRect& rect, double ratio) noexcept {
  return rect.perimeter() > 0 ? rect.area() * ratio / rect.perimeter() : 0;
}

Quad corners(const TurnedRect& rect) noexcept {
  Point right = rect.axis * (rect.width / 2);
  Point down = Point{-rect.axis.y, rect.axis.x} * (rect.height / 2);
  if (std::abs(rect.axis.y) > std::abs(rect.axis.x)) std::swap(right, down);
  if (right.x < 0) right = right * -1;
  if (down.y < 0) down = down * -1;
  const Point c = rect.centre;
  return {c - right - down, c + right - down, c + right + down, c - right + down};
}

Box bounds(const Quad& quad) noexcept {
  Box box{quad[0].x, quad[0].y, quad[0].x, quad[0].y};
  for (const Point& p : quad) {
    box.left = std::min(box.left, p.x);
    box.top = std::min(box.top, p.y);
    box.right = std::max(box.right, p.x);
    box.bottom = std::max(box.bottom, p.y);
  }
  return box;
}

double overlap(const Box& a, const Box& b) noexcept {
  const Box common{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
                   std::min(a.bottom, b.bottom)};
  const double together = a.area() + b.area() - common.area();
  return together > 0 ? common.area() / together : 0;
}

}  // namespace page_reader
