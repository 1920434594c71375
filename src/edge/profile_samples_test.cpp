// Sampling, counting and the boundaries of reports, without a clock of their own.
#include "edge/profile_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::edge {
namespace {

using std::chrono::milliseconds;

TimePoint at(int ms) { return TimePoint(milliseconds(ms)); }
std::shared_ptr<const ProfiledProgram> program(std::uint32_t number = 1) {
  return std::make_shared<const ProfiledProgram>(ProfiledProgram{number, "net", {}, nullptr});
}
ProfileSample sample(TimePoint collected, std::shared_ptr<const ProfiledProgram> of = program()) {
  ProfileSample made{std::move(of), {}};
  made.record.collected = collected;
  return made;
}

TEST(ProfileSamples, BoundariesAreThoseOfTheClockAndNotOfTheStart) {
  EXPECT_EQ(next_boundary(at(4400), milliseconds(500)), at(4500));
  EXPECT_EQ(next_boundary(at(4500), milliseconds(500)), at(5000));
  EXPECT_EQ(next_boundary(at(0), milliseconds(4000)), at(4000));
  StreamCollector stream(1, milliseconds(500));
  EXPECT_EQ(stream.start(at(4400)), at(4500));
  EXPECT_EQ(stream.tick(at(4500)), at(5000));
  EXPECT_EQ(stream.tick(at(5000)), at(5500));
  EXPECT_EQ(stream.tick(at(7300)), at(7500)) << "what was missed has no report";
}

TEST(ProfileSamples, EachRateTakesTheFirstOfSoManyOfEachProgram) {
  for (const std::uint32_t one_in : {1U, 2U, 4U, 8U, 16U}) {
    ProfileSampler sampler(one_in);
    std::vector<int> first, second;
    for (int i = 0; i < 64; ++i) {
      if (sampler.take(1)) first.push_back(i);
      if (i % 3 == 0 && sampler.take(2)) second.push_back(i / 3);
    }
    ASSERT_EQ(first.size(), 64 / one_in);
    for (std::size_t k = 0; k < first.size(); ++k)
      EXPECT_EQ(first[k], static_cast<int>(k * one_in));
    for (std::size_t k = 0; k < second.size(); ++k)
      EXPECT_EQ(second[k], static_cast<int>(k * one_in));
    sampler.restart();
    EXPECT_TRUE(sampler.take(1));
  }
}

TEST(ProfileSamples, AReportHasWhatWasCollectedNoLaterThanItsBoundary) {
  StreamCollector stream(1, milliseconds(500));
  stream.start(at(100));
  stream.add(sample(at(200)));
  stream.add(sample(at(500)));
  stream.add(sample(at(501)));
  EXPECT_FALSE(stream.cut());
  stream.tick(at(500));
  stream.tick(at(1000));
  EXPECT_EQ(stream.cut()->samples.size(), 2U);
  EXPECT_EQ(stream.cut()->samples.size(), 1U);
  EXPECT_FALSE(stream.cut());
  stream.tick(at(1500));
  EXPECT_TRUE(stream.cut()->samples.empty());
  stream.add(sample(at(1600)));
  EXPECT_EQ(stream.stop(at(1700)).samples.size(), 1U);
  stream.add(sample(at(1800)));
  EXPECT_TRUE(stream.stop(at(1900)).samples.empty());
}

TEST(ProfileSamples, WhatHasNoRoomIsDroppedAndCounted) {
  StreamCollector stream(1, milliseconds(500));
  stream.start(at(0));
  const auto of = program();
  for (std::size_t i = 0; i < StreamCollector::kMostSamples + 3; ++i) stream.add(sample(at(1), of));
  const ProfileReport report = stream.stop(at(2));
  EXPECT_EQ(report.samples.size(), StreamCollector::kMostSamples);
  EXPECT_EQ(report.dropped, 3U);
}

TEST(ProfileSamples, ACountEndsWithItsLastSampleOrAtTheStop) {
  CountCollector count(2);
  EXPECT_FALSE(count.add(sample(at(0))));
  count.start();
  EXPECT_FALSE(count.stop()) << "nothing for nothing";
  count.start();
  EXPECT_FALSE(count.add(sample(at(1))));
  EXPECT_EQ(count.add(sample(at(2)))->size(), 2U);
  EXPECT_FALSE(count.active());
  EXPECT_FALSE(count.add(sample(at(3))));
  EXPECT_FALSE(count.stop());
  count.start();
  EXPECT_FALSE(count.add(sample(at(4))));
  EXPECT_EQ(count.stop()->size(), 1U);
}

}  // namespace
}  // namespace corelane::edge
