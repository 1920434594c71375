#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "picture.h"

namespace page_reader {
namespace {

constexpr int kMaxTaps = 8;

/// The neighbours of one output position along one axis.
struct Taps {
  std::array<int, kMaxTaps> index{};
  std::array<float, kMaxTaps> weight{};
};

int tap_count(Filter filter) noexcept {
  return filter == Filter::kLinear ? 2 : filter == Filter::kCubic ? 4 : 8;
}

/// The cubic convolution kernel with a = -0.75.
double cubic(double x) noexcept {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double lanczos(double x) noexcept {
  constexpr double kLobes = 4;
  if (std::abs(x) < 1e-9) return 1;
  if (std::abs(x) >= kLobes) return 0;
  const double t = std::numbers::pi * x;
  return kLobes * std::sin(t) * std::sin(t / kLobes) / (t * t);
}

double kernel(Filter filter, double x) noexcept {
  switch (filter) {
    case Filter::kLinear:
      return std::max(0.0, 1 - std::abs(x));
    case Filter::kCubic:
      return cubic(x);
    case Filter::kLanczos:
      return lanczos(x);
  }
  return 0;
}

/// Neighbours and weights around `position` (in pixel centres) on an axis of `size` pixels.
Taps taps_at(Filter filter, double position, int size) noexcept {
  const int count = tap_count(filter);
  const int first = static_cast<int>(std::floor(position)) - (count / 2 - 1);
  Taps taps;
  double total = 0;
  for (int i = 0; i < count; ++i) total += kernel(filter, position - (first + i));
  for (int i = 0; i < count; ++i) {
    const auto k = static_cast<std::size_t>(i);
    taps.index[k] = std::clamp(first + i, 0, size - 1);
    taps.weight[k] = static_cast<float>(kernel(filter, position - (first + i)) / total);
  }
  return taps;
}

std::vector<Taps> taps_along(Filter filter, int from, int to) {
  std::vector<Taps> all(static_cast<std::size_t>(to));
  const double scale = static_cast<double>(from) / to;
  for (int i = 0; i < to; ++i)
    all[static_cast<std::size_t>(i)] = taps_at(filter, (i + 0.5) * scale - 0.5, from);
  return all;
}

std::uint8_t to_byte(float value) noexcept {
  return static_cast<std::uint8_t>(std::lrintf(std::clamp(value, 0.0F, 255.0F)));
}

/// One row scaled along x, as floats.
void scale_row(const std::uint8_t* row, const std::vector<Taps>& columns, int count, float* out) {
  for (const Taps& taps : columns) {
    float r = 0, g = 0, b = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const std::uint8_t* p = row + std::ptrdiff_t{3} * taps.index[i];
      r += taps.weight[i] * static_cast<float>(p[0]);
      g += taps.weight[i] * static_cast<float>(p[1]);
      b += taps.weight[i] * static_cast<float>(p[2]);
    }
    *out++ = r;
    *out++ = g;
    *out++ = b;
  }
}

/// The projective map of the unit square onto a quadrilateral.
class SquareToQuad {
 public:
  explicit SquareToQuad(const Quad& q) noexcept : origin_(q[0]) {
    const Point sum = q[0] - q[1] + q[2] - q[3];
    const Point d1 = q[1] - q[2], d2 = q[3] - q[2];
    const double area = cross(d1, d2);
    if (area != 0) {
      g_ = cross(sum, d2) / area;
      h_ = cross(d1, sum) / area;
    }
    along_u_ = q[1] - q[0] + q[1] * g_;
    along_v_ = q[3] - q[0] + q[3] * h_;
  }
  Point operator()(double u, double v) const noexcept {
    return (origin_ + along_u_ * u + along_v_ * v) * (1 / (g_ * u + h_ * v + 1));
  }

 private:
  Point origin_, along_u_, along_v_;
  double g_ = 0, h_ = 0;
};

Colour sample(const Picture& source, Point at) {
  const Taps xs = taps_at(Filter::kCubic, at.x - 0.5, source.width());
  const Taps ys = taps_at(Filter::kCubic, at.y - 0.5, source.height());
  float r = 0, g = 0, b = 0;
  for (std::size_t j = 0; j < 4; ++j) {
    const std::uint8_t* row = source.row(ys.index[j]);
    for (std::size_t i = 0; i < 4; ++i) {
      const float w = xs.weight[i] * ys.weight[j];
      const std::uint8_t* p = row + std::ptrdiff_t{3} * xs.index[i];
      r += w * static_cast<float>(p[0]);
      g += w * static_cast<float>(p[1]);
      b += w * static_cast<float>(p[2]);
    }
  }
  return {to_byte(r), to_byte(g), to_byte(b)};
}

}  // namespace

// Along x first, row by row as they are needed; a source row is scaled once.
Picture resize(const Picture& source, int width, int height, Filter filter) {
  Picture scaled(width, height);
  if (source.empty() || scaled.empty()) return scaled;
  const int count = tap_count(filter);
  const std::vector<Taps> columns = taps_along(filter, source.width(), width);
  const std::vector<Taps> rows = taps_along(filter, source.height(), height);
  const std::size_t floats = static_cast<std::size_t>(width) * 3;
  // A ring of scaled source rows: row y lives in slot y % kMaxTaps.
  std::array<std::vector<float>, kMaxTaps> ring;
  std::array<int, kMaxTaps> held{};
  held.fill(-1);
  for (auto& slot : ring) slot.resize(floats);
  for (int y = 0; y < height; ++y) {
    const Taps& taps = rows[static_cast<std::size_t>(y)];
    std::array<const float*, kMaxTaps> lines{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const auto slot = static_cast<std::size_t>(taps.index[i] % kMaxTaps);
      if (held[slot] != taps.index[i]) {
        scale_row(source.row(taps.index[i]), columns, count, ring[slot].data());
        held[slot] = taps.index[i];
      }
      lines[i] = ring[slot].data();
    }
    std::uint8_t* out = scaled.row(y);
    for (std::size_t x = 0; x < floats; ++x) {
      float value = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
        value += taps.weight[i] * lines[i][x];
      out[x] = to_byte(value);
    }
  }
  return scaled;
}

Picture straighten(const Picture& source, const Quad& quad, int width, int height) {
  Picture straight(width, height);
  if (source.empty()) return straight;
  const SquareToQuad map(quad);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      straight.set(x, y, sample(source, map((x + 0.5) / width, (y + 0.5) / height)));
  return straight;
}

}  // namespace page_reader
