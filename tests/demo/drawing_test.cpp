#include <gtest/gtest.h>

#include "canvas.h"
#include "glyphs.h"
#include "page_drawing.h"
#include "progress.h"

namespace page_reader {
namespace {

int inked(const Picture& picture, Colour paper = kWhite) {
  int count = 0;
  for (int y = 0; y < picture.height(); ++y)
    for (int x = 0; x < picture.width(); ++x) count += picture.at(x, y) == paper ? 0 : 1;
  return count;
}

TEST(Blend, MixesAndIgnoresOutside) {
  Picture picture(2, 2, kWhite);
  blend(picture, 1, 0, kBlack, 0.5);
  EXPECT_EQ(picture.at(1, 0), (Colour{128, 128, 128}));
  blend(picture, -1, 0, kBlack, 1);
  blend(picture, 0, 2, kBlack, 1);
  EXPECT_EQ(inked(picture), 1);
}

TEST(FillPolygon, CoversInsideWhicheverWayItTurns) {
  const std::vector<Point> square{{2, 2}, {8, 2}, {8, 8}, {2, 8}};
  const std::vector<Point> other(square.rbegin(), square.rend());
  for (const auto& polygon : {square, other}) {
    Picture picture(10, 10, kWhite);
    fill_polygon(picture, polygon, kBlack, 1);
    EXPECT_EQ(picture.at(5, 5), kBlack);
    EXPECT_EQ(picture.at(0, 0), kWhite);
    EXPECT_EQ(picture.at(9, 5), kWhite);
  }
}

TEST(DrawLine, IsAsThickAsAsked) {
  Picture picture(20, 20, kWhite);
  draw_line(picture, {-100, 10}, {100, 10}, 4, kBlack);
  for (int y = 0; y < 20; ++y) EXPECT_EQ(picture.at(10, y) == kBlack, y >= 8 && y < 12) << y;
}

TEST(Paste, CutsOffAllFourSides) {
  for (const auto& [x, y] : {std::pair{-3, -3}, {8, 8}, {-3, 8}, {100, 100}, {-100, 0}}) {
    Picture picture(10, 10, kWhite);
    paste(picture, Picture(5, 5, kBlack), x, y);
    EXPECT_EQ(inked(picture), (x > 10 || x < -5) ? 0 : 4);
  }
}

TEST(DecodeUtf8, ReadsAllLengthsAndMarksBrokenOnes) {
  EXPECT_EQ(decode_utf8("aé中😀"), U"aé中😀");
  EXPECT_EQ(decode_utf8("\x80"), U"\xFFFD");
  EXPECT_EQ(decode_utf8("\xE4\xB8"), U"\xFFFD");
  EXPECT_EQ(decode_utf8("\xC3"
                        "a"),
            U"\xFFFD"
            U"a");
}

TEST(Font, DrawsWhatItMeasures) {
  auto font = Font::open();
  ASSERT_TRUE(font) << font.error().to_string();
  EXPECT_GT(font->width("wide text", 20), font->width("wide", 20));
  EXPECT_NEAR(font->width("abc", 40) / font->width("abc", 20), 2, 0.15);
  Picture picture(200, 40, kWhite);
  font->draw(picture, 10, 30, "Text", 24, kBlack);
  EXPECT_GT(inked(picture), 100);
  const double right = 10 + font->width("Text", 24);
  for (int y = 0; y < 40; ++y)
    for (int x = static_cast<int>(right) + 2; x < 200; ++x) ASSERT_EQ(picture.at(x, y), kWhite);
}

TEST(Font, FitsTextIntoItsRoom) {
  auto font = Font::open();
  ASSERT_TRUE(font);
  EXPECT_EQ(font->fitting_size("short", 20, 8, 1000), 20);
  const double size = font->fitting_size("a rather long line of text", 30, 8, 200);
  EXPECT_LT(size, 30);
  EXPECT_LE(font->width("a rather long line of text", size), 200);
  EXPECT_EQ(font->fitting_size("a rather long line of text", 30, 8, 1), 8);
}

TEST(Font, NamesTheFileThatIsNoFont) {
  const auto font = Font::open("/dev/null");
  ASSERT_FALSE(font);
  EXPECT_NE(font.error().message().find("/dev/null"), std::string::npos);
}

TEST(DrawResult, ShowsPageAndTextSideBySide) {
  auto font = Font::open();
  ASSERT_TRUE(font);
  PageResult result;
  result.width = 400;
  result.height = 100;
  result.regions.push_back({0, 0.9F, {10, 10, 390, 60}});
  TextLine line;
  line.box = {{{{20, 20}, {300, 20}, {300, 40}, {20, 40}}}, 0.9F};
  line.text = {"some text", 0.95F};
  result.lines.push_back(line);
  const std::vector<std::string> labels{"text"};
  const Picture drawn = draw_result(Picture(400, 100, kWhite), result, labels, "title", *font);
  EXPECT_GE(drawn.width(), 2 * 1000) << "a small page is enlarged";
  const Picture right = crop(drawn, drawn.width() / 2 + 60, 60, drawn.width() / 2 - 120, 120);
  EXPECT_GT(inked(right), 200) << "the text stands in the right half";
}

TEST(DrawResult, SurvivesTextAtEveryEdge) {
  auto font = Font::open();
  ASSERT_TRUE(font);
  PageResult result;
  for (const double x : {0.0, 45.0}) {
    for (const double y : {0.0, 45.0}) {
      TextLine line;
      line.box = {{{{x, y}, {x + 5, y}, {x + 5, y + 5}, {x, y + 5}}}, 0.9F};
      line.text = {"text that is far too long for its box", 0.5F};
      result.lines.push_back(line);
      result.regions.push_back({9, 0.9F, {x, y, x + 5, y + 5}});
    }
  }
  const std::vector<std::string> labels(10, "label");
  EXPECT_FALSE(draw_result(Picture(50, 50), result, labels, "title", *font).empty());
}

TEST(DrawingScale, BringsPagesToAReadableSize) {
  EXPECT_GT(drawing_scale(384), 2);
  EXPECT_EQ(drawing_scale(1200), 1);
  EXPECT_LT(drawing_scale(5000), 0.5);
}

TEST(ProgressBar, FillsFromLeftAndStaysInBounds) {
  EXPECT_EQ(progress_bar(0, 4), "[....]");
  EXPECT_EQ(progress_bar(0.5, 4), "[##..]");
  EXPECT_EQ(progress_bar(7, 4), "[####]");
  EXPECT_EQ(progress_bar(-1, 4), "[....]");
}

}  // namespace
}  // namespace page_reader
