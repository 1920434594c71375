#include "picture.h"

#include <algorithm>
#include <utility>

namespace page_reader {

Picture::Picture(int width, int height, Colour fill)
    : width_(std::max(width, 0)), height_(std::max(height, 0)) {
  bytes_.resize(offset(0, height_));
  for (std::size_t i = 0; i < bytes_.size(); i += 3) {
    bytes_[i] = fill.r;
    bytes_[i + 1] = fill.g;
    bytes_[i + 2] = fill.b;
  }
}

Colour Picture::at(int x, int y) const noexcept {
  const std::uint8_t* p = bytes_.data() + offset(x, y);
  return {p[0], p[1], p[2]};
}

void Picture::set(int x, int y, Colour colour) noexcept {
  std::uint8_t* p = bytes_.data() + offset(x, y);
  p[0] = colour.r;
  p[1] = colour.g;
  p[2] = colour.b;
}

Picture crop(const Picture& source, int x, int y, int width, int height) {
  Picture part(width, height);
  for (int row = 0; row < height; ++row)
    std::copy_n(source.row(y + row) + std::ptrdiff_t{3} * x, width * 3, part.row(row));
  return part;
}

Picture turn(const Picture& source, int quarters) {
  const int q = ((quarters % 4) + 4) % 4;
  if (q == 0) return source;
  const int w = source.width(), h = source.height();
  Picture turned(q == 2 ? w : h, q == 2 ? h : w);
  for (int y = 0; y < h; ++y) {
    for (int x = 0; x < w; ++x) {
      const Colour c = source.at(x, y);
      if (q == 1) turned.set(y, w - 1 - x, c);
      if (q == 2) turned.set(w - 1 - x, h - 1 - y, c);
      if (q == 3) turned.set(h - 1 - y, x, c);
    }
  }
  return turned;
}

Picture on_canvas(const Picture& source, int width, int height, Colour fill) {
  Picture canvas(width, height, fill);
  const int w = std::min(width, source.width());
  for (int y = 0; y < std::min(height, source.height()); ++y)
    std::copy_n(source.row(y), w * 3, canvas.row(y));
  return canvas;
}

void swap_red_blue(Picture& picture) noexcept {
  for (int y = 0; y < picture.height(); ++y) {
    std::uint8_t* p = picture.row(y);
    for (int x = 0; x < picture.width(); ++x, p += 3) std::swap(p[0], p[2]);
  }
}

}  // namespace page_reader
