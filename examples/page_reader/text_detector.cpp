#include "text_detector.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace page_reader {
namespace {

/// Where (x, y) lies in a map of rows.
std::size_t pixel(int x, int y, int width) {
  return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
         static_cast<std::size_t>(x);
}

/// The corners of text pixels: point (x, y) of the grid is set when one of the four pixels around
/// it is text. Blobs that touch at a corner or are one pixel apart hang together on it, and its
/// points are where the blobs really end.
class CornerGrid {
 public:
  CornerGrid(std::span<const float> map, int width, int height, float threshold)
      : width_(width + 1), height_(height + 1), set_(static_cast<std::size_t>(width_ * height_)) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        if (map[pixel(x, y, width)] <= threshold) continue;
        set_[index(x, y)] = set_[index(x + 1, y)] = 1;
        set_[index(x, y + 1)] = set_[index(x + 1, y + 1)] = 1;
      }
    }
  }

  /// Removes the next blob (8-connected) and gives the ends of its rows; empty after the last.
  std::vector<Point> take_blob() {
    for (; next_ < set_.size(); ++next_)
      if (set_[next_] != 0) return take_from(next_);
    return {};
  }

 private:
  std::size_t index(int x, int y) const noexcept {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(x);
  }
  void push(int x, int y) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_ || set_[index(x, y)] == 0) return;
    set_[index(x, y)] = 0;
    stack_.push_back({x, y});
  }
  std::vector<Point> take_from(std::size_t start) {
    // Leftmost and rightmost point of each row: all that a convex hull can need.
    std::vector<std::pair<int, int>> rows;
    const int top = static_cast<int>(start / static_cast<std::size_t>(width_));
    push(static_cast<int>(start % static_cast<std::size_t>(width_)), top);
    while (!stack_.empty()) {
      const auto [x, y] = stack_.back();
      stack_.pop_back();
      // Rows are scanned downwards, so nothing of a blob lies above its first point.
      const auto row = static_cast<std::size_t>(y - top);
      if (row >= rows.size()) rows.resize(row + 1, {width_, -1});
      rows[row] = {std::min(rows[row].first, x), std::max(rows[row].second, x)};
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) push(x + dx, y + dy);
    }
    std::vector<Point> ends;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const double y = top + static_cast<int>(row);
      ends.push_back({static_cast<double>(rows[row].first), y});
      ends.push_back({static_cast<double>(rows[row].second), y});
    }
    return ends;
  }

  int width_, height_;
  std::vector<std::uint8_t> set_;
  std::vector<std::pair<int, int>> stack_;
  std::size_t next_ = 0;
};

/// Mean of the map over the pixels whose centre lies in the rectangle.
float mean_inside(std::span<const float> map, int width, int height, const TurnedRect& rect) {
  const Box box = bounds(corners(rect));
  const Point normal{-rect.axis.y, rect.axis.x};
  double total = 0;
  std::size_t count = 0;
  const int bottom = std::min(height, static_cast<int>(std::ceil(box.bottom)));
  const int right = std::min(width, static_cast<int>(std::ceil(box.right)));
  for (int y = std::max(0, static_cast<int>(box.top)); y < bottom; ++y) {
    for (int x = std::max(0, static_cast<int>(box.left)); x < right; ++x) {
      const Point from_centre = Point{x + 0.5, y + 0.5} - rect.centre;
      if (std::abs(dot(from_centre, rect.axis)) > rect.width / 2 ||
          std::abs(dot(from_centre, normal)) > rect.height / 2)
        continue;
      total += static_cast<double>(map[pixel(x, y, width)]);
      ++count;
    }
  }
  return count == 0 ? 0 : static_cast<float>(total / static_cast<double>(count));
}

Quad to_page(const Quad& quad, int width, int height, Extent page) {
  Quad scaled = quad;
  for (Point& p : scaled) {
    p.x = std::clamp(p.x * page.width / width, 0.0, static_cast<double>(page.width));
    p.y = std::clamp(p.y * page.height / height, 0.0, static_cast<double>(page.height));
  }
  return scaled;
}

int multiple_of_32(double side) {
  return std::max(32, static_cast<int>(std::lround(side / 32)) * 32);
}

double line_height(const TextBox& box) { return distance(box.quad[0], box.quad[3]); }

/// The middle of the left edge: lines of a slanted page are told apart by where they begin.
double middle(const TextBox& box) { return (box.quad[0].y + box.quad[3].y) / 2; }

}  // namespace

Extent detector_extent(int width, int height, const TextDetectorSettings& settings) {
  const int shorter = std::min(width, height), longer = std::max(width, height);
  double ratio = 1;
  if (shorter < settings.min_side) ratio = static_cast<double>(settings.min_side) / shorter;
  if (longer * ratio > settings.max_side) ratio = static_cast<double>(settings.max_side) / longer;
  return {multiple_of_32(width * ratio), multiple_of_32(height * ratio)};
}

ModelInput detector_input(const Picture& page, const TextDetectorSettings& settings) {
  const Extent extent = detector_extent(page.width(), page.height(), settings);
  return text_input(resize(page, extent.width, extent.height));
}

std::vector<TextBox> find_text(std::span<const float> map, int width, int height, Extent page,
                               const TextDetectorSettings& settings) {
  std::vector<TextBox> boxes;
  if (width <= 0 || height <= 0 || map.size() < pixel(0, height, width)) return boxes;
  CornerGrid grid(map, width, height, settings.threshold);
  while (boxes.size() < settings.max_boxes) {
    std::vector<Point> blob = grid.take_blob();
    if (blob.empty()) break;
    const TurnedRect kernel = min_area_rect(convex_hull(std::move(blob)));
    if (kernel.short_side() < settings.min_kernel) continue;
    const float score = mean_inside(map, width, height, kernel);
    if (score < settings.box_threshold) continue;
    const TurnedRect full = expand(kernel, unclip_margin(kernel, settings.unclip_ratio));
    const Quad quad = to_page(corners(full), width, height, page);
    if (distance(quad[0], quad[1]) < 3 || distance(quad[0], quad[3]) < 3) continue;
    boxes.push_back({quad, score});
  }
  sort_for_reading(boxes);
  return boxes;
}

void sort_for_reading(std::vector<TextBox>& boxes) {
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const TextBox& a, const TextBox& b) { return middle(a) < middle(b); });
  for (auto first = boxes.begin(); first != boxes.end();) {
    auto last = first + 1;
    while (last != boxes.end() &&
           middle(*last) - middle(*first) < std::min(line_height(*first), line_height(*last)) / 2)
      ++last;
    std::stable_sort(first, last,
                     [](const TextBox& a, const TextBox& b) { return a.quad[0].x < b.quad[0].x; });
    first = last;
  }
}

Picture cut_out(const Picture& page, const Quad& quad) {
  const double width = std::max(distance(quad[0], quad[1]), distance(quad[3], quad[2]));
  const double height = std::max(distance(quad[0], quad[3]), distance(quad[1], quad[2]));
  const int w = std::max(1, static_cast<int>(std::lround(width)));
  const int h = std::max(1, static_cast<int>(std::lround(height)));
  Picture line = straighten(page, quad, w, h);
  return h >= 1.5 * w ? turn(line, 1) : line;
}

}  // namespace page_reader
