#include "corelane/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace corelane::log {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LogTest : public ::testing::Test {
 protected:
  LogTest() : before_(level()) { set_level(Level::kInfo); }
  ~LogTest() override {
    set_callback(nullptr);
    set_level(before_);
  }
  void collect() {
    set_callback([this](Level l, std::string_view part, std::string_view text) {
      lines_.push_back(fmt::format("{} {} {}", level_name(l), part, text));
    });
  }
  Level before_;
  std::vector<std::string> lines_;
};

TEST_F(LogTest, TheCallbackGetsLevelPartAndText) {
  collect();
  error("device", "core {} lost", 2);
  info("runtime", "ready");
  write(Level::kTrace, "runtime", "below the level");
  EXPECT_THAT(lines_, ElementsAre("error device core 2 lost", "info runtime ready"));
}

TEST_F(LogTest, LevelsFilter) {
  collect();
  set_level(Level::kError);
  warn("x", "hidden");
  EXPECT_FALSE(enabled(Level::kWarn));
  EXPECT_TRUE(enabled(Level::kError));
  set_level(Level::kTrace);
  debug("x", "seen");
  write(Level::kTrace, "x", "also");
  set_level(Level::kOff);
  error("x", "hidden");
  write(Level::kOff, "x", "never");
  EXPECT_THAT(lines_, ElementsAre("debug x seen", "trace x also"));
}

TEST_F(LogTest, AnExceptionOfTheCallbackIsDropped) {
  int calls = 0;
  set_callback([&calls](Level, std::string_view, std::string_view) {
    ++calls;
    throw std::runtime_error("user error");
  });
  error("x", "one");
  error("x", "two");
  EXPECT_EQ(calls, 2);
}

TEST_F(LogTest, ControlCharactersAreWrittenOut) {
  std::string line;
  set_callback([&line](Level, std::string_view, std::string_view text) { line = text; });
  error("x", "node '{}'", "a\x1b[31m\nforged");
  EXPECT_EQ(line, "node 'a\\x1b[31m\\nforged'");
  set_callback(nullptr);
  ::testing::internal::CaptureStderr();
  error("x", "node '{}'", "a\nforged");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("node 'a\\nforged'\n"));
}

TEST_F(LogTest, WithoutACallbackLinesGoToStderrAndNeverToStdout) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  warn("device", "hot");
  const std::string err = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(err, HasSubstr("warning device: hot\n"));
}

TEST_F(LogTest, TheCallbackMayCallTheLibraryAndItsOwnLinesGoToStderr) {
  int calls = 0;
  set_callback([&calls](Level, std::string_view, std::string_view) {
    ++calls;
    error("nested", "from the callback");
    set_callback(nullptr);  // Would deadlock if a lock were held.
  });
  ::testing::internal::CaptureStderr();
  error("x", "one");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("nested: from the callback"));
  EXPECT_EQ(calls, 1);
}

TEST_F(LogTest, LinesFromManyThreadsAllArrive) {
  std::atomic<int> count{0};
  set_callback([&count](Level, std::string_view, std::string_view) { ++count; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) info("t", "{}", i);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(count, 400);
}

/// The level is read once per process, so a child process shows what the variable does.
TEST(LogEnvironmentDeathTest, LevelComesFromTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ::setenv("CORELANE_LOG", "debug", 1);
  EXPECT_EXIT(std::_Exit(level() == Level::kDebug ? 0 : 1), ::testing::ExitedWithCode(0), "");
  ::setenv("CORELANE_LOG", "loud", 1);
  EXPECT_EXIT(std::_Exit(level() == Level::kWarn ? 0 : 1), ::testing::ExitedWithCode(0),
              "CORELANE_LOG is 'loud'");
  ::unsetenv("CORELANE_LOG");
  EXPECT_EXIT(std::_Exit(level() == Level::kWarn ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // Their own locks are held.
/// A thread of the parent may hold the mutex of stderr at the fork, and nobody releases it in the
/// child.
TEST_F(LogTest, AForkedChildLogsWhileAThreadOfTheParentDoes) {
  const int errors = ::dup(STDERR_FILENO);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDERR_FILENO);
  std::atomic<bool> stop = false;
  std::thread logging([&] {
    while (!stop) warn("test", "a line of the parent");
  });
  int ended_by = 0;
  for (int i = 0; i < 100 && ended_by == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // Ends a child that waits.
      warn("test", "a line of the child");
      _exit(0);
    }
    ::waitpid(child, &ended_by, 0);
  }
  stop = true;
  logging.join();
  ::dup2(errors, STDERR_FILENO);
  ::close(errors);
  ::close(nowhere);
  EXPECT_EQ(ended_by, 0);
}
#endif

}  // namespace
}  // namespace corelane::log
