#include "text_recognizer.h"

#include <gtest/gtest.h>

#include "page_orientation.h"
#include "text_direction.h"

namespace page_reader {
namespace {

/// One row a step: 0.9 for the class, the rest shared.
std::vector<float> steps_of(const std::vector<std::size_t>& classes, std::size_t count) {
  std::vector<float> rows;
  for (const std::size_t c : classes)
    for (std::size_t i = 0; i < count; ++i) rows.push_back(i == c ? 0.9F : 0.02F);
  return rows;
}

TEST(Alphabet, HasBlankFirstAndSpaceLast) {
  const Alphabet alphabet("a\nb\n中\n");
  ASSERT_EQ(alphabet.size(), 5U);
  EXPECT_EQ(alphabet[0], "");
  EXPECT_EQ(alphabet[1], "a");
  EXPECT_EQ(alphabet[3], "中");
  EXPECT_EQ(alphabet[4], " ");
}

TEST(Alphabet, TakesAMissingLastLineEndAndCarriageReturns) {
  EXPECT_EQ(Alphabet("a\r\nb").size(), 4U);
  EXPECT_EQ(Alphabet("a\r\nb")[1], "a");
}

TEST(DecodeCtc, MergesRepetitionsAndDropsBlanks) {
  const Alphabet alphabet("a\nb");
  // a a - a b b - - space b: the blank parts the two a's.
  const auto rows = steps_of({1, 1, 0, 1, 2, 2, 0, 0, 3, 2}, alphabet.size());
  const RecognizedText text = decode_ctc(rows, 10, alphabet);
  EXPECT_EQ(text.text, "aab b");
  EXPECT_NEAR(text.score, 0.9F, 1e-6);
}

TEST(DecodeCtc, AveragesTheFirstStepOfEachCharacter) {
  const Alphabet alphabet("a");
  const std::vector<float> rows{0.1F, 0.8F, 0.1F,   // a
                                0.0F, 1.0F, 0.0F,   // a again: part of the same character
                                0.2F, 0.2F, 0.6F};  // space
  EXPECT_NEAR(decode_ctc(rows, 3, alphabet).score, 0.7F, 1e-6);
}

TEST(DecodeCtc, OfBlanksIsEmpty) {
  const Alphabet alphabet("a");
  const RecognizedText text = decode_ctc(steps_of({0, 0}, alphabet.size()), 2, alphabet);
  EXPECT_EQ(text.text, "");
  EXPECT_EQ(text.score, 0);
}

TEST(DecodeCtc, TakesNoShortAnswer) {
  const Alphabet alphabet("a");
  EXPECT_EQ(decode_ctc(steps_of({1}, alphabet.size()), 2, alphabet).text, "");
  EXPECT_EQ(decode_ctc({}, 0, Alphabet()).text, "");
}

TEST(RecognizerWidth, KeepsProportionsInStepsAndLimits) {
  EXPECT_EQ(recognizer_width(100, 48), 320) << "short lines are padded";
  EXPECT_EQ(recognizer_width(320, 48), 320);
  EXPECT_EQ(recognizer_width(321, 48), 384);
  EXPECT_EQ(recognizer_width(384, 12), 1536);
  EXPECT_EQ(recognizer_width(100000, 1), 3200) << "endless lines are squeezed";
}

TEST(RecognizerInput, PadsWithWhatBecomesZero) {
  const ModelInput input = recognizer_input(Picture(100, 48, kBlack));
  EXPECT_EQ(input.pixels.width(), 320);
  EXPECT_EQ(input.pixels.height(), 48);
  EXPECT_EQ(input.pixels.at(99, 0), kBlack);
  EXPECT_NEAR((input.pixels.at(101, 0).g - input.mean[0]) / input.std[0], 0, 0.005);
}

TEST(ReadDirection, TurnsOnlyWhenSure) {
  EXPECT_FALSE(read_direction(std::vector{0.4F, 0.6F}).upside_down);
  EXPECT_TRUE(read_direction(std::vector{0.05F, 0.95F}).upside_down);
  EXPECT_EQ(read_direction(std::vector{0.4F, 0.6F}).degrees, 180);
  EXPECT_FALSE(read_direction(std::vector{0.95F, 0.05F}).upside_down);
}

TEST(DirectionInput, SqueezesLongLinesAndPadsShortOnes) {
  const ModelInput squeezed = direction_input(Picture(1000, 20, kBlack));
  EXPECT_EQ(squeezed.pixels.width(), 192);
  EXPECT_EQ(squeezed.pixels.at(191, 47), kBlack);
  const ModelInput padded = direction_input(Picture(48, 48, kBlack));
  EXPECT_EQ(padded.pixels.at(47, 0), kBlack);
  EXPECT_EQ(padded.pixels.at(49, 0), kTextPadding);
}

TEST(ReadOrientation, PutsThePageUprightOnlyWhenSure) {
  const Orientation sure = read_orientation(std::vector{0.02F, 0.03F, 0.05F, 0.9F});
  EXPECT_EQ(sure.degrees, 270);
  EXPECT_EQ(sure.quarters_back(), 3);
  const Orientation unsure = read_orientation(std::vector{0.42F, 0.03F, 0.51F, 0.03F});
  EXPECT_EQ(unsure.degrees, 180);
  EXPECT_EQ(unsure.quarters_back(), 0);
}

TEST(OrientationInput, ShowsTheMiddleOfThePage) {
  Picture page(600, 200, kWhite);
  for (int y = 0; y < 200; ++y)
    for (int x = 200; x < 400; ++x) page.set(x, y, kBlack);
  const ModelInput input = orientation_input(page);
  EXPECT_EQ(input.pixels.width(), 224);
  EXPECT_EQ(input.pixels.height(), 224);
  EXPECT_EQ(input.pixels.at(0, 0), kBlack);
  EXPECT_EQ(input.pixels.at(223, 223), kBlack);
}

}  // namespace
}  // namespace page_reader
