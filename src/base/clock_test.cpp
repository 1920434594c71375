#include "corelane/base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/later.h"
#include "corelane/base/api.h"
#include "corelane/base/log.h"

namespace corelane {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

TEST(Clock, LaterSaturatesToNever) {
  const TimePoint now{std::chrono::seconds(5)};
  EXPECT_EQ(later(now, std::chrono::seconds(2)), TimePoint{std::chrono::seconds(7)});
  EXPECT_EQ(later(now, kNever - now), kNever);
  EXPECT_EQ(later(now, Duration::max()), kNever);
}

TEST(RealClock, TimeDoesNotGoBackwards) {
  const auto& clock = real_clock();
  const TimePoint first = clock->now();
  EXPECT_LE(first, clock->now());
  EXPECT_FALSE(clock->is_virtual());
}

TEST(RealClock, AWaitInThePastReturnsAtOnceWithTheLockHeld) {
  std::mutex m;
  std::condition_variable cv;
  std::unique_lock lock(m);
  EXPECT_FALSE(real_clock()->wait_until(lock, cv, real_clock()->now() - 1s));
  EXPECT_TRUE(lock.owns_lock());
  // 5 ms: the wait itself is under test; how late it ends is not.
  const TimePoint until = real_clock()->now() + 5ms;
  while (real_clock()->wait_until(lock, cv, until)) {
  }
  EXPECT_GE(real_clock()->now(), until);
}

TEST(RealClock, ANotificationEndsTheWait) {
  std::mutex m;
  std::condition_variable cv;
  bool ready = false;
  std::thread notifier([&] {
    std::lock_guard guard(m);
    ready = true;
    cv.notify_one();
  });
  std::unique_lock lock(m);
  while (!ready) real_clock()->wait_until(lock, cv, kNever);
  lock.unlock();
  notifier.join();
  EXPECT_TRUE(ready);
}

TEST(RealClock, TimersRunInOrderOfTimeThenOfCreation) {
  std::vector<int> order;
  // Not a future: its wait is out of sight of the thread sanitizer of clang.
  std::latch done(1);
  // The timer thread waits until all are there: this thread may be interrupted between two.
  std::latch all_there(1);
  const TimePoint t = real_clock()->now();
  real_clock()->call_at(t - 1us, [&] { all_there.wait(); });
  real_clock()->call_at(t + 2us, [&] {
    order.push_back(4);
    done.count_down();
  });
  real_clock()->call_at(t, [&] { order.push_back(1); });
  real_clock()->call_at(t + 1us, [&] { order.push_back(2); });
  real_clock()->call_at(t + 1us, [&] { order.push_back(3); });
  all_there.count_down();
  done.wait();
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST(RealClock, ACancelledTimerDoesNotRun) {
  std::promise<void> done;
  const TimePoint t = real_clock()->now() + 1h;
  const auto id = real_clock()->call_at(t, [] { FAIL() << "was cancelled"; });
  EXPECT_TRUE(real_clock()->cancel(id));
  EXPECT_FALSE(real_clock()->cancel(id));
  const auto ran = real_clock()->call_at(TimePoint{}, [&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_FALSE(real_clock()->cancel(ran));
}

TEST(RealClock, ATimerMaySetAndCancelTimers) {
  std::promise<void> done;
  const auto far = real_clock()->call_at(kNever, [] {});
  real_clock()->call_at(real_clock()->now(), [&] {
    EXPECT_TRUE(real_clock()->cancel(far));
    real_clock()->call_at(real_clock()->now(), [&] { done.set_value(); });
  });
  done.get_future().wait();
}

TEST(RealClock, ATimerThatThrowsIsLoggedAndTheNextOneRuns) {
  std::promise<std::string> line;
  log::set_callback([&](log::Level, std::string_view, std::string_view text) {
    line.set_value(std::string(text));
  });
  std::promise<void> done;
  real_clock()->call_at(TimePoint{}, [] { throw std::runtime_error("bad timer"); });
  EXPECT_EQ(line.get_future().get(), "a timer's call threw: bad timer");
  log::set_callback(nullptr);
  real_clock()->call_at(TimePoint{}, [&] { done.set_value(); });
  done.get_future().wait();
}

TEST(VirtualClock, StandsStillUntilMoved) {
  VirtualClock clock;
  EXPECT_TRUE(clock.is_virtual());
  const TimePoint start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(5s);
  EXPECT_EQ(clock.now(), start + 5s);
  clock.advance_to(start);  // Never backwards.
  EXPECT_EQ(clock.now(), start + 5s);
}

TEST(VirtualClock, TimersRunInOrderAtTheirOwnTime) {
  VirtualClock clock;
  const TimePoint start = clock.now();
  std::vector<std::pair<int, Duration>> seen;
  const auto note = [&](int i) { return [&, i] { seen.emplace_back(i, clock.now() - start); }; };
  clock.call_at(start + 3s, note(3));
  clock.call_at(start + 1s, note(1));
  clock.call_at(start + 3s, note(4));
  clock.call_at(start + 2s, [&] {
    note(2)();
    clock.call_at(start + 2500ms, note(25));
    clock.call_at(start + 1s, note(9));  // In the past: runs at once, the clock stays.
  });
  EXPECT_EQ(clock.next_timer(), start + 1s);
  clock.advance_to(start + 10s);
  EXPECT_THAT(seen,
              ElementsAre(std::pair<int, Duration>(1, 1s), std::pair<int, Duration>(2, 2s),
                          std::pair<int, Duration>(9, 2s), std::pair<int, Duration>(25, 2500ms),
                          std::pair<int, Duration>(3, 3s), std::pair<int, Duration>(4, 3s)));
  EXPECT_EQ(clock.now(), start + 10s);
  EXPECT_EQ(clock.next_timer(), kNever);
}

TEST(VirtualClock, CancelRemovesATimerOnce) {
  VirtualClock clock;
  int ran = 0;
  const auto a = clock.call_at(clock.now() + 1s, [&] { ++ran; });
  const auto b = clock.call_at(clock.now() + 1s, [&] { ++ran; });
  EXPECT_TRUE(clock.cancel(a));
  EXPECT_FALSE(clock.cancel(a));
  EXPECT_FALSE(clock.cancel(12345));
  clock.advance(1s);
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(clock.cancel(b));
}

TEST(VirtualClock, ACancelledCallIsDestroyedOutsideTheLock) {
  VirtualClock clock;
  struct CallsBack {
    VirtualClock* clock;
    ~CallsBack() { clock->next_timer(); }
  };
  const auto id =
      clock.call_at(clock.now() + 1s, [c = std::make_shared<CallsBack>(CallsBack{&clock})] {});
  EXPECT_TRUE(clock.cancel(id));
}

TEST(VirtualClock, RunAllStopsAtItsLimit) {
  VirtualClock clock;
  std::function<void()> again = [&] { clock.call_at(clock.now() + 1s, again); };
  clock.call_at(clock.now(), again);
  EXPECT_EQ(clock.run_all(10), 10U);
  EXPECT_EQ(clock.now(), TimePoint{} + 9s);
  EXPECT_EQ(VirtualClock().run_all(), 0U);
}

TEST(VirtualClock, ATimerAtNeverDoesNotRun) {
  VirtualClock clock;
  clock.call_at(kNever, [] { FAIL() << "never came"; });
  EXPECT_EQ(clock.run_all(), 0U);
  EXPECT_EQ(clock.next_timer(), kNever);
}

TEST(VirtualClock, AWaitThatIsOverReturnsFalseAtOnce) {
  VirtualClock clock;
  std::mutex m;
  std::condition_variable cv;
  std::unique_lock lock(m);
  EXPECT_FALSE(clock.wait_until(lock, cv, clock.now()));
  EXPECT_TRUE(lock.owns_lock());
}

TEST(VirtualClock, AdvancingWakesAWaiterWhoseTimeHasCome) {
  // Many rounds, so that the waiter is met before, while and after it starts to wait.
  for (int round = 0; round < 300; ++round) {
    VirtualClock clock;
    std::mutex m;
    std::condition_variable cv;
    const TimePoint until = clock.now() + 1s;
    std::thread waiter([&] {
      std::unique_lock lock(m);
      while (clock.wait_until(lock, cv, until)) {
      }
      EXPECT_GE(clock.now(), until);
    });
    if (round % 2 == 0) std::this_thread::yield();
    clock.advance(500ms);
    clock.advance(500ms);
    waiter.join();
  }
}

TEST(VirtualClock, ManyWaitersOfOneMutexAllWake) {
  VirtualClock clock;
  std::mutex m;
  std::condition_variable cv;
  std::vector<std::thread> waiters;
  for (int i = 1; i <= 6; ++i) {
    waiters.emplace_back([&, until = clock.now() + i * 1s] {
      std::unique_lock lock(m);
      while (clock.wait_until(lock, cv, until)) {
      }
    });
  }
  for (int i = 0; i < 6; ++i) clock.advance(1s);
  for (auto& w : waiters) w.join();
}

TEST(VirtualClock, AWaiterMayDestroyItsMutexRightAfterwards) {
  for (int round = 0; round < 100; ++round) {
    VirtualClock clock;
    std::thread waiter([&] {
      std::mutex m;
      std::condition_variable cv;
      std::unique_lock lock(m);
      while (clock.wait_until(lock, cv, TimePoint{} + 1s)) {
      }
    });
    clock.advance(1s);
    waiter.join();
  }
}

TEST(VirtualClock, ANotificationWakesAWaiterBeforeItsTime) {
  VirtualClock clock;
  std::mutex m;
  std::condition_variable cv;
  bool ready = false;
  bool in_time = false;
  std::thread waiter([&] {
    std::unique_lock lock(m);
    in_time = true;
    while (!ready && in_time) in_time = clock.wait_until(lock, cv, clock.now() + 1s);
  });
  {
    std::lock_guard guard(m);
    ready = true;
  }
  cv.notify_all();
  waiter.join();
  EXPECT_TRUE(in_time);
  EXPECT_EQ(clock.now(), TimePoint{});
}

TEST(Version, IsTheOneOfTheHeaders) { EXPECT_STREQ(version(), CORELANE_VERSION_STRING); }

}  // namespace
}  // namespace corelane
