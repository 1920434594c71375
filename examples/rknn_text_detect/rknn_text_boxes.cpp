#include "rknn_text_boxes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace {

struct Blob {
  int left, top, right, bottom;  ///< Right and bottom lie one past the last pixel.
};

std::size_t at(int x, int y, int width) {
  return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
         static_cast<std::size_t>(x);
}

/// Empties the blob that (x, y) belongs to.
Blob take_blob(std::vector<char>& text, int width, int height, int x, int y) {
  Blob blob = {x, y, x + 1, y + 1};
  std::vector<std::pair<int, int>> stack(1, std::make_pair(x, y));
  text[at(x, y, width)] = 0;
  while (!stack.empty()) {
    const std::pair<int, int> p = stack.back();
    stack.pop_back();
    blob.left = std::min(blob.left, p.first);
    blob.right = std::max(blob.right, p.first + 1);
    blob.bottom = std::max(blob.bottom, p.second + 1);
    blob.top = std::min(blob.top, p.second);
    for (int ny = std::max(0, p.second - 1); ny <= std::min(height - 1, p.second + 1); ++ny)
      for (int nx = std::max(0, p.first - 1); nx <= std::min(width - 1, p.first + 1); ++nx) {
        if (text[at(nx, ny, width)] == 0) continue;
        text[at(nx, ny, width)] = 0;
        stack.push_back(std::make_pair(nx, ny));
      }
  }
  return blob;
}

float mean_inside(const std::vector<float>& map, int width, const Blob& blob) {
  double total = 0;
  for (int y = blob.top; y < blob.bottom; ++y)
    for (int x = blob.left; x < blob.right; ++x) total += map[at(x, y, width)];
  const int area = (blob.right - blob.left) * (blob.bottom - blob.top);
  return static_cast<float>(total / area);
}

float within(float value, int limit) {
  return std::max(0.0F, std::min(value, static_cast<float>(limit)));
}

}  // namespace

std::vector<TextBox> find_text_boxes(const std::vector<float>& map, int width, int height,
                                     int page_width, int page_height,
                                     const TextBoxSettings& settings) {
  std::vector<char> text(map.size());
  for (std::size_t i = 0; i < map.size(); ++i) text[i] = map[i] > settings.threshold ? 1 : 0;
  const float sx = static_cast<float>(page_width) / static_cast<float>(width);
  const float sy = static_cast<float>(page_height) / static_cast<float>(height);
  std::vector<TextBox> boxes;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      if (text[at(x, y, width)] == 0) continue;
      const Blob blob = take_blob(text, width, height, x, y);
      const int w = blob.right - blob.left, h = blob.bottom - blob.top;
      if (std::min(w, h) < settings.least_side) continue;
      const float score = mean_inside(map, width, blob);
      if (score < settings.box_threshold) continue;
      const float margin =
          static_cast<float>(w * h) * settings.unclip / static_cast<float>(2 * (w + h));
      const TextBox box = {within((static_cast<float>(blob.left) - margin) * sx, page_width),
                           within((static_cast<float>(blob.top) - margin) * sy, page_height),
                           within((static_cast<float>(blob.right) + margin) * sx, page_width),
                           within((static_cast<float>(blob.bottom) + margin) * sy, page_height),
                           score};
      boxes.push_back(box);
    }
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const TextBox& a, const TextBox& b) { return a.top < b.top; });
  return boxes;
}
