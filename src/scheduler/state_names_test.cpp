#include <gtest/gtest.h>

#include <set>

#include "corelane/scheduler/request.h"
#include "corelane/scheduler/statistics.h"

namespace corelane::scheduler {
namespace {

TEST(StateNames, EachStateHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(RequestState::kExpired); ++i)
    names.insert(state_name(static_cast<RequestState>(i)));
  EXPECT_EQ(names.size(), 7u);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(state_name(RequestState::kExpired), "expired");
  EXPECT_EQ(state_name(static_cast<RequestState>(77)), "unknown");
}

TEST(StateNames, EachReasonHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kReasons; ++i) names.insert(reason_name(static_cast<Reason>(i)));
  EXPECT_EQ(names.size(), kReasons);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(reason_name(Reason::kIsolate), "isolate");
  EXPECT_EQ(reason_name(static_cast<Reason>(77)), "unknown");
}

}  // namespace
}  // namespace corelane::scheduler
