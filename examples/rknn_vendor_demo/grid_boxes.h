/// Boxes from a detection head of one grid: for each cell a score of each class, and the distances
/// from the cell's centre to the box's left, top, right and bottom, in cells.
#pragma once

#include <cstdint>
#include <vector>

#include "pc_image.h"

struct Box {
  float left, top, right, bottom;  ///< Pixels.
  int label;
  float score;
};

/// A tensor [1, channels, height, width]: floats, or integers with their scale and zero point.
struct GridTensor {
  const float* floats = nullptr;
  const std::int8_t* bytes = nullptr;
  int zero_point = 0;
  float scale = 1;
  int channels = 0;
  int height = 0;
  int width = 0;

  float at(int channel, int y, int x) const {
    const int i = (channel * height + y) * width + x;
    return floats != nullptr ? floats[i] : static_cast<float>(bytes[i] - zero_point) * scale;
  }
};

/// The boxes of at least `threshold`, the best first, without those that overlap a better one of
/// their class by more than `overlap` (intersection over union). In pixels of the picture that was
/// letterboxed into a model's input with cells of `cell` pixels.
std::vector<Box> grid_boxes(const GridTensor& scores, const GridTensor& distances, float threshold,
                            float overlap, int cell, const Letterbox& box);
