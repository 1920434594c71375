/// Text detection: from a page to boxes of text lines, and from a map of probabilities (a DB
/// network, "differentiable binarization") to boxes. Pure functions, any thread.
#pragma once

#include <span>
#include <vector>

#include "model_input.h"
#include "picture.h"
#include "plane_geometry.h"

namespace page_reader {

/// The settings that the PP-OCRv6 detection model is published with.
struct TextDetectorSettings {
  int min_side = 736;          ///< A page with a shorter side is made larger before detection.
  int max_side = 2000;         ///< One with a longer side is made smaller.
  float threshold = 0.3F;      ///< A pixel above it is text.
  float box_threshold = 0.5F;  ///< A box with a lower mean probability is dropped.
  double unclip_ratio = 1.6;   ///< Text kernels are trained shrunken; this grows them again.
  double min_kernel = 3;       ///< Shortest side of a kernel, in pixels of the map.
  std::size_t max_boxes = 1000;
};

/// One line of text: its corners on the page, and the mean probability inside.
struct TextBox {
  Quad quad{};
  float score = 0;
};

/// Width and height the page is scaled to: sides within the settings, multiples of 32.
struct Extent {
  int width = 0;
  int height = 0;
  bool operator==(const Extent&) const = default;
};
Extent detector_extent(int width, int height, const TextDetectorSettings& settings = {});

/// The scaled page as the model takes it: [1, 3, height, width].
ModelInput detector_input(const Picture& page, const TextDetectorSettings& settings = {});

/// Boxes from a probability map of `width` x `height`, in the pixels of a page of `page` size,
/// in reading order.
std::vector<TextBox> find_text(std::span<const float> map, int width, int height, Extent page,
                               const TextDetectorSettings& settings = {});

/// Top to bottom by lines, left to right in a line. Boxes belong to one line when their middles
/// differ by less than half of the smaller height.
void sort_for_reading(std::vector<TextBox>& boxes);

/// The text inside a box made straight; a box at least 1.5 times as tall as wide is turned
/// counter-clockwise, since it is a vertical line.
Picture cut_out(const Picture& page, const Quad& quad);

}  // namespace page_reader
