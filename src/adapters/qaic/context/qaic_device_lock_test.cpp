// The advisory locks of devices, by the functions and between processes.
#include "adapters/qaic/context/qaic_device_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "adapters/qaic/api/qaic_test_support.h"
#include "device/registry/testing/watched_clock.h"

namespace corelane::qaic {
namespace {

using namespace test;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr const char* kLockVariable = "CORELANE_QAIC_LOCK";

/// The files of the locks lie in a folder of the test's own.
class QaicDeviceLock : public ::testing::Test {
 protected:
  static std::string make_folder() {
    std::string pattern = ::testing::TempDir() + "corelane-lock-XXXXXX";
    return mkdtemp(pattern.data());
  }
  ~QaicDeviceLock() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = make_folder();
  const Environment run_dir_{"CORELANE_RUN_DIR", folder_};
};

/// A child that holds the lock of a device until it is killed.
class Holder {
 public:
  explicit Holder(const std::string& instance) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      DeviceLocks locks(real_clock());
      const char taken = locks.take(instance, Duration{0}).ok() ? 'y' : 'n';
      if (write(ready[1], &taken, 1) != 1) _exit(1);
      for (;;) ::pause();
    }
    char taken = 0;
    EXPECT_EQ(read(ready[0], &taken, 1), 1);
    EXPECT_EQ(taken, 'y');
    close(ready[0]);
    close(ready[1]);
  }
  ~Holder() { end(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  /// As the worst end of a process does.
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  std::string name() const { return "process " + std::to_string(pid_); }

 private:
  pid_t pid_ = 0;
};

TEST_F(QaicDeviceLock, WithoutTheVariableThereIsNone) {
  const Environment none(kLockVariable, std::nullopt);
  const OwnDevices devices({"null:generic:1"});
  const QAicApiFunctionTable& api = *qaicGetFunctionTable();
  EXPECT_EQ(api.qaicLockDevice(0, true, false), QS_UNSUPPORTED);
  EXPECT_THAT(last_error(), HasSubstr("set CORELANE_QAIC_LOCK to the seconds"));
  EXPECT_EQ(api.qaicLockDevice(0, false, false), QS_UNSUPPORTED);
  for (const char* const wrong : {"0", "yes", "-1", "86401", "1s"}) {
    const Environment value(kLockVariable, wrong);
    EXPECT_EQ(api.qaicLockDevice(0, true, false), QS_INVAL) << wrong;
    EXPECT_THAT(last_error(), HasSubstr("it takes seconds, 1 to 86400"));
  }
}

TEST_F(QaicDeviceLock, IsTakenOnceAndGivenBack) {
  const Environment on(kLockVariable, "1");
  const OwnDevices devices({"null:generic:1?name=a", "null:generic:1?name=b"});
  const QAicApiFunctionTable& api = *qaicGetFunctionTable();
  EXPECT_EQ(api.qaicLockDevice(2, true, false), QS_NODEV);
  EXPECT_EQ(api.qaicLockDevice(0, false, false), QS_INVAL);
  EXPECT_THAT(last_error(), HasSubstr("does not hold the lock"));
  ASSERT_EQ(api.qaicLockDevice(0, true, false), QS_SUCCESS) << last_error();
  EXPECT_EQ(api.qaicLockDevice(0, true, false), QS_BUSY) << "once, whoever asks";
  EXPECT_THAT(last_error(), HasSubstr("process " + std::to_string(getpid())));
  EXPECT_EQ(api.qaicLockDevice(1, true, true), QS_SUCCESS) << "another device: " << last_error();
  EXPECT_EQ(api.qaicLockDevice(0, false, false), QS_SUCCESS) << last_error();
  EXPECT_EQ(api.qaicLockDevice(0, false, true), QS_INVAL);
  ASSERT_EQ(api.qaicLockDevice(0, true, true), QS_SUCCESS) << last_error();
  EXPECT_EQ(api.qaicLockDevice(0, false, false), QS_SUCCESS);
  EXPECT_EQ(api.qaicLockDevice(1, false, false), QS_SUCCESS);
}

TEST_F(QaicDeviceLock, AnotherProcessIsNamedAndItsDeathFreesTheLock) {
  Holder holder("npu");
  DeviceLocks locks(real_clock());
  const Status busy = locks.take("npu", Duration{0});
  EXPECT_EQ(busy.code(), Code::kBusy);
  EXPECT_THAT(busy.message(), HasSubstr("'npu' is held by " + holder.name() + " ("));
  EXPECT_EQ(locks.give("npu").code(), Code::kWrongState);
  EXPECT_TRUE(locks.take("other", Duration{0}).ok());
  holder.end();
  EXPECT_TRUE(locks.take("npu", Duration{0}).ok());
}

TEST_F(QaicDeviceLock, AWaitEndsWhenTheHolderDies) {
  Holder holder("npu");
  DeviceLocks locks(real_clock());
  std::thread waiter([&] { EXPECT_TRUE(locks.take("npu", seconds(60)).ok()); });
  holder.end();
  waiter.join();
}

TEST_F(QaicDeviceLock, AWaitHasItsLimit) {
  const auto clock = std::make_shared<device::WatchedClock>();
  DeviceLocks holder(real_clock());
  ASSERT_TRUE(holder.take("npu", Duration{0}).ok());
  DeviceLocks locks(clock);
  std::atomic<bool> done = false;
  std::thread waiter([&] {
    const Status status = locks.take("npu", seconds(5));
    EXPECT_EQ(status.code(), Code::kBusy);
    EXPECT_THAT(status.message(), HasSubstr(" ms after it was asked for"));
    done = true;
  });
  clock->await(1);
  clock->advance_to(TimePoint(seconds(5) - std::chrono::nanoseconds(1)));
  EXPECT_FALSE(done);
  while (!done) {
    clock->advance(std::chrono::milliseconds(10));
    std::this_thread::yield();
  }
  waiter.join();
  EXPECT_TRUE(holder.give("npu").ok());
}

}  // namespace
}  // namespace corelane::qaic
