#include "grid_boxes.h"

#include <algorithm>

namespace {

float area(const Box& b) {
  return std::max(0.0F, b.right - b.left) * std::max(0.0F, b.bottom - b.top);
}

float intersection_over_union(const Box& a, const Box& b) {
  const Box both{std::max(a.left, b.left),
                 std::max(a.top, b.top),
                 std::min(a.right, b.right),
                 std::min(a.bottom, b.bottom),
                 0,
                 0};
  const float shared = area(both);
  const float all = area(a) + area(b) - shared;
  return all > 0 ? shared / all : 0;
}

}  // namespace

std::vector<Box> grid_boxes(const GridTensor& scores, const GridTensor& distances, float threshold,
                            float overlap, int cell, const Letterbox& box) {
  const auto to_x = [&](float cells) {
    return (cells * float(cell) - float(box.left)) / box.scale;
  };
  const auto to_y = [&](float cells) { return (cells * float(cell) - float(box.top)) / box.scale; };
  std::vector<Box> found;
  for (int y = 0; y < scores.height; ++y) {
    for (int x = 0; x < scores.width; ++x) {
      for (int label = 0; label < scores.channels; ++label) {
        const float score = scores.at(label, y, x);
        if (score < threshold) continue;
        const float cx = float(x) + 0.5F;
        const float cy = float(y) + 0.5F;
        found.push_back({to_x(cx - distances.at(0, y, x)), to_y(cy - distances.at(1, y, x)),
                         to_x(cx + distances.at(2, y, x)), to_y(cy + distances.at(3, y, x)), label,
                         score});
      }
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Box& a, const Box& b) { return a.score > b.score; });
  std::vector<Box> kept;
  for (const Box& b : found) {
    const bool seen = std::any_of(kept.begin(), kept.end(), [&](const Box& k) {
      return k.label == b.label && intersection_over_union(k, b) > overlap;
    });
    if (!seen) kept.push_back(b);
  }
  return kept;
}
