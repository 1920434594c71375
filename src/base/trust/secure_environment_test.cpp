#include "base/trust/secure_environment.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "corelane/base/file.h"

namespace corelane {
namespace {

namespace fs = std::filesystem;

constexpr int kSawNothing = 10;
constexpr int kSawThePath = 11;
constexpr int kHasNoMoreRights = 12;

/// Run by the test below, in a copy of this program that is set-uid.
TEST(SecureEnvironment, DISABLED_InASetUidProgram) {
  if (getauxval(AT_SECURE) == 0) _exit(kHasNoMoreRights);
  const bool seen = environment("CORELANE_CACHE_DIR") != nullptr ||
                    cache_directory().string().starts_with("/evil");
  _exit(seen ? kSawThePath : kSawNothing);
}

TEST(SecureEnvironment, AnOrdinaryProgramReadsIt) {
  ::setenv("CORELANE_TEST_VARIABLE", "value", 1);
  EXPECT_STREQ(environment("CORELANE_TEST_VARIABLE"), "value");
  EXPECT_EQ(environment_text("CORELANE_TEST_VARIABLE"), "value");
  ::unsetenv("CORELANE_TEST_VARIABLE");
  EXPECT_EQ(environment("CORELANE_TEST_VARIABLE"), nullptr);
  EXPECT_EQ(environment_text("CORELANE_TEST_VARIABLE"), "");
}

/// The status with which a program that `nobody` starts ends.
int run_as_nobody(const fs::path& program) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(1);
    ::setenv("CORELANE_CACHE_DIR", "/evil/cache", 1);
    ::setenv("XDG_CACHE_HOME", "/evil/cache", 1);
    ::execl(program.c_str(), program.c_str(), "--gtest_also_run_disabled_tests",
            "--gtest_filter=SecureEnvironment.DISABLED_InASetUidProgram", nullptr);
    _exit(2);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SecureEnvironment, ASetUidProgramReadsNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a set-uid program of root";
  std::string pattern = ::testing::TempDir() + "corelane-set-uid-XXXXXX";
  const fs::path folder = ::mkdtemp(pattern.data());
  const fs::path program = folder / "program";
  fs::copy_file("/proc/self/exe", program);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  const int status = run_as_nobody(program);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (status == kHasNoMoreRights) GTEST_SKIP() << "the temporary folder is mounted nosuid";
  EXPECT_EQ(status, kSawNothing);
}

}  // namespace
}  // namespace corelane
