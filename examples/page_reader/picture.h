/// A picture in memory, and the resampling that the models' inputs need. Pure functions, any
/// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plane_geometry.h"

namespace page_reader {

struct Colour {
  std::uint8_t r = 0;
  std::uint8_t g = 0;
  std::uint8_t b = 0;
  bool operator==(const Colour&) const = default;
};

inline constexpr Colour kWhite{255, 255, 255};
inline constexpr Colour kBlack{0, 0, 0};

/// Rows of RGB pixels, top to bottom, without padding.
class Picture {
 public:
  Picture() = default;
  Picture(int width, int height, Colour fill = kWhite);

  int width() const noexcept { return width_; }
  int height() const noexcept { return height_; }
  bool empty() const noexcept { return bytes_.empty(); }
  Colour at(int x, int y) const noexcept;
  void set(int x, int y, Colour colour) noexcept;
  const std::uint8_t* row(int y) const noexcept { return bytes_.data() + offset(0, y); }
  std::uint8_t* row(int y) noexcept { return bytes_.data() + offset(0, y); }
  const std::vector<std::uint8_t>& bytes() const noexcept { return bytes_; }

 private:
  std::size_t offset(int x, int y) const noexcept {
    return (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
            static_cast<std::size_t>(x)) *
           3;
  }
  int width_ = 0;
  int height_ = 0;
  std::vector<std::uint8_t> bytes_;
};

/// How a pixel between pixels is made: from 2, 4 or 8 neighbours each way. None of them averages
/// when it makes a picture smaller; the models were trained on pictures made like that.
enum class Filter : std::uint8_t { kLinear, kCubic, kLanczos };

/// Scales with half-pixel centres; beyond the edge the edge is repeated.
Picture resize(const Picture& source, int width, int height, Filter filter = Filter::kLinear);

/// The part [x, x + width) x [y, y + height), which must lie inside.
Picture crop(const Picture& source, int x, int y, int width, int height);

/// The quadrilateral made straight, `width` x `height`, by a perspective transform with cubic
/// sampling; the first corner comes to the top left. Outside the picture the edge is repeated.
Picture straighten(const Picture& source, const Quad& quad, int width, int height);

/// Turned counter-clockwise by `quarters` * 90 degrees; any integer.
Picture turn(const Picture& source, int quarters);

/// `source` at the top left of a larger canvas; what does not fit is cut off.
Picture on_canvas(const Picture& source, int width, int height, Colour fill);

/// Red and blue exchanged, in place: the models' order is blue, green, red.
void swap_red_blue(Picture& picture) noexcept;

}  // namespace page_reader
