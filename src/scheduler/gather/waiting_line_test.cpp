#include "scheduler/gather/waiting_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace corelane::scheduler {
namespace {

constexpr Duration kLevel = std::chrono::milliseconds(100);

WaitingPtr submitted_at(int ms, std::int32_t priority) {
  const auto request = std::make_shared<Waiting>();
  request->submitted = TimePoint{} + std::chrono::milliseconds(ms);
  request->priority = priority;
  return request;
}

TEST(WaitingLine, TheOldestIsTheOneThatWasSubmittedFirst) {
  WaitingLine line;
  EXPECT_EQ(line.oldest_request(), nullptr);
  EXPECT_EQ(line.oldest(), kNever);
  const WaitingPtr low = submitted_at(10, -2), first = submitted_at(20, 0);
  const WaitingPtr high = submitted_at(300, 5);
  for (const WaitingPtr& request : {low, first, high}) line.add(request, kLevel);
  EXPECT_EQ(line.first(1, line.line().begin()).front(), high);
  EXPECT_EQ(line.oldest_request(), low) << "though it leaves last";
  line.remove(*low);
  EXPECT_EQ(line.oldest_request(), first);
  line.remove(*first);
  EXPECT_EQ(line.oldest_request(), high);
}

TEST(WaitingLine, TheOldestOfAnyLineIsFound) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    WaitingLine line;
    WaitingList all;
    int now = 0;
    for (int i = 0; i < 50; ++i) {
      now += static_cast<int>(random() % 80);
      // The order of submission is not the order of entry where requests had to wait for room.
      const int at = now - static_cast<int>(random() % 200);
      all.push_back(submitted_at(at, static_cast<std::int32_t>(random() % 9) - 4));
      line.add(all.back(), round % 2 == 0 ? kLevel : Duration{});
    }
    while (!all.empty()) {
      const auto expected = std::ranges::min_element(all, {}, &Waiting::submitted);
      ASSERT_EQ(line.oldest_request()->submitted, (*expected)->submitted) << "round " << round;
      const auto gone = all.begin() + static_cast<std::ptrdiff_t>(random() % all.size());
      line.remove(**gone);
      all.erase(gone);
    }
  }
}

}  // namespace
}  // namespace corelane::scheduler
