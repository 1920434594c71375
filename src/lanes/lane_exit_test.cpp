// A process ends while threads of it are in an engine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/process/testing/static_engine.h"
#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

using testing::begin_process_that_ends;
using testing::StaticEngine;

class LaneExitDeathTest : public ::testing::Test {
 protected:
  LaneExitDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LaneExitDeathTest, ExitWaitsForAThreadThatPrepares) {
  EXPECT_EXIT(
      {
        begin_process_that_ends();
        const FakeDevice fake;
        fake.state->on_prepare = [] { StaticEngine::instance().use(); };
        std::thread([&fake] { static_cast<void>(fake.device->prepare({}, {})); }).detach();
        StaticEngine::instance().await_use();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(LaneExitDeathTest, LaterThreadsLeaveTheEngineAlone) {
  EXPECT_EXIT(
      {
        begin_process_that_ends();
        FakeDevice fake;
        std::shared_ptr<device::Bindings> bindings = fake.job().bindings;
        {
          device::Submission job = fake.job();
          static_cast<void>(fake.queue->run(job, nullptr));
          bindings = job.bindings;  // With a request of the engine.
        }
        StaticEngine::instance().at_end = [&] {
          fake.state->on_end = fake.state->on_prepare = [] { _exit(4); };
          bool refused = false;
          std::thread([&] {
            refused = fake.device->prepare({}, {}).error().code() == Code::kWrongState;
            bindings.reset();
            fake.executable.reset();
            fake.queue.reset();
            fake.device.reset();
          }).join();
          _exit(refused ? 0 : 5);
        };
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace corelane::lanes
