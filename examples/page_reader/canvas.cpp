#include "canvas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace page_reader {
namespace {

std::uint8_t mix(std::uint8_t below, std::uint8_t above, double cover) noexcept {
  return static_cast<std::uint8_t>(std::lround(below + (above - below) * cover));
}

/// Pixels that a shape with these bounds can touch, inside the picture.
struct PixelRange {
  int left, top, right, bottom;
};
PixelRange touched(const Picture& picture, const Box& box) noexcept {
  const auto cut = [](double v, int limit) {
    return static_cast<int>(std::clamp(v, 0.0, static_cast<double>(limit)));
  };
  return {cut(std::floor(box.left), picture.width()), cut(std::floor(box.top), picture.height()),
          cut(std::ceil(box.right), picture.width()), cut(std::ceil(box.bottom), picture.height())};
}

Box bounds_of(std::span<const Point> polygon, double margin) noexcept {
  Box box{std::numeric_limits<double>::max(), std::numeric_limits<double>::max(),
          std::numeric_limits<double>::lowest(), std::numeric_limits<double>::lowest()};
  for (const Point& p : polygon) {
    box.left = std::min(box.left, p.x - margin);
    box.top = std::min(box.top, p.y - margin);
    box.right = std::max(box.right, p.x + margin);
    box.bottom = std::max(box.bottom, p.y + margin);
  }
  return box;
}

double distance_to_segment(Point p, Point a, Point b) noexcept {
  const Point along = b - a;
  const double length2 = dot(along, along);
  const double t = length2 > 0 ? std::clamp(dot(p - a, along) / length2, 0.0, 1.0) : 0;
  return distance(p, a + along * t);
}

/// How far a point lies inside a convex polygon; negative outside (near its edges).
double depth_inside(Point p, std::span<const Point> polygon, double turning) noexcept {
  double depth = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point edge = polygon[(i + 1) % polygon.size()] - polygon[i];
    const double length = std::hypot(edge.x, edge.y);
    if (length > 0) depth = std::min(depth, turning * cross(edge, p - polygon[i]) / length);
  }
  return depth;
}

double twice_area(std::span<const Point> polygon) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < polygon.size(); ++i)
    sum += cross(polygon[i], polygon[(i + 1) % polygon.size()]);
  return sum;
}

}  // namespace

void blend(Picture& picture, int x, int y, Colour colour, double cover) noexcept {
  if (x < 0 || y < 0 || x >= picture.width() || y >= picture.height()) return;
  const Colour below = picture.at(x, y);
  picture.set(x, y,
              {mix(below.r, colour.r, cover), mix(below.g, colour.g, cover),
               mix(below.b, colour.b, cover)});
}

void fill_box(Picture& picture, const Box& box, Colour colour, double cover) {
  const PixelRange range = touched(picture, {std::round(box.left), std::round(box.top),
                                             std::round(box.right), std::round(box.bottom)});
  for (int y = range.top; y < range.bottom; ++y)
    for (int x = range.left; x < range.right; ++x) blend(picture, x, y, colour, cover);
}

void fill_polygon(Picture& picture, std::span<const Point> polygon, Colour colour, double cover) {
  const double area = twice_area(polygon);
  if (area == 0) return;
  const double turning = area > 0 ? 1 : -1;
  const PixelRange range = touched(picture, bounds_of(polygon, 1));
  for (int y = range.top; y < range.bottom; ++y) {
    for (int x = range.left; x < range.right; ++x) {
      const double depth = depth_inside({x + 0.5, y + 0.5}, polygon, turning);
      if (depth > -0.5) blend(picture, x, y, colour, cover * std::min(1.0, depth + 0.5));
    }
  }
}

void draw_line(Picture& picture, Point from, Point to, double thickness, Colour colour,
               double cover) {
  const Point ends[] = {from, to};
  const PixelRange range = touched(picture, bounds_of(ends, thickness / 2 + 1));
  for (int y = range.top; y < range.bottom; ++y) {
    for (int x = range.left; x < range.right; ++x) {
      const double away = distance_to_segment({x + 0.5, y + 0.5}, from, to) - thickness / 2;
      if (away < 0.5) blend(picture, x, y, colour, cover * std::min(1.0, 0.5 - away));
    }
  }
}

void draw_outline(Picture& picture, std::span<const Point> polygon, double thickness, Colour colour,
                  double cover) {
  for (std::size_t i = 0; i < polygon.size(); ++i)
    draw_line(picture, polygon[i], polygon[(i + 1) % polygon.size()], thickness, colour, cover);
}

void paste(Picture& picture, const Picture& source, int x, int y) noexcept {
  const int first = std::max(0, -x), last = std::min(source.width(), picture.width() - x);
  if (first >= last) return;
  for (int row = std::max(0, -y); row < std::min(source.height(), picture.height() - y); ++row)
    std::copy_n(source.row(row) + std::ptrdiff_t{3} * first, (last - first) * 3,
                picture.row(y + row) + std::ptrdiff_t{3} * (x + first));
}

}  // namespace page_reader
