#include "page_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "canvas.h"

namespace page_reader {
namespace {

constexpr int kMargin = 28;
constexpr int kTitleHeight = 44;
/// Left of each panel, for the numbers of the lines.
constexpr int kGutter = 40;
constexpr double kRegionMargin = 4;
constexpr double kTabText = 15;
constexpr double kTabHeight = 22;
constexpr double kNumberText = 14;
constexpr double kBadgeHeight = 18;
constexpr double kSmallestText = 9;

constexpr Colour kPaper{250, 250, 248};
constexpr Colour kInk{28, 32, 38};
constexpr Colour kFaint{120, 126, 134};
constexpr Colour kFrame{205, 208, 212};
constexpr Colour kLine{0, 114, 178};
constexpr Colour kUnsure{213, 94, 0};

/// Colours of region classes, told apart also by eyes that confuse red and green.
constexpr std::array<Colour, 10> kRegionColours{{{0, 135, 98},
                                                 {196, 78, 142},
                                                 {176, 112, 0},
                                                 {122, 92, 40},
                                                 {96, 72, 196},
                                                 {140, 100, 214},
                                                 {190, 60, 60},
                                                 {110, 110, 110},
                                                 {60, 110, 60},
                                                 {30, 90, 140}}};

Colour region_colour(int label) noexcept {
  return kRegionColours[static_cast<std::size_t>(label) % kRegionColours.size()];
}

bool meet(const Box& a, const Box& b) noexcept {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/// Draws on the canvas; places are given in pixels of the page.
class Sheet {
 public:
  Sheet(const Picture& page, const PageResult& result, Font& font)
      : result_(result), font_(font), scale_(drawing_scale(page.width())) {
    const int w = static_cast<int>(std::lround(page.width() * scale_));
    const int h = static_cast<int>(std::lround(page.height() * scale_));
    left_ = {kMargin + kGutter, kTitleHeight + kMargin};
    right_ = {left_.x + w + kMargin + kGutter, left_.y};
    canvas_ = Picture(static_cast<int>(right_.x) + w + kMargin,
                      static_cast<int>(left_.y) + h + kMargin, kPaper);
    paste(canvas_, resize(page, w, h, scale_ > 1 ? Filter::kCubic : Filter::kLinear),
          static_cast<int>(left_.x), static_cast<int>(left_.y));
    for (const Point corner : {left_, right_}) {
      const Box panel{corner.x, corner.y, corner.x + w, corner.y + h};
      if (corner == right_) fill_box(canvas_, panel, kWhite);
      const Point frame[] = {{panel.left, panel.top},
                             {panel.right, panel.top},
                             {panel.right, panel.bottom},
                             {panel.left, panel.bottom}};
      draw_outline(canvas_, frame, 1, kFrame);
    }
  }

  void title(const std::string& text) {
    const double room = canvas_.width() - 2 * kMargin;
    const double size = font_.fitting_size(text, 22, kSmallestText, room);
    font_.draw(canvas_, kMargin, kTitleHeight - 4, text, size, kInk);
  }

  void regions() {
    for (const Region& region : result_.regions) shade(region);
  }

  void lines() {
    const std::vector<double> sizes = text_sizes();
    for (std::size_t i = 0; i < result_.lines.size(); ++i) {
      const TextLine& line = result_.lines[i];
      outline(line, i + 1);
      number_beside(line, i + 1);
      if (stands_upright(line))
        vertical_text(line);
      else
        text(line, sizes[i]);
    }
  }

  /// After the lines, so that nothing covers them.
  void region_names(std::span<const std::string> labels) {
    for (const Region& region : result_.regions)
      if (static_cast<std::size_t>(region.label) < labels.size())
        name(region, labels[static_cast<std::size_t>(region.label)]);
  }

  Picture take() { return std::move(canvas_); }

 private:
  Point place(Point p, Point corner) const { return corner + p * scale_; }

  Box place(const Box& box, Point corner) const {
    const Point a = place(Point{box.left, box.top}, corner);
    const Point b = place(Point{box.right, box.bottom}, corner);
    return {a.x, a.y, b.x, b.y};
  }

  /// Where a region is drawn: a little around it, so that it frames its lines.
  Box region_frame(const Region& region) const {
    const Box box = place(region.box, left_);
    return {box.left - kRegionMargin, box.top - kRegionMargin, box.right + kRegionMargin,
            box.bottom + kRegionMargin};
  }

  void shade(const Region& region) {
    const Box box = region_frame(region);
    const Point frame[] = {
        {box.left, box.top}, {box.right, box.top}, {box.right, box.bottom}, {box.left, box.bottom}};
    fill_box(canvas_, box, region_colour(region.label), 0.08);
    draw_outline(canvas_, frame, 3, region_colour(region.label));
  }

  /// A tab on the upper edge of the region, at its right end, where a line of text seldom begins.
  /// It moves to the left while it would cover another tab.
  void name(const Region& region, const std::string& label) {
    const std::string text = fmt::format("{} {:.0f} %", label, region.score * 100);
    const double width = font_.width(text, kTabText) + 14;
    const Box box = region_frame(region);
    const double right = std::max(box.right + 1, left_.x + width);
    Box tab{right - width, box.top - kTabHeight, right, box.top};
    const auto taken = [&] {
      return std::find_if(tabs_.begin(), tabs_.end(), [&](const Box& t) { return meet(t, tab); });
    };
    for (auto other = taken(); other != tabs_.end() && other->left - width - 4 > left_.x;
         other = taken()) {
      tab.right = other->left - 4;
      tab.left = tab.right - width;
    }
    tabs_.push_back(tab);
    fill_box(canvas_, tab, region_colour(region.label));
    font_.draw(canvas_, tab.left + 7, tab.bottom - 6, text, kTabText, kWhite);
  }

  /// The box of a line, and its number at the first corner, outside.
  void outline(const TextLine& line, std::size_t n) {
    Quad quad = line.box.quad;
    for (Point& p : quad) p = place(p, left_);
    draw_outline(canvas_, quad, 2, line_colour(line));
    const std::string text = std::to_string(n);
    const double width = font_.width(text, kNumberText) + 8;
    const Box badge{quad[0].x - width, quad[0].y - kBadgeHeight / 2, quad[0].x,
                    quad[0].y + kBadgeHeight / 2};
    fill_box(canvas_, badge, line_colour(line));
    font_.draw(canvas_, badge.left + 4, badge.bottom - 4, text, kNumberText, kWhite);
  }

  void number_beside(const TextLine& line, std::size_t n) {
    const std::string text = std::to_string(n);
    const Point at = middle_left(line);
    font_.draw(canvas_, at.x - 8 - font_.width(text, kNumberText), at.y + kNumberText * 0.36, text,
               kNumberText, kFaint);
  }

  Point middle_left(const TextLine& line) const {
    const Quad& q = line.box.quad;
    return place((q[0] + q[3]) * 0.5, right_);
  }

  double line_height(const TextLine& line) const {
    return distance(line.box.quad[0], line.box.quad[3]) * scale_;
  }

  static bool stands_upright(const TextLine& line) {
    const Quad& q = line.box.quad;
    return distance(q[0], q[3]) >= 1.5 * distance(q[0], q[1]);
  }

  /// The size at which the text is as long as its line, if it is not higher then.
  double own_size(const TextLine& line) {
    const double room = place(bounds(line.box.quad), right_).width();
    return font_.fitting_size(line.text.text, std::max(kSmallestText, line_height(line) * 0.8),
                              kSmallestText, room);
  }

  /// One size for each line. Lines of about one size get the smallest of theirs, or the panel
  /// would look restless.
  std::vector<double> text_sizes() {
    std::vector<double> sizes;
    for (const TextLine& line : result_.lines) sizes.push_back(own_size(line));
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
    double smallest = 0, previous = 0;
    for (const std::size_t i : order) {
      if (sizes[i] > 1.15 * previous) smallest = sizes[i];
      previous = sizes[i];
      sizes[i] = smallest;
    }
    return sizes;
  }

  void text(const TextLine& line, double size) {
    const Point at = middle_left(line);
    font_.draw(canvas_, at.x, at.y + size * 0.36, line.text.text, size, text_colour(line));
  }

  /// A line that runs from top to bottom: written on a sheet of its own, then turned.
  void vertical_text(const TextLine& line) {
    const Box box = place(bounds(line.box.quad), right_);
    const int length = std::max(1, static_cast<int>(box.height()));
    const int height = std::max(1, static_cast<int>(box.width()));
    const double size = font_.fitting_size(line.text.text, std::max(kSmallestText, height * 0.62),
                                           kSmallestText, length);
    Picture strip(length, height, kWhite);
    font_.draw(strip, 0, height / 2.0 + size * 0.36, line.text.text, size, text_colour(line));
    paste(canvas_, turn(strip, -1), static_cast<int>(box.left), static_cast<int>(box.top));
  }

  static bool sure(const TextLine& line) noexcept { return line.text.score >= 0.8F; }
  static Colour line_colour(const TextLine& line) noexcept { return sure(line) ? kLine : kUnsure; }
  static Colour text_colour(const TextLine& line) noexcept { return sure(line) ? kInk : kUnsure; }

  const PageResult& result_;
  Font& font_;
  const double scale_;
  Point left_, right_;  ///< Upper left corners of the panels.
  Picture canvas_;
  std::vector<Box> tabs_;
};

}  // namespace

double drawing_scale(int page_width) noexcept {
  constexpr double kSmall = 1000, kLarge = 1400;
  if (page_width < kSmall) return kSmall / std::max(1, page_width);
  return page_width > kLarge ? kLarge / page_width : 1;
}

Picture draw_result(const Picture& page, const PageResult& result,
                    std::span<const std::string> labels, const std::string& title, Font& font) {
  Sheet sheet(page, result, font);
  sheet.title(title);
  sheet.regions();
  sheet.lines();
  sheet.region_names(labels);
  return sheet.take();
}

}  // namespace page_reader
