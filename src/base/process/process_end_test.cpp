#include "base/process/process_end.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include "base/process/testing/static_engine.h"

namespace corelane {
namespace {

using std::chrono::milliseconds;
using testing::begin_process_that_ends;
using testing::StaticEngine;

/// A thread that has begun to use the engine when this returns.
void visit_until_the_end() {
  std::thread([] {
    const EngineVisit visit;
    StaticEngine::instance().use();
  }).detach();
  StaticEngine::instance().await_use();
}

class ProcessEndDeathTest : public ::testing::Test {
 protected:
  ProcessEndDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST(ProcessEnd, VisitsAreAdmittedWhileTheProcessRuns) {
  EXPECT_FALSE(process_ending());
  const EngineVisit visit;
  const EngineVisit another;
  EXPECT_TRUE(visit);
  EXPECT_TRUE(another);
}

TEST_F(ProcessEndDeathTest, ExitWaitsForAThreadInAnEngineThatIsNew) {
  EXPECT_EXIT(
      {
        begin_process_that_ends();
        visit_until_the_end();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessEndDeathTest, ExitInAnotherThreadWaitsForAThreadInAnEngineThatWasThere) {
  EXPECT_EXIT(
      {
        begin_process_that_ends();
        StaticEngine::instance();
        exit_waits_first();
        visit_until_the_end();
        std::thread([] { std::exit(0); }).join();
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessEndDeathTest, OnceStaticObjectsGoOnlyTheEndingThreadVisits) {
  EXPECT_EXIT(
      {
        begin_process_that_ends();
        StaticEngine::instance().at_end = [] {
          bool late = true;
          std::thread([&] { late = static_cast<bool>(EngineVisit()); }).join();
          const EngineVisit own;
          _exit(own && !late ? 0 : 4);
        };
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessEndDeathTest, ExitWithinAVisitDoesNotWaitForIt) {
  EXPECT_EXIT(
      {
        begin_process_that_ends();
        const EngineVisit visit;
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessEndDeathTest, TheWaitHasALimit) {
  EXPECT_EXIT(
      {
        begin_process_that_ends();
        set_exit_limit(milliseconds(10));
        std::atomic<bool> inside{false};
        std::thread([&inside] {
          const EngineVisit visit;
          inside = true;
          for (;;) ::pause();
        }).detach();
        while (!inside) std::this_thread::yield();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessEndDeathTest, AForkedChildDoesNotWaitForVisitsOfItsParent) {
  EXPECT_EXIT(
      {
        begin_process_that_ends();
        visit_until_the_end();
        const EngineVisit visit;  // Of this thread, which is the child's only one.
        const pid_t child = fork();
        if (child == 0) std::exit(0);
        int status = -1;
        ::waitpid(child, &status, 0);
        std::exit(status);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessEndDeathTest, WhatIsNeverDestroyedStays) {
  const auto object = std::make_shared<int>(7);
  const std::weak_ptr<int> left = object;
  never_destroy(object);
  EXPECT_EQ(left.use_count(), 2);
}

}  // namespace
}  // namespace corelane
