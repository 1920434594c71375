#include "page_layout.h"

#include <algorithm>
#include <cmath>

namespace page_reader {
namespace {

/// How far a page's proportions may be from the canvas' before they are kept.
constexpr double kStretchLimit = 1.25;

/// The expected value of a distribution given as logits over 0, 1, 2, ...
double expected_distance(std::span<const float> logits) {
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double total = 0, weighted = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double e = std::exp(static_cast<double>(logits[i]) - top);
    total += e;
    weighted += e * static_cast<double>(i);
  }
  return weighted / total;
}

Box decode_box(const LayoutHead& head, std::size_t cell, std::size_t bins) {
  const auto columns = static_cast<std::size_t>((kLayoutWidth + head.stride - 1) / head.stride);
  const std::size_t column = cell % columns, row = cell / columns;
  const double x = (static_cast<double>(column) + 0.5) * head.stride;
  const double y = (static_cast<double>(row) + 0.5) * head.stride;
  const auto side = [&](std::size_t k) {
    return expected_distance(head.distances.subspan((cell * 4 + k) * bins, bins)) * head.stride;
  };
  return {x - side(0), y - side(1), x + side(2), y + side(3)};
}

}  // namespace

LayoutScale layout_scale(int width, int height) noexcept {
  const LayoutScale stretched{static_cast<double>(kLayoutWidth) / std::max(1, width),
                              static_cast<double>(kLayoutHeight) / std::max(1, height)};
  const double stretch = stretched.x / stretched.y;
  if (stretch <= kStretchLimit && stretch >= 1 / kStretchLimit) return stretched;
  const double both = std::min(stretched.x, stretched.y);
  return {both, both};
}

ModelInput layout_input(const Picture& page) {
  const LayoutScale scale = layout_scale(page.width(), page.height());
  const int width =
      std::clamp(static_cast<int>(std::lround(page.width() * scale.x)), 1, kLayoutWidth);
  const int height =
      std::clamp(static_cast<int>(std::lround(page.height() * scale.y)), 1, kLayoutHeight);
  return imagenet_input(
      on_canvas(resize(page, width, height), kLayoutWidth, kLayoutHeight, kWhite));
}

void decode_head(const LayoutHead& head, std::size_t classes, std::size_t bins, float min_score,
                 std::vector<Region>& regions) {
  if (classes == 0 || bins == 0 || head.stride <= 0) return;
  const std::size_t cells =
      std::min(head.scores.size() / classes, head.distances.size() / (4 * bins));
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const auto scores = head.scores.subspan(cell * classes, classes);
    if (*std::max_element(scores.begin(), scores.end()) <= min_score) continue;
    const Box box = decode_box(head, cell, bins);
    for (std::size_t label = 0; label < classes; ++label)
      if (scores[label] > min_score)
        regions.push_back({static_cast<int>(label), scores[label], box});
  }
}

std::vector<Region> suppress(std::vector<Region> regions, const LayoutSettings& settings) {
  std::stable_sort(regions.begin(), regions.end(),
                   [](const Region& a, const Region& b) { return a.score > b.score; });
  std::vector<Region> kept;
  std::vector<std::size_t> seen;
  for (const Region& candidate : regions) {
    const auto label = static_cast<std::size_t>(candidate.label);
    if (label >= seen.size()) seen.resize(label + 1);
    if (seen[label]++ >= settings.candidates) continue;
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](const Region& better) {
      return better.label == candidate.label &&
             overlap(better.box, candidate.box) > settings.max_overlap;
    });
    if (!covered) kept.push_back(candidate);
  }
  return kept;
}

std::vector<Region> find_regions(std::span<const LayoutHead> heads, std::size_t classes,
                                 std::size_t bins, int width, int height,
                                 const LayoutSettings& settings) {
  std::vector<Region> regions;
  for (const LayoutHead& head : heads)
    decode_head(head, classes, bins, settings.min_score, regions);
  regions = suppress(std::move(regions), settings);
  const LayoutScale scale = layout_scale(width, height);
  for (Region& region : regions) {
    Box& box = region.box;
    box.left = std::clamp(box.left / scale.x, 0.0, static_cast<double>(width));
    box.right = std::clamp(box.right / scale.x, 0.0, static_cast<double>(width));
    box.top = std::clamp(box.top / scale.y, 0.0, static_cast<double>(height));
    box.bottom = std::clamp(box.bottom / scale.y, 0.0, static_cast<double>(height));
  }
  std::erase_if(regions, [](const Region& region) { return region.box.area() < 1; });
  return regions;
}

std::vector<std::string> split_labels(std::string_view listing) {
  std::vector<std::string> labels;
  while (!listing.empty()) {
    const std::size_t end = listing.find('\n');
    labels.emplace_back(listing.substr(0, end));
    if (end == std::string_view::npos) break;
    listing.remove_prefix(end + 1);
  }
  return labels;
}

}  // namespace page_reader
