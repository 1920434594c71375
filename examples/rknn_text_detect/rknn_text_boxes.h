/// Boxes from the map that a text detector of the DB kind gives. Nothing here knows the API.
#pragma once

#include <vector>

struct TextBox {
  float left, top, right, bottom;  ///< Pixels of the page.
  float score;                     ///< Mean of the map over the blob's rectangle.
};

struct TextBoxSettings {
  float threshold = 0.3F;      ///< What of the map is text.
  float box_threshold = 0.6F;  ///< Least score.
  float unclip = 1.6F;         ///< How far a box reaches around its blob: area x this / perimeter.
  int least_side = 3;          ///< Of a blob, pixels of the map.
};

/// Boxes of upright lines, from top to bottom: 8-connected blobs over the threshold, their
/// rectangles widened and scaled to the page.
std::vector<TextBox> find_text_boxes(const std::vector<float>& map, int width, int height,
                                     int page_width, int page_height,
                                     const TextBoxSettings& settings);
