#include "edge/entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace corelane::edge {
namespace {

TEST(Entry, WhatTheBodyReturnsPassesUnchanged) {
  EXPECT_TRUE(entry(false, "open", [] { return Status(); }).ok());
  const Result<int> seven = entry(false, "open", []() -> Result<int> { return 7; });
  EXPECT_EQ(*seven, 7);
  const Status failed =
      entry(false, "open", []() -> Status { return error(Code::kTimeout, "it took too long"); });
  EXPECT_EQ(failed.code(), Code::kTimeout);
}

TEST(Entry, WhatTheBodyThrowsBecomesAFailure) {
  const Status none = entry(false, "open", []() -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(none.code(), Code::kOutOfMemory);
  const Status wrong = entry(false, "open", []() -> Status { throw std::runtime_error("no way"); });
  EXPECT_EQ(wrong.code(), Code::kInternal);
  EXPECT_THAT(wrong.message(), ::testing::HasSubstr("no way"));
  EXPECT_EQ(entry(false, "open", []() -> Status { throw 1; }).code(), Code::kInternal);
}

TEST(Entry, TheCallIsCurrentInsideOfItOnlyWhileChecking) {
  const auto current = [](bool checking) {
    const char* name = nullptr;
    (void)entry(checking, "open", [&] {
      name = current_call().function;
      return Status();
    });
    return name;
  };
  EXPECT_STREQ(current(true), "open");
  EXPECT_EQ(current(false), nullptr);
}

}  // namespace
}  // namespace corelane::edge
