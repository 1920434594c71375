/// Drawing on pictures: lines, shapes, blending. Coordinates outside are cut off. Pure functions.
#pragma once

#include <span>

#include "picture.h"
#include "plane_geometry.h"

namespace page_reader {

/// Lays `colour` over one pixel; `cover` from 0 (nothing) to 1.
void blend(Picture& picture, int x, int y, Colour colour, double cover) noexcept;

void fill_box(Picture& picture, const Box& box, Colour colour, double cover = 1);

/// Lays `colour` over the inside of a convex polygon, smooth at the edge.
void fill_polygon(Picture& picture, std::span<const Point> polygon, Colour colour, double cover);

/// A straight line of `thickness` pixels, smooth at the edge.
void draw_line(Picture& picture, Point from, Point to, double thickness, Colour colour,
               double cover = 1);

/// Closed outline of a polygon.
void draw_outline(Picture& picture, std::span<const Point> polygon, double thickness, Colour colour,
                  double cover = 1);

/// Copies `source` with its top left corner at (x, y).
void paste(Picture& picture, const Picture& source, int x, int y) noexcept;

}  // namespace page_reader
