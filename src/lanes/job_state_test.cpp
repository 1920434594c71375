#include "lanes/job_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace corelane::lanes {
namespace {

using enum JobState;

/// The states on the way, and whether the last step of it is allowed.
struct Way {
  std::vector<JobState> states;
  bool allowed;
};

TEST(JobProgress, OnlyTheListedWaysAreAllowed) {
  const std::vector<Way> ways = {
      {{kWaiting, kGranted, kRunning, kDone}, true},
      {{kBlocked, kCopyingIn, kWaiting, kGranted, kRunning, kCopyingOut, kDone}, true},
      {{kGranted, kRunning, kAbandoned, kDone}, true},
      {{kRunning, kDone}, true},
      {{kDone}, true},
      {{kWaiting, kNew, kGranted}, true},
      {{kGranted, kNew}, false},
      {{kBlocked, kDone}, true},
      {{kBlocked, kWaiting}, false},
      {{kBlocked, kCopyingIn, kGranted}, false},
      {{kBlocked, kCopyingIn, kDone}, true},
      {{kWaiting, kRunning}, false},
      {{kGranted, kWaiting}, false},
      {{kGranted, kAbandoned}, false},
      {{kRunning, kCopyingOut, kAbandoned}, false},
      {{kRunning, kCopyingOut, kWaiting}, false},
      {{kRunning, kAbandoned, kCopyingOut}, false},
      {{kRunning, kAbandoned, kWaiting}, false},
      {{kDone, kWaiting}, false},
      {{kDone, kDone}, false},
  };
  for (std::size_t i = 0; i < ways.size(); ++i) {
    JobProgress job;
    for (std::size_t step = 0; step + 1 < ways[i].states.size(); ++step)
      ASSERT_TRUE(job.advance(ways[i].states[step])) << "way " << i << ", step " << step;
    EXPECT_EQ(job.advance(ways[i].states.back()), ways[i].allowed) << "way " << i;
  }
}

TEST(JobProgress, RunningGoesBackToWaitingOnce) {
  JobProgress job;
  ASSERT_TRUE(job.advance(kWaiting));
  for (const bool first : {true, false}) {
    ASSERT_TRUE(job.advance(kGranted));
    ASSERT_TRUE(job.advance(kRunning));
    EXPECT_EQ(job.advance(kWaiting), first);
  }
  EXPECT_TRUE(job.is(kRunning));
  EXPECT_TRUE(job.advance(kDone));
}

}  // namespace
}  // namespace corelane::lanes
