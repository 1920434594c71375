#include "edge/call_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::edge {
namespace {

TEST(CallSite, TheInnermostCallIsCurrentAndTheOuterOneAfterIt) {
  EXPECT_EQ(current_call().function, nullptr);
  {
    const CallScope outer(true, "open");
    const std::uint64_t number = current_call().number;
    {
      const CallScope inner(true, "query");
      EXPECT_STREQ(current_call().function, "query");
      EXPECT_EQ(current_call().number, number + 1);
    }
    EXPECT_STREQ(current_call().function, "open");
    EXPECT_EQ(current_call().number, number);
  }
  EXPECT_EQ(current_call().function, nullptr);
}

TEST(CallSite, AScopeThatIsOffLeavesTheCurrentCall) {
  const CallScope off(false, "open");
  EXPECT_EQ(current_call().function, nullptr);
}

TEST(CallSite, TheTextNamesFunctionAndNumber) {
  const CallScope scope(true, "open");
  EXPECT_THAT(text(current_call()),
              ::testing::StartsWith("open (call " + std::to_string(current_call().number)));
  EXPECT_EQ(text({}), "an unknown call");
}

}  // namespace
}  // namespace corelane::edge
