#include "base/trust/file_size_signal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

#include "corelane/base/file.h"
#include "corelane/base/log.h"

namespace corelane {
namespace {

/// What a child whose files may have 4 bytes says: its exit status, or 128 and the signal.
template <class F>
int in_a_child_with_small_files(F&& f) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{4, 4};
    _exit(setrlimit(RLIMIT_FSIZE, &limit) == 0 ? f() : 99);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

class NoFileSizeSignalTest : public ::testing::Test {
 protected:
  NoFileSizeSignalTest() {
    std::string pattern = ::testing::TempDir() + "corelane-size-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~NoFileSizeSignalTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  int open_file() const {
    return ::open((folder_ / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  }
  std::filesystem::path folder_;
};

TEST_F(NoFileSizeSignalTest, AWriteFailsAndTheProcessLives) {
  EXPECT_EQ(in_a_child_with_small_files([&] {
              const int fd = open_file();
              {
                const NoFileSizeSignal none;
                const NoFileSizeSignal nested;
                if (::write(fd, "1234", 4) != 4) return 1;
                if (::write(fd, "5", 1) != -1 || errno != EFBIG) return 2;
              }
              return errno == EFBIG ? 0 : 3;
            }),
            0);
}

TEST_F(NoFileSizeSignalTest, WhatTheHostDoesWithTheSignalStaysItsOwn) {
  EXPECT_EQ(in_a_child_with_small_files([&] {
              { const NoFileSizeSignal none; }
              [[maybe_unused]] const auto n = ::write(open_file(), "12345", 5);
              [[maybe_unused]] const auto m = ::write(open_file(), "12345", 5);
              return ::ftruncate(open_file(), 5) == 0 ? 1 : 2;
            }),
            128 + SIGXFSZ);
  EXPECT_EQ(in_a_child_with_small_files([&] {
              sigset_t set;
              sigemptyset(&set);
              sigaddset(&set, SIGXFSZ);
              sigprocmask(SIG_BLOCK, &set, nullptr);
              raise(SIGXFSZ);
              { const NoFileSizeSignal none; }
              sigset_t pending;
              sigpending(&pending);
              return sigismember(&pending, SIGXFSZ) == 1 ? 0 : 1;
            }),
            0)
      << "a signal that was pending before stays so";
}

TEST_F(NoFileSizeSignalTest, AFileIsRefusedWithTheReason) {
  EXPECT_EQ(in_a_child_with_small_files([&] {
              const Status status = write_file_atomic(folder_ / "x", as_byte_span("12345"));
              const bool said = status.code() == Code::kIo &&
                                status.message().find("too large") != std::string::npos;
              return said && !std::filesystem::exists(folder_ / "x") ? 0 : 1;
            }),
            0);
}

TEST_F(NoFileSizeSignalTest, ALogLineToAFullFileIsLost) {
  EXPECT_EQ(in_a_child_with_small_files([&] {
              ::dup2(open_file(), STDERR_FILENO);
              log::error("base", "a line that is longer than four bytes");
              log::error("base", "another one");
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace corelane
