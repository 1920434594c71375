#include "corelane/device/lease.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "base/trust/secure_environment.h"
#include "corelane/base/file.h"

namespace corelane::device {
namespace {

class LeaseTest : public testing::Test {
 protected:
  LeaseTest() {
    std::string pattern = testing::TempDir() + "corelane-lease-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    setenv("CORELANE_RUN_DIR", folder_.c_str(), 1);
  }
  ~LeaseTest() override {
    unsetenv("CORELANE_RUN_DIR");
    std::filesystem::remove_all(folder_);
  }
  std::string folder_;
};

TEST_F(LeaseTest, OneOfTwoThatAskAtOnceGetsTheCores) {
  for (int round = 0; round < 50; ++round) {
    std::barrier start(2);
    std::barrier held(2);
    std::atomic<int> got = 0;
    const auto ask = [&] {
      start.arrive_and_wait();
      const auto lease = Lease::acquire("virtual:rk3588#0", 3, CoreSet::platform());
      if (lease) ++got;
      held.arrive_and_wait();
    };
    std::thread one(ask);
    std::thread two(ask);
    one.join();
    two.join();
    ASSERT_EQ(got, 1) << round;
  }
}

TEST_F(LeaseTest, FiguresOfAHolderAreToldToOthers) {
  const std::string npu = "virtual:rk3588#0";
  auto lease = Lease::acquire(npu, 3, CoreSet::of({0, 2})).value();
  EXPECT_FALSE(Lease::holders(npu, 3).value()[1].figures) << "it has said nothing";
  const std::string programs = "net\n" + std::string(200, 'x');
  ASSERT_TRUE(lease.publish(2, {std::chrono::milliseconds(1500), 42, 3, programs}).ok());
  ASSERT_TRUE(lease.publish(0, {Duration{0}, 0, 0, ""}).ok());
  const auto holders = Lease::holders(npu, 3).value();
  ASSERT_EQ(holders.size(), 2U);
  EXPECT_EQ(holders[1].process, std::to_string(getpid()));
  ASSERT_TRUE(holders[0].figures && holders[1].figures);
  EXPECT_EQ(holders[0].figures->jobs, 0U);
  EXPECT_EQ(holders[1].figures->busy, std::chrono::milliseconds(1500));
  EXPECT_EQ(holders[1].figures->jobs, 42U);
  EXPECT_EQ(holders[1].figures->waiting, 3U);
  EXPECT_EQ(holders[1].figures->programs, "net " + std::string(124, 'x'));
  EXPECT_EQ(lease.publish(1, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(lease.publish(64, {}).code(), Code::kInvalidArgument);
  // The next holder begins anew.
  lease = Lease::acquire(npu, 3, CoreSet::of({1})).value();
  const auto again = Lease::acquire(npu, 3, CoreSet::of({2})).value();
  EXPECT_FALSE(Lease::holders(npu, 3).value()[1].figures);
}

TEST_F(LeaseTest, FiguresThatAreNoneAreNotTold) {
  const std::string npu = "null#0";
  const auto lease = Lease::acquire(npu, 1, CoreSet::of({0})).value();
  const std::string file = folder_ + "/corelane-lease-null_230-0.lock";
  ASSERT_TRUE(std::filesystem::exists(file));
  for (const char* text :
       {"", "1", "1 2", "1 2 3", "1 2 3 net", "x 2 3 net\n", "-1 2 3 net\n", "1  3 net\n",
        "9999999999999999999999 2 3 net\n", "18446744073709551615 2 3 net\n", "\n"}) {
    std::filesystem::resize_file(file, 64);
    std::ofstream(file, std::ios::app) << text;
    const auto holders = Lease::holders(npu, 1).value();
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_FALSE(holders[0].figures) << text;
  }
  std::filesystem::resize_file(file, 64);
  std::ofstream(file, std::ios::app) << "1 2 3 \x1b[2J\n";
  EXPECT_EQ(Lease::holders(npu, 1).value()[0].figures->programs, "\\x1b[2J");
}

TEST_F(LeaseTest, HoldersAreToldWithoutTakingACore) {
  const auto holders = [] { return Lease::holders("virtual:rk3588#0", 3).value(); };
  EXPECT_TRUE(holders().empty()) << "nobody has ever held one";
  auto lease = Lease::acquire("virtual:rk3588#0", 3, CoreSet::of({1, 2}));
  ASSERT_TRUE(lease.has_value());
  ASSERT_EQ(holders().size(), 2U);
  EXPECT_EQ(holders()[0].core, 1U);
  EXPECT_EQ(holders()[1].process, std::to_string(getpid()));
  EXPECT_TRUE(Lease::acquire("virtual:rk3588#0", 3, CoreSet::of({0})).has_value());
  lease = error(Code::kCancelled, "given back");
  EXPECT_TRUE(holders().empty());
  setenv("CORELANE_RUN_DIR", "/dev/null/nowhere", 1);
  EXPECT_EQ(Lease::holders("virtual:rk3588#0", 1).error().code(), Code::kIo);
}

TEST_F(LeaseTest, AnyOfSomeCoresIsOneOfThem) {
  const auto one = Lease::acquire("virtual:rk3588#0", 4, CoreSet::any_of(CoreSet::of({1, 3})));
  const auto two = Lease::acquire("virtual:rk3588#0", 4, CoreSet::any_of(CoreSet::of({1, 3})));
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_EQ(one->cores() | two->cores(), CoreSet::of({1, 3}));
  EXPECT_EQ(
      Lease::acquire("virtual:rk3588#0", 4, CoreSet::any_of(CoreSet::of({1, 3}))).error().code(),
      Code::kOutOfCores);
}

TEST_F(LeaseTest, CoresAreHeldOncePerProcessAndFreedByDestruction) {
  {
    auto two = Lease::acquire("virtual:rk3588#0", 3, CoreSet::of({0, 2}));
    ASSERT_TRUE(two.has_value());
    EXPECT_EQ(two->cores(), CoreSet::of({0, 2}));
    auto clash = Lease::acquire("virtual:rk3588#0", 3, CoreSet::of({2}));
    ASSERT_FALSE(clash.has_value());
    EXPECT_EQ(clash.error().code(), Code::kOutOfCores);
    EXPECT_THAT(clash.error().message(), testing::HasSubstr(std::to_string(getpid())));
    auto rest = Lease::acquire("virtual:rk3588#0", 3, CoreSet::any());
    ASSERT_TRUE(rest.has_value());
    EXPECT_EQ(rest->cores(), CoreSet::of({1}));
    EXPECT_EQ(Lease::acquire("virtual:rk3588#0", 3, CoreSet::any()).error().code(),
              Code::kOutOfCores);
    EXPECT_TRUE(Lease::acquire("virtual:rk3588#other", 3, CoreSet::platform()).has_value());
    Lease moved = std::move(*rest);
    EXPECT_EQ(moved.cores(), CoreSet::of({1}));
  }
  EXPECT_EQ(Lease::acquire("virtual:rk3588#0", 3, CoreSet::platform())->cores(), CoreSet::first(3));
}

TEST_F(LeaseTest, FailedLeaseHoldsNothing) {
  auto held = Lease::acquire("d", 3, CoreSet::of({2}));
  EXPECT_FALSE(Lease::acquire("d", 3, CoreSet::of({0, 1, 2})).has_value());
  EXPECT_TRUE(Lease::acquire("d", 3, CoreSet::of({0, 1})).has_value());
}

TEST_F(LeaseTest, DeathOfTheHolderFreesItsCores) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto lease = Lease::acquire("d", 2, CoreSet::of({1}));
    const char byte = lease.has_value() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(2);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  const auto clash = Lease::acquire("d", 2, CoreSet::of({1}));
  ASSERT_FALSE(clash.has_value());
  EXPECT_THAT(clash.error().message(), testing::HasSubstr(std::to_string(child)));
  EXPECT_TRUE(Lease::acquire("d", 2, CoreSet::of({0})).has_value());
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(Lease::acquire("d", 2, CoreSet::of({1})).has_value());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(LeaseTest, AForkedChildDoesNotHoldWhatItsParentGivesBack) {
  auto lease = std::make_unique<Lease>(*Lease::acquire("d", 2, CoreSet::first(2)));
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Its copy of the object holds nothing, and lets nothing go.
    const bool empty =
        lease->cores().empty() && !Lease::acquire("d", 2, CoreSet::of({0})).has_value();
    lease.reset();
    const char byte = empty && !Lease::acquire("d", 2, CoreSet::of({0})) ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(2);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  lease.reset();
  EXPECT_TRUE(Lease::acquire("d", 2, CoreSet::first(2)).has_value());
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(ready[0]);
  close(ready[1]);
}

/// A child that does `f`, says whether it went well, and stays until it is killed.
class Child {
 public:
  explicit Child(const std::function<bool()>& f) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const char byte = f() ? 'y' : 'n';
      if (write(ready[1], &byte, 1) != 1) _exit(2);
      for (;;) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
    close(ready[0]);
    close(ready[1]);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

/// Becomes the user `nobody`, for good.
bool become_nobody() {
  constexpr uid_t kNobody = 65534;
  return setgroups(0, nullptr) == 0 && setgid(kNobody) == 0 && setuid(kNobody) == 0;
}

std::string file_of(const std::string& folder, const char* end) {
  return folder + "/corelane-lease-d" + end + ".lock";
}

TEST_F(LeaseTest, AStoppedHolderOfTheSearchBlocksNobodyForLong) {
  // The child has the lock of the search, as a process that was stopped in the midst of it.
  const Child child([&] {
    const int fd = open(file_of(folder_, "").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    const std::string text = std::to_string(getpid()) + " stop\x1bped\n";
    return fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0 &&
           write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  });
  ASSERT_EQ(kill(child.pid(), SIGSTOP), 0);
  const auto clock = std::make_shared<VirtualClock>();
  std::atomic<bool> ended = false;
  Status status;
  std::thread asks([&] {
    const auto lease = Lease::acquire("d", 2, CoreSet::of({0}),
                                      {.clock = clock, .limit = std::chrono::milliseconds(20)});
    status = lease ? Status() : lease.error();
    ended = true;
  });
  while (!ended) {
    clock->advance(std::chrono::microseconds(100));
    std::this_thread::yield();
  }
  asks.join();
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_THAT(status.message(),
              testing::HasSubstr("process " + std::to_string(child.pid()) + " (stop\\x1bped)"));
  EXPECT_THAT(status.message(), testing::HasSubstr("kill -CONT"));
}

/// Time passes where somebody waits, and gives the lock of a file back.
class FreeingClock final : public Clock {
 public:
  explicit FreeingClock(const std::string& file)
      : fd_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    EXPECT_EQ(fcntl(fd_, F_OFD_SETLK, &lock), 0);
  }
  ~FreeingClock() override { free(); }
  TimePoint now() const noexcept override { return now_; }
  bool wait_until(std::unique_lock<std::mutex>&, std::condition_variable&,
                  TimePoint until) override {
    now_ = until;
    free();
    return false;
  }
  TimerId call_at(TimePoint, std::function<void()>) override { return {}; }
  bool cancel(TimerId) override { return false; }

 private:
  void free() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
  int fd_;
  TimePoint now_ = TimePoint() + std::chrono::hours(1);
};

TEST_F(LeaseTest, ASearchIsWaitedForWithoutALimit) {
  const auto lease = Lease::acquire(
      "d", 1, CoreSet::of({0}),
      {.clock = std::make_shared<FreeingClock>(file_of(folder_, "")), .limit = Duration::max()});
  EXPECT_TRUE(lease.has_value()) << lease.error().to_string();
}

TEST_F(LeaseTest, ANameThatEndsLikeACoreIsAnotherInstance) {
  const auto one = Lease::acquire("d", 2, CoreSet::of({1}));
  ASSERT_TRUE(one.has_value());
  const auto other = Lease::acquire("d-1", 2, CoreSet::of({1}), {.limit = Duration(0)});
  ASSERT_TRUE(other.has_value()) << other.error().to_string();
  const auto third = Lease::acquire("d-1-1", 2, CoreSet::of({1}), {.limit = Duration(0)});
  ASSERT_TRUE(third.has_value()) << third.error().to_string();
  EXPECT_EQ(Lease::holders("d", 64)->size(), 1U);
  // Another release has these names.
  for (const char* end : {"", "-1", "-1-1", "-1-1-1"})
    EXPECT_TRUE(std::filesystem::exists(file_of(folder_, end))) << end;
}

TEST_F(LeaseTest, TheHolderIsNamedByNumberAndProgram) {
  const auto lease = Lease::acquire("d", 1, CoreSet::of({0}));
  ASSERT_TRUE(lease.has_value());
  const auto holders = Lease::holders("d", 1).value();
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders[0].process, std::to_string(getpid()));
  EXPECT_EQ(holders[0].program, std::string(program_invocation_short_name).substr(0, 32));
  EXPECT_THAT(Lease::acquire("d", 1, CoreSet::of({0})).error().message(),
              testing::HasSubstr(holders[0].process + " (" + holders[0].program + ")"));
  // What another user may have written there instead.
  const auto says = [&](const std::string& text) {
    std::ofstream(file_of(folder_, "-0"), std::ios::trunc) << text;
    const auto holder = Lease::holders("d", 1).value().at(0);
    return holder.process + "|" + holder.program;
  };
  EXPECT_EQ(says(""), "unknown|");
  EXPECT_EQ(says("\x1b[2J"), "unknown|");
  EXPECT_EQ(says("12345678901 x"), "unknown|");
  EXPECT_EQ(says("12 a\x1b[2Jb\nforged line"), "12|a\\x1b[2Jb");
  EXPECT_EQ(says("7 " + std::string(500, 'x')).size(), 2 + 41U) << "43 bytes are read";
}

TEST_F(LeaseTest, ALimitOnFilesIsAFailure) {
  const Child child([] {
    const rlimit limit{0, 0};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    const auto refused = Lease::acquire("d", 1, CoreSet::of({0}));
    return !refused && refused.error().code() == Code::kIo;
  });
}

TEST_F(LeaseTest, AFolderThatOthersMayWriteToNeedsTheStickyBit) {
  for (const mode_t mode : {0777U, 0770U}) {
    ASSERT_EQ(chmod(folder_.c_str(), mode), 0);
    const auto refused = Lease::acquire("d", 1, CoreSet::of({0}));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), Code::kIo);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("chmod +t"));
    EXPECT_EQ(Lease::holders("d", 1).error().code(), Code::kIo);
    ASSERT_EQ(chmod(folder_.c_str(), mode | S_ISVTX), 0);
    EXPECT_TRUE(Lease::acquire("d", 1, CoreSet::of({0})).has_value());
  }
}

TEST_F(LeaseTest, ALockFileThatIsNoPlainFileIsRefused) {
  const std::string other = folder_ + "/precious";
  std::ofstream(other) << "precious";
  ASSERT_EQ(link(other.c_str(), file_of(folder_, "-0").c_str()), 0);
  ASSERT_EQ(symlink(other.c_str(), file_of(folder_, "-1").c_str()), 0);
  ASSERT_EQ(mkfifo(file_of(folder_, "-2").c_str(), 0600), 0);
  for (const std::size_t core : {0U, 1U, 2U}) {
    const auto refused = Lease::acquire("d", 3, CoreSet::of({core}));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), Code::kIo) << refused.error().message();
  }
  EXPECT_EQ(as_string_view(read_file(other).value()), "precious");
}

TEST_F(LeaseTest, EachUserHasAFolderWhereNoneIsNamed) {
  unsetenv("CORELANE_RUN_DIR");
  const std::string old = environment_text("XDG_RUNTIME_DIR");
  unsetenv("XDG_RUNTIME_DIR");
  setenv("TMPDIR", folder_.c_str(), 1);
  const std::string mine = folder_ + "/corelane-run-" + std::to_string(geteuid());
  EXPECT_TRUE(Lease::holders("d", 1).value().empty());
  EXPECT_FALSE(std::filesystem::exists(mine)) << "a look makes nothing";
  EXPECT_TRUE(Lease::acquire("d", 1, CoreSet::of({0})).has_value());
  struct stat info {};
  ASSERT_EQ(stat(mine.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  ASSERT_EQ(chmod(mine.c_str(), 01777), 0);
  EXPECT_EQ(Lease::acquire("d", 1, CoreSet::of({0})).error().code(), Code::kIo);
  unsetenv("TMPDIR");
  if (!old.empty()) setenv("XDG_RUNTIME_DIR", old.c_str(), 1);
}

TEST_F(LeaseTest, TwoUsersShareAFolderOfRootWithTheStickyBit) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  const mode_t old = umask(077);
  const auto first = Lease::acquire("d", 3, CoreSet::of({0}));
  ASSERT_TRUE(first.has_value());
  {
    const Child nobody([] {
      if (!become_nobody()) return false;
      const auto refused = Lease::acquire("d", 3, CoreSet::of({0}));
      static const auto held = Lease::acquire("d", 3, CoreSet::of({1}));
      return !refused && refused.error().code() == Code::kOutOfCores && held.has_value();
    });
    const auto refused = Lease::acquire("d", 3, CoreSet::of({1}));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), Code::kOutOfCores);
    EXPECT_THAT(refused.error().message(),
                testing::HasSubstr("process " + std::to_string(nobody.pid()) + " ("));
    EXPECT_TRUE(Lease::acquire("d", 3, CoreSet::of({2})).has_value());
  }
  EXPECT_TRUE(Lease::acquire("d", 3, CoreSet::of({1})).has_value()) << "made by the other user";
  umask(old);
}

TEST_F(LeaseTest, AFolderOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
  const auto refused = Lease::acquire("d", 1, CoreSet::of({0}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kIo);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("belongs to user 65534"));
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("set CORELANE_RUN_DIR"));
}

TEST_F(LeaseTest, UnusableFolderAndBadSetsAreNamed) {
  EXPECT_EQ(Lease::acquire("d", 2, CoreSet::of({2})).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Lease::acquire("d", 0, CoreSet::any()).error().code(), Code::kInvalidArgument);
  setenv("CORELANE_RUN_DIR", "/dev/null/nowhere", 1);
  const auto lease = Lease::acquire("d", 2, CoreSet::any());
  ASSERT_FALSE(lease.has_value());
  EXPECT_EQ(lease.error().code(), Code::kIo);
  EXPECT_THAT(lease.error().message(), testing::HasSubstr("CORELANE_RUN_DIR"));
}

}  // namespace
}  // namespace corelane::device
