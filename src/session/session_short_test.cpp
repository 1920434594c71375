// The fault 'short' in every kind of call.
#include <gtest/gtest.h>

#include <cstdlib>

#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using testing::feed_of;
using testing::SessionBench;

TEST(SessionShort, EveryKindOfCallEndsWithBadResult) {
  setenv("CORELANE_FAULTS", "short=1", 1);
  const SessionBench bench("null:rk3588", false);
  unsetenv("CORELANE_FAULTS");
  Session session = bench.session(bench.options());
  const Feed feed = feed_of(bench.x);
  EXPECT_EQ(session.run(feed).error().code(), Code::kBadResult);
  EXPECT_EQ(session.run_batch(feed).error().code(), Code::kBadResult);
  EXPECT_EQ(session.submit(feed)->get().error().code(), Code::kBadResult);
  Code called = Code::kOk;
  ASSERT_TRUE(session.run_async(feed, [&](std::uint64_t, const Result<Outputs>& outputs) {
    called = outputs ? Code::kOk : outputs.error().code();
  }));
  ASSERT_TRUE(session.close().ok());
  EXPECT_EQ(called, Code::kBadResult);
  EXPECT_EQ(session.statistics().failed, 4U);
}

}  // namespace
}  // namespace corelane
