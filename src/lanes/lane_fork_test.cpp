#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

TEST(LaneFork, AForkedChildIsRefusedTheDeviceOfItsParent) {
  for (const bool event_driven : {false, true}) {
    FakeDevice fake(2, {}, event_driven);
    const device::Submission job = fake.job();
    ASSERT_TRUE(fake.queue->run(job).ok());
    const pid_t child = fork();
    if (child == 0) {
      const bool refused = fake.queue->run(job).code() == Code::kWrongState &&
                           fake.queue->submit(job).error().code() == Code::kWrongState;
      _exit(refused && fake.state->runs == 1 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "the child was given a thread of its parent";
    EXPECT_TRUE(fake.queue->run(job).ok());
  }
}

}  // namespace
}  // namespace corelane::lanes
