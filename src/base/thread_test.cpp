#include "base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>

namespace corelane {
namespace {

bool blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

TEST(Thread, BlocksSignalsOfTheNewThreadAlone) {
  const bool before = blocked(SIGTERM);
  bool inside = false;
  auto thread =
      start_thread("corelane-test", [&] { inside = blocked(SIGTERM) && blocked(SIGINT); });
  ASSERT_TRUE(thread) << thread.error().to_string();
  thread->join();
  EXPECT_TRUE(inside);
  EXPECT_EQ(blocked(SIGTERM), before);
}

TEST(Thread, HasTheNameThatToolsShow) {
  char name[16] = {};
  auto thread =
      start_thread("corelane-test", [&] { pthread_getname_np(pthread_self(), name, sizeof name); });
  ASSERT_TRUE(thread) << thread.error().to_string();
  thread->join();
  EXPECT_STREQ(name, "corelane-test");
}

}  // namespace
}  // namespace corelane
