#include "lanes/resources/memory_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::lanes {
namespace {

using ::testing::HasSubstr;

TEST(MemoryLedger, RefusalNamesTheLimitWhatIsInUseAndWhatWasAsked) {
  MemoryLedger ledger("left", 1000);
  ASSERT_TRUE(ledger.take(600, "a buffer").ok());
  const Status refused = ledger.take(401, "a buffer");
  EXPECT_EQ(refused.code(), Code::kOutOfMemory);
  for (const char* part : {"'left'", "a buffer", "401 bytes", "600 of its 1000 bytes"})
    EXPECT_THAT(refused.message(), HasSubstr(part));
  EXPECT_EQ(refused.detail(Detail::kLimit), "1000 bytes");
  // It has counted nothing.
  EXPECT_TRUE(ledger.take(400, "a buffer").ok());
  EXPECT_FALSE(ledger.check(1, "a buffer").ok());
  ledger.give_back(400);
  EXPECT_TRUE(ledger.check(400, "a buffer").ok());
}

TEST(MemoryLedger, MeasuredFiguresCountAboveTheLimit) {
  MemoryLedger ledger("left", 1000);
  EXPECT_TRUE(ledger.correct(0, 900, "an executable").ok());
  EXPECT_EQ(ledger.correct(900, 1200, "an executable").code(), Code::kOutOfMemory);
  EXPECT_EQ(ledger.take(0, "a buffer").code(), Code::kOutOfMemory);
  EXPECT_TRUE(ledger.correct(1200, 100, "an executable").ok());
  EXPECT_TRUE(ledger.take(900, "a buffer").ok());
}

TEST(MemoryLedger, SizesThatWrapAreRefused) {
  MemoryLedger ledger("left", 1000);
  ASSERT_TRUE(ledger.take(10, "a buffer").ok());
  EXPECT_EQ(ledger.take(SIZE_MAX, "a buffer").code(), Code::kOutOfMemory);
}

TEST(MemoryLedger, WithoutALimitEverythingFits) {
  MemoryLedger ledger("left", 0);
  EXPECT_TRUE(ledger.take(SIZE_MAX, "a buffer").ok());
  EXPECT_TRUE(ledger.take(SIZE_MAX, "a buffer").ok());
}

}  // namespace
}  // namespace corelane::lanes
