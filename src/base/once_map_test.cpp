#include "base/once_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <stdexcept>
#include <thread>

namespace corelane {
namespace {

using Numbers = OnceMap<int, int>;

TEST(OnceMap, ValueIsMadeByTheFirstCallerOnly) {
  Numbers numbers(LockRank::kLeaf);
  EXPECT_EQ(*numbers.get(1, [] { return Result<int>(10); }), 10);
  EXPECT_EQ(*numbers.get(1, [] { return Result<int>(20); }), 10);
  EXPECT_EQ(numbers.values(), (std::vector<int>{10}));
}

TEST(OnceMap, FailureIsNotKept) {
  Numbers numbers(LockRank::kLeaf);
  const auto fail = []() -> Result<int> { return error(Code::kBusy, "later"); };
  EXPECT_EQ(numbers.get(1, fail).error().code(), Code::kBusy);
  EXPECT_TRUE(numbers.values().empty());
  EXPECT_EQ(*numbers.get(1, [] { return Result<int>(2); }), 2);
}

TEST(OnceMap, ExceptionReachesTheCallerAndIsNotKept) {
  Numbers numbers(LockRank::kLeaf);
  const auto fail = []() -> Result<int> { throw std::runtime_error("no"); };
  EXPECT_THROW((void)numbers.get(1, fail), std::runtime_error);
  EXPECT_EQ(*numbers.get(1, [] { return Result<int>(2); }), 2);
}

TEST(OnceMap, ValuesOfTwoKeysAreMadeAtTheSameTime) {
  Numbers numbers(LockRank::kLeaf);
  std::barrier both(2);  // Neither passes it while the other cannot make its value.
  const auto make = [&](int key) {
    return numbers.get(key, [&] {
      both.arrive_and_wait();
      return Result<int>(key);
    });
  };
  std::jthread other([&] { EXPECT_EQ(*make(1), 1); });
  EXPECT_EQ(*make(2), 2);
}

TEST(OnceMap, CallersThatWaitForAValueGetTheOneThatIsMade) {
  Numbers numbers(LockRank::kLeaf);
  std::atomic<int> made{0};
  std::barrier begun(2);
  std::barrier go(2);
  std::jthread maker([&] {
    EXPECT_EQ(*numbers.get(1,
                           [&] {
                             begun.arrive_and_wait();
                             go.arrive_and_wait();
                             return Result<int>(++made);
                           }),
              1);
  });
  begun.arrive_and_wait();
  EXPECT_TRUE(numbers.values().empty());
  std::jthread waiter([&] { EXPECT_EQ(*numbers.get(1, [&] { return Result<int>(++made); }), 1); });
  go.arrive_and_wait();
  maker.join();
  waiter.join();
  EXPECT_EQ(made, 1);
}

TEST(OnceMap, AllValuesAreDroppedPastTheLimit) {
  Numbers numbers(LockRank::kLeaf, 2);
  for (int key = 1; key <= 3; ++key)
    EXPECT_EQ(*numbers.get(key, [&] { return Result<int>(key); }), key);
  EXPECT_EQ(numbers.values(), (std::vector<int>{3}));
}

}  // namespace
}  // namespace corelane
