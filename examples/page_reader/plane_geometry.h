/// Points, convex hulls and rotated rectangles in the plane: what text detection needs to turn a
/// blob of pixels into a box. Coordinates are continuous, x to the right, y down; pixel (i, j)
/// covers [i, i + 1] x [j, j + 1]. Pure functions, any thread.
#pragma once

#include <array>
#include <span>
#include <vector>

namespace page_reader {

struct Point {
  double x = 0;
  double y = 0;
  bool operator==(const Point&) const = default;
};

inline Point operator+(Point a, Point b) noexcept { return {a.x + b.x, a.y + b.y}; }
inline Point operator-(Point a, Point b) noexcept { return {a.x - b.x, a.y - b.y}; }
inline Point operator*(Point a, double k) noexcept { return {a.x * k, a.y * k}; }
inline double dot(Point a, Point b) noexcept { return a.x * b.x + a.y * b.y; }
inline double cross(Point a, Point b) noexcept { return a.x * b.y - a.y * b.x; }
double distance(Point a, Point b) noexcept;

/// Four corners: top left, top right, bottom right, bottom left.
using Quad = std::array<Point, 4>;

/// A rectangle that may be turned: centre, unit vector along `width`, and the two sides.
struct TurnedRect {
  Point centre;
  Point axis{1, 0};
  double width = 0;
  double height = 0;

  double area() const noexcept { return width * height; }
  double perimeter() const noexcept { return 2 * (width + height); }
  double short_side() const noexcept { return width < height ? width : height; }
};

/// An upright box; empty when right <= left or bottom <= top.
struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  double width() const noexcept { return right > left ? right - left : 0; }
  double height() const noexcept { return bottom > top ? bottom - top : 0; }
  double area() const noexcept { return width() * height(); }
  bool operator==(const Box&) const = default;
};

/// Corners of the convex hull, counter-clockwise in a y-up plane, none on an edge between two
/// others. Fewer than three points, or points on one line, give the extreme points.
std::vector<Point> convex_hull(std::vector<Point> points);

/// The rectangle of least area around a convex polygon, by rotating calipers over its edges. A
/// polygon of one or two points gives a rectangle of height 0.
TurnedRect min_area_rect(std::span<const Point> hull);

/// The rectangle with every side moved outwards by `margin`.
TurnedRect expand(const TurnedRect& rect, double margin) noexcept;

/// How far the detector's shrunken text kernels are grown again: area * ratio / perimeter.
double unclip_margin(const TurnedRect& rect, double ratio) noexcept;

/// The corners, from the one that is top left as text is read: the long way of a text line lies
/// within 45 degrees of the x axis, or, for a tall box, of the y axis.
Quad corners(const TurnedRect& rect) noexcept;

/// Upright box around a quadrilateral.
Box bounds(const Quad& quad) noexcept;

/// Intersection over union; 0 when both are empty.
double overlap(const Box& a, const Box& b) noexcept;

}  // namespace page_reader
