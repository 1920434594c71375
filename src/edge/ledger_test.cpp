#include "edge/ledger.h"

#include <gtest/gtest.h>

namespace corelane::edge {
namespace {

TEST(Ledger, WhatCameBackIsNotLeft) {
  Ledger<int> ledger;
  {
    const CallScope scope(true, "create");
    ledger.add(1);
    ledger.add(2);
  }
  const auto back = ledger.remove(1);
  ASSERT_TRUE(back);
  EXPECT_STREQ(back->made.function, "create");
  EXPECT_FALSE(ledger.remove(1));
  const auto left = ledger.left();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].first, 2);
  EXPECT_STREQ(left[0].second.made.function, "create");
}

TEST(Ledger, AKeyThatIsGivenOutAgainBeginsAnew) {
  Ledger<int, int> ledger;
  ledger.add(1, 10);
  ledger.add(1, 20);
  int seen = 0;
  ledger.update(1, [&](int& fact) { seen = fact; });
  EXPECT_EQ(seen, 20);
}

TEST(Ledger, FactsAreKeptFromUpdateToUpdate) {
  Ledger<int, int> ledger;
  ledger.add(1);
  ledger.update(1, [](int& fact) { fact += 3; });
  ledger.update(1, [](int& fact) { fact += 4; });
  ledger.update(2, [](int&) { FAIL() << "2 was never given out"; });
  EXPECT_EQ(ledger.remove(1)->facts, 7);
}

}  // namespace
}  // namespace corelane::edge
