#include "lanes/resources/core_leases.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/process/unique_fd.h"

namespace corelane::lanes {
namespace {

/// Calls a function of the test whenever somebody waits, and is where that wait ends.
class ClockOfWaits final : public Clock {
 public:
  TimePoint now() const noexcept override { return now_; }
  bool wait_until(std::unique_lock<std::mutex>&, std::condition_variable&,
                  TimePoint until) override {
    if (on_wait) on_wait();
    now_ = until;
    return false;
  }
  TimerId call_at(TimePoint, std::function<void()>) override { return 0; }
  bool cancel(TimerId) override { return false; }

  std::function<void()> on_wait;

 private:
  TimePoint now_{};
};

class CoreLeasesTest : public ::testing::Test {
 protected:
  CoreLeasesTest() {
    std::string pattern = ::testing::TempDir() + "corelane-leases-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    setenv("CORELANE_RUN_DIR", folder_.c_str(), 1);
  }
  ~CoreLeasesTest() override {
    unsetenv("CORELANE_RUN_DIR");
    std::filesystem::remove_all(folder_);
  }
  /// Locks what is not locked, as a process that was stopped while it looked for cores.
  std::vector<UniqueFd> lock_all() const {
    std::vector<UniqueFd> held;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      UniqueFd fd(open(entry.path().c_str(), O_RDWR | O_CLOEXEC));
      struct flock lock {};
      lock.l_type = F_WRLCK;
      if (fcntl(fd.get(), F_OFD_SETLK, &lock) == 0) held.push_back(std::move(fd));
    }
    return held;
  }
  std::string folder_;
};

TEST_F(CoreLeasesTest, FiguresArePublishedWhileALeaseIsWaitedFor) {
  const auto clock = std::make_shared<ClockOfWaits>();
  CoreLeases leases(true, "npu", 2, clock);
  CoreLeases::Held first;
  CoreLeases::Held second;
  std::uint64_t elsewhere = 0;
  ASSERT_TRUE(leases.take(0b01, first, elsewhere).ok());
  const auto others = lock_all();
  ASSERT_FALSE(others.empty());
  int published = 0;
  // Jobs do that on their way: one would wait here for as long as take() does.
  clock->on_wait = [&] {
    leases.publish(std::vector<device::LeaseFigures>(2));
    ++published;
  };
  EXPECT_EQ(leases.take(0b10, second, elsewhere).code(), Code::kBusy);
  EXPECT_GT(published, 0);
}

TEST_F(CoreLeasesTest, ResidencesOnOneCoreShareItsLease) {
  CoreLeases leases(true, "npu", 2, real_clock());
  CoreLeases::Held one;
  CoreLeases::Held two;
  std::uint64_t elsewhere = 0;
  ASSERT_TRUE(leases.take(0b11, one, elsewhere).ok());
  ASSERT_TRUE(leases.take(0b10, two, elsewhere).ok());
  EXPECT_EQ(one[1], two[0]);
  CoreLeases others(true, "npu", 2, real_clock());
  EXPECT_EQ(others.take(0b01, two, elsewhere).code(), Code::kOutOfCores);
  EXPECT_EQ(elsewhere, 0b01U);
}

}  // namespace
}  // namespace corelane::lanes
