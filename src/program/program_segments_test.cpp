#include "program/program_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace corelane {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

SegmentInfo at(std::uint64_t offset, std::uint64_t size, SegmentKind kind = SegmentKind::kGraph) {
  return {kind, "", offset, size, 0};
}

std::string places(const std::vector<SegmentInfo>& segments, std::size_t file_size,
                   std::size_t begin = 100) {
  const ByteVector file(file_size);
  return check_segment_places(segments, file, begin).to_string();
}

TEST(SegmentPlaces, WhatIsPlacedIsAccepted) {
  std::vector<SegmentInfo> segments = {at(0, 10), at(0, 5000, SegmentKind::kConstants),
                                       at(0, 0, SegmentKind::kForeign),
                                       at(0, 1, SegmentKind::kForeign)};
  const std::size_t size = place_segments(segments, 100);
  EXPECT_EQ(segments[0].offset, 128U);
  EXPECT_EQ(segments[1].offset, 4096U);
  EXPECT_EQ(segments[2].offset, 9152U);
  EXPECT_EQ(segments[3].offset, 9152U);
  EXPECT_EQ(size, 9153U);
  EXPECT_EQ(places(segments, size), "ok");
}

TEST(SegmentPlaces, HugeNumbersDoNotOverflow) {
  EXPECT_THAT(places({at(128, kMax)}, 200), HasSubstr("do not lie within"));
  EXPECT_THAT(places({at(kMax - 63, 64)}, 200), HasSubstr("do not lie within"));
  EXPECT_THAT(places({at(kMax - 63, kMax)}, 200), HasSubstr("do not lie within"));
  EXPECT_THAT(places({at(128, 73)}, 200), HasSubstr("do not lie within"));
}

TEST(SegmentPlaces, OverlapIsRefused) {
  EXPECT_THAT(places({at(128, 65), at(192, 8)}, 200), HasSubstr("inside what ends at 193"));
  EXPECT_THAT(places({at(192, 8), at(128, 64)}, 200), HasSubstr("inside what ends at 200"));
  EXPECT_THAT(places({at(64, 136)}, 200), HasSubstr("inside what ends at 100"));
}

TEST(SegmentPlaces, OddPlacesAreRefused) {
  EXPECT_THAT(places({at(129, 71)}, 200), HasSubstr("multiple of 64"));
  EXPECT_THAT(places({at(128, 72, SegmentKind::kConstants)}, 200), HasSubstr("multiple of 4096"));
}

TEST(SegmentPlaces, AWideGapIsRefused) {
  EXPECT_EQ(places({at(65600, 1)}, 65601, 100), "ok");
  EXPECT_THAT(places({at(65664, 1)}, 65665, 100), HasSubstr("unused"));
}

TEST(SegmentPlaces, BytesBetweenMustBeZero) {
  ByteVector file(200);
  file[127] = std::byte{1};
  EXPECT_THAT(check_segment_places({at(128, 72)}, file, 100).message(), HasSubstr("not zero"));
}

TEST(SegmentPlaces, TheLastSegmentEndsTheFile) {
  EXPECT_THAT(places({at(128, 64)}, 200), HasSubstr("ends at 192"));
  EXPECT_THAT(places({}, 200), HasSubstr("ends at 100"));
}

TEST(SegmentKinds, VerdictsAndTrialsHaveATagAndTextOfSomeLength) {
  for (const SegmentKind kind : {SegmentKind::kVerdict, SegmentKind::kTrial}) {
    const auto checked = [kind](std::uint64_t size, const char* tag) {
      return check_segment_kinds({at(0, 1), {kind, tag, 0, size, 0}}, false).to_string();
    };
    EXPECT_EQ(checked(1, "engine/1"), "ok");
    EXPECT_EQ(checked(4096, "engine/1"), "ok");
    EXPECT_THAT(checked(0, "engine/1"), HasSubstr("1 to 4096"));
    EXPECT_THAT(checked(4097, "engine/1"), HasSubstr("1 to 4096"));
    EXPECT_THAT(checked(1, ""), HasSubstr("no tag"));
  }
}

TEST(SegmentKinds, UnknownOnesAreForLaterVersions) {
  const std::vector<SegmentInfo> segments = {at(0, 1), at(0, 1, static_cast<SegmentKind>(77))};
  EXPECT_THAT(check_segment_kinds(segments, false).message(), HasSubstr("kind 77"));
  EXPECT_TRUE(check_segment_kinds(segments, true).ok());
}

}  // namespace
}  // namespace corelane
