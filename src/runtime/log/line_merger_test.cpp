#include "runtime/log/line_merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace corelane::runtime {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kPlenty = std::size_t{1} << 20;

TimePoint stamp_at(int ms) { return TimePoint(milliseconds(ms)); }

MergedLine line(int ms, std::string text = {}) {
  return {stamp_at(ms), log::Level::kInfo, "part", std::move(text), false};
}

std::vector<std::string> texts(const LineMerger::Lines& lines) {
  std::vector<std::string> found;
  for (const MergedLine& one : lines) found.push_back(one.text);
  return found;
}

TEST(LineMerger, ALineWaitsForItsWindow) {
  LineMerger merger(milliseconds(100), kPlenty);
  EXPECT_EQ(merger.due(), std::nullopt);
  EXPECT_TRUE(merger.add(line(20, "b")));
  EXPECT_TRUE(merger.add(line(10, "a")));
  EXPECT_TRUE(merger.add(line(30, "c")));
  EXPECT_EQ(merger.due(), stamp_at(110));
  EXPECT_THAT(merger.take(stamp_at(109)), IsEmpty());
  EXPECT_THAT(texts(merger.take(stamp_at(120))), ElementsAre("a", "b"));
  EXPECT_EQ(merger.due(), stamp_at(130));
  EXPECT_THAT(texts(merger.take_all()), ElementsAre("c"));
  EXPECT_EQ(merger.due(), std::nullopt);
}

TEST(LineMerger, LinesOfOneStampStayAsTheyCame) {
  LineMerger merger(milliseconds(0), kPlenty);
  for (const char* text : {"a", "b", "c"}) merger.add(line(1, text));
  EXPECT_THAT(texts(merger.take(stamp_at(1))), ElementsAre("a", "b", "c"));
}

TEST(LineMerger, ALateLineComesNext) {
  LineMerger merger(milliseconds(100), kPlenty);
  merger.add(line(50, "first"));
  EXPECT_THAT(texts(merger.take(stamp_at(150))), ElementsAre("first"));
  merger.add(line(100, "in time"));
  merger.add(line(10, "late"));
  EXPECT_LE(*merger.due(), stamp_at(150));
  EXPECT_THAT(texts(merger.take(stamp_at(150))), ElementsAre("late"));
  merger.add(line(20, "late, too"));
  EXPECT_THAT(texts(merger.take(stamp_at(200))), ElementsAre("late, too", "in time"));
}

TEST(LineMerger, MemoryIsBoundedFromAddToForget) {
  LineMerger merger(milliseconds(0), 4096);
  const std::string text(1000, 'x');
  std::size_t kept = 0;
  while (merger.add(line(1, text))) ++kept;
  EXPECT_EQ(kept, 3U);
  EXPECT_EQ(merger.dropped(), 1U);
  const LineMerger::Lines lines = merger.take_all();
  EXPECT_FALSE(merger.add(line(2, text))) << "they are being delivered";
  merger.forget(lines);
  for (std::size_t i = 0; i < kept; ++i) EXPECT_TRUE(merger.add(line(3, text)));
  EXPECT_FALSE(merger.add(line(4, std::string(8192, 'x')))) << "never fits";
  EXPECT_EQ(merger.dropped(), 3U);
}

TEST(LineMerger, StampsAtTheEndsOfTimeAreNoTrouble) {
  LineMerger merger(milliseconds(100), kPlenty);
  merger.add({kNever, log::Level::kInfo, "", "end", false});
  EXPECT_EQ(merger.due(), kNever);
  merger.add({TimePoint::min(), log::Level::kInfo, "", "begin", false});
  EXPECT_THAT(texts(merger.take(stamp_at(0))), ElementsAre("begin"));
  EXPECT_THAT(texts(merger.take_all()), ElementsAre("end"));
}

/// Lines of random stamps, some later than the window, taken at random times.
TEST(LineMerger, WhatIsInTimeIsSortedAndNothingIsLostWhateverTheStamps) {
  constexpr int kWindow = 50;
  std::mt19937 random(7);
  for (const int lateness : {kWindow, 3 * kWindow}) {
    LineMerger merger(milliseconds(kWindow), kPlenty);
    std::vector<MergedLine> delivered;
    std::size_t written = 0;
    for (int now = 0; now < 20000; ++now) {
      for (unsigned i = random() % 3; i > 0; --i, ++written) {
        const int behind = static_cast<int>(random() % static_cast<unsigned>(lateness));
        ASSERT_TRUE(merger.add(line(now - behind, std::to_string(written))));
      }
      if (random() % 4 != 0) continue;
      const LineMerger::Lines lines = merger.take(stamp_at(now));
      merger.forget(lines);
      const auto earlier = [](const MergedLine& a, const MergedLine& b) {
        return a.stamp < b.stamp;
      };
      ASSERT_TRUE(std::is_sorted(lines.begin(), lines.end(), earlier));
      for (const MergedLine& one : lines) {
        ASSERT_LE(one.stamp + milliseconds(kWindow), stamp_at(now));
        if (lateness == kWindow && !delivered.empty()) ASSERT_GE(one.stamp, delivered.back().stamp);
        delivered.push_back(one);
      }
      const auto due = merger.due();
      if (due) ASSERT_GT(*due, stamp_at(now)) << "all that were due came";
    }
    for (const MergedLine& one : merger.take_all()) delivered.push_back(one);
    std::vector<bool> seen(written);
    for (const MergedLine& one : delivered) {
      const std::size_t number = std::stoul(one.text);
      EXPECT_FALSE(seen[number]);
      seen[number] = true;
    }
    EXPECT_EQ(delivered.size(), written);
  }
}

}  // namespace
}  // namespace corelane::runtime
