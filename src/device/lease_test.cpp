#include "corelane/device/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

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
