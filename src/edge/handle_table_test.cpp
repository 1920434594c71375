#include "edge/handle_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace corelane::edge {
namespace {

TEST(HandleTable, ANumberFindsItsObjectUntilItIsTaken) {
  HandleTable<int> table(0x1001);
  const std::uint64_t seven = table.add(std::make_shared<int>(7));
  const std::uint64_t eight = table.add(std::make_shared<int>(8));
  EXPECT_EQ(seven, 0x1001u);
  EXPECT_EQ(*table.find(seven), 7);
  EXPECT_EQ(*table.take(seven), 7);
  EXPECT_EQ(table.find(seven), nullptr);
  EXPECT_EQ(table.take(seven), nullptr);
  EXPECT_EQ(*table.find(eight), 8);
}

TEST(HandleTable, NumbersAreNeverUsedTwice) {
  HandleTable<int> table(1);
  for (std::uint64_t i = 1; i < 100; ++i) {
    EXPECT_EQ(table.add(std::make_shared<int>(0)), i);
    EXPECT_NE(table.take(i), nullptr);
  }
}

TEST(HandleTable, TheStateTellsATakenNumberFromOneThatWasNeverGivenOut) {
  HandleTable<int> table(0x1001);
  const std::uint64_t number = table.add(std::make_shared<int>(7));
  EXPECT_EQ(table.state(number), HandleState::kLive);
  EXPECT_EQ(table.state(number + 1), HandleState::kUnknown);
  EXPECT_EQ(table.state(0), HandleState::kUnknown);
  EXPECT_EQ(table.state(1), HandleState::kUnknown);
  EXPECT_EQ(table.find(0), nullptr);
  table.take(number);
  EXPECT_EQ(table.state(number), HandleState::kTaken);
}

TEST(HandleTable, AnObjectMayUseTheTableWhileItIsDestroyed) {
  struct Nested {
    HandleTable<Nested>* table;
    ~Nested() { EXPECT_EQ(table->find(1), nullptr); }
  };
  HandleTable<Nested> table(1);
  table.add(std::make_shared<Nested>(&table));
  EXPECT_NE(table.take(1), nullptr);
}

TEST(HandleTable, OfManyThreadsOneTakesTheObject) {
  HandleTable<int> table(1);
  const std::uint64_t number = table.add(std::make_shared<int>(7));
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      (void)table.find(number);
      if (table.take(number) != nullptr) ++taken;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 1);
}

TEST(HandleTable, AForkedChildFindsNothingAndSaysWhy) {
  HandleTable<int> table(1);
  const std::uint64_t number = table.add(std::make_shared<int>(7));
  const pid_t child = fork();
  if (child == 0) {
    const HandleTable<int> own(1);  // One that the child makes serves it.
    const bool right = table.after_fork() && table.find(number) == nullptr &&
                       table.take(number) == nullptr &&
                       table.state(number) == HandleState::kBeforeFork && !own.after_fork();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(table.after_fork());
  EXPECT_EQ(*table.find(number), 7);
}

}  // namespace
}  // namespace corelane::edge
