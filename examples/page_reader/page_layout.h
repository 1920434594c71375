/// The parts of a page: text, titles, figures, tables, ... From the raw heads of a PicoDet network
/// to labelled boxes. Pure functions, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_input.h"
#include "picture.h"
#include "plane_geometry.h"

namespace page_reader {

inline constexpr int kLayoutWidth = 608;
inline constexpr int kLayoutHeight = 800;

struct LayoutSettings {
  float min_score = 0.5F;
  double max_overlap = 0.5;      ///< Of two boxes of one class that overlap more, one is kept.
  std::size_t candidates = 200;  ///< Per class, the best.
};

/// One part of the page.
struct Region {
  int label = 0;  ///< Index into the model's labels.
  float score = 0;
  Box box;
  bool operator==(const Region&) const = default;
};

/// How the page lies on the model's canvas: canvas pixel = page pixel * scale.
struct LayoutScale {
  double x = 1;
  double y = 1;
};
/// The model knows portrait pages stretched to its canvas. A page of other proportions keeps them
/// and is laid at the top left of a white canvas: stretched letters would look like headlines.
LayoutScale layout_scale(int width, int height) noexcept;

/// [1, 3, 800, 608].
ModelInput layout_input(const Picture& page);

/// One detection head: a grid of cells `stride` pixels apart. For each cell, row by row, `scores`
/// has a probability for each class, and `distances` four distributions over `bins` distances (in
/// strides): to the left, top, right and bottom side.
struct LayoutHead {
  int stride = 0;
  std::span<const float> scores;
  std::span<const float> distances;
};

/// All boxes of a head above the minimum score, in canvas pixels.
void decode_head(const LayoutHead& head, std::size_t classes, std::size_t bins, float min_score,
                 std::vector<Region>& regions);

/// Non-maximum suppression within each class; the best first.
std::vector<Region> suppress(std::vector<Region> regions, const LayoutSettings& settings = {});

/// From all heads to regions on a page of `width` x `height`, the best first.
std::vector<Region> find_regions(std::span<const LayoutHead> heads, std::size_t classes,
                                 std::size_t bins, int width, int height,
                                 const LayoutSettings& settings = {});

/// The labels in a model's metadata: one a line.
std::vector<std::string> split_labels(std::string_view listing);

}  // namespace page_reader
