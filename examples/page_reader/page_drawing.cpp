#include "page_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "canvas.h"

namespace page_reader {
namespace {

constexpr int kMargin = 28;
constexpr int kTitleHeight = 44;
/// Left of each panel, for the numbers of the lines.
constexpr int kGutter = 40;
constexpr double kTabText = 15;
constexpr double kTabHeight = 22;
constexpr double kNumberText = 15;
constexpr double kSmallestText = 9;

constexpr Colour kPaper{250, 250, 248};
constexpr Colour kInk{28, 32, 38};
constexpr Colour kFaint{120, 126, 134};
constexpr Colour kFrame{205, 208, 212};
constexpr Colour kLine{0, 114, 178};
constexpr Colour kUnsure{213, 94, 0};

/// Colours of region classes, told apart also by eyes that confuse red and green.
constexpr std::array<Colour, 6> kRegionColours{
    {{0, 140, 100}, {204, 90, 150}, {200, 120, 0}, {90, 80, 200}, {60, 130, 60}, {150, 60, 60}}};

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

  void regions(std::span<const std::string> labels) {
    for (const Region& region : result_.regions) shade(region);
    for (const Region& region : result_.regions) name(region, labels);
  }

  void lines() {
    for (std::size_t i = 0; i < result_.lines.size(); ++i) {
      const TextLine& line = result_.lines[i];
      outline(line);
      number(line, i + 1, left_);
      number(line, i + 1, right_);
      text(line);
    }
  }

  Picture take() { return std::move(canvas_); }

 private:
  Point place(Point p, Point corner) const { return corner + p * scale_; }

  Box place(const Box& box, Point corner) const {
    const Point a = place(Point{box.left, box.top}, corner);
    const Point b = place(Point{box.right, box.bottom}, corner);
    return {a.x, a.y, b.x, b.y};
  }

  void shade(const Region& region) {
    const Box box = place(region.box, left_);
    const Point frame[] = {
        {box.left, box.top}, {box.right, box.top}, {box.right, box.bottom}, {box.left, box.bottom}};
    fill_box(canvas_, box, region_colour(region.label), 0.07);
    draw_outline(canvas_, frame, 2.5, region_colour(region.label));
  }

  /// A tab on the upper edge of the region, at its right end, where a line of text seldom begins.
  /// It moves to the left while it would cover another tab.
  void name(const Region& region, std::span<const std::string> labels) {
    const std::string text = fmt::format(
        "{} {:.0f} %", labels[static_cast<std::size_t>(region.label)], region.score * 100);
    const double width = font_.width(text, kTabText) + 12;
    const Box box = place(region.box, left_);
    Box tab{box.right - width, box.top - kTabHeight, box.right, box.top};
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
    font_.draw(canvas_, tab.left + 6, tab.bottom - 6, text, kTabText, kWhite);
  }

  void outline(const TextLine& line) {
    Quad quad = line.box.quad;
    for (Point& p : quad) p = place(p, left_);
    draw_outline(canvas_, quad, 2, line_colour(line));
  }

  void number(const TextLine& line, std::size_t n, Point corner) {
    const std::string text = std::to_string(n);
    const Quad& q = line.box.quad;
    const Point at = place((q[0] + q[3]) * 0.5, corner);
    font_.draw(canvas_, at.x - 8 - font_.width(text, kNumberText), at.y + kNumberText * 0.36, text,
               kNumberText, corner == right_ ? kFaint : line_colour(line));
  }

  /// The text in the place of its line, no larger than the line and no longer. All lines of about
  /// one height get one size, or the panel would look restless.
  void text(const TextLine& line) {
    const Quad& q = line.box.quad;
    const Box box = place(bounds(q), right_);
    const double height = distance(q[0], q[3]) * scale_;
    const double wanted = std::max(kSmallestText, std::floor(height * 0.62 / 3) * 3);
    const double room = std::max(box.width(), 3 * kSmallestText);
    const double size = font_.fitting_size(line.text.text, wanted, kSmallestText, room);
    const Point at = place((q[0] + q[3]) * 0.5, right_);
    font_.draw(canvas_, at.x, at.y + size * 0.36, line.text.text, size,
               line.text.score < 0.8F ? kUnsure : kInk);
  }

  static Colour line_colour(const TextLine& line) noexcept {
    return line.text.score < 0.8F ? kUnsure : kLine;
  }

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
  sheet.regions(labels);
  sheet.lines();
  return sheet.take();
}

}  // namespace page_reader
