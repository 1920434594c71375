// Where tasks run, and in which order they are called back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "runtime/testing/hooked_device.h"
#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using testing::CallbackLog;
using ::testing::ElementsAre;
using testing::feed_of;
using testing::HookedDevice;
using testing::milliseconds;
using testing::SessionBench;

std::vector<std::uint64_t> cores_used(Session& session) {
  const auto records = session.read_trace();
  EXPECT_TRUE(records);
  std::vector<std::uint64_t> cores(records->size());
  for (const device::JobRecord& r : *records) cores[r.tag] = r.core_bits;
  return cores;
}

/// To wake a thread for it took 40 us of each task (issue 17).
TEST(SessionMapping, ATaskThatFollowsOnItsCoreIsLeftToTheThreadThatRanTheLast) {
  SessionBench bench("null:rk3588?a=20ms");
  std::vector<bool> from_callback;
  SessionOptions options = bench.options();
  options.load.on =
      std::make_shared<HookedDevice>(bench.device, [&](std::size_t, const auto& job) -> Status {
        from_callback.push_back(job.from_callback);
        return {};
      });
  options.schedule = {0, 1};
  Session session = bench.session(options);
  CallbackLog log;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  EXPECT_THAT(from_callback, ElementsAre(false, false)) << "of the caller's thread";
  bench.run_out(session);
  EXPECT_THAT(from_callback, ElementsAre(false, false, true, true));
}

TEST(SessionMapping, EveryTaskRunsOnTheCoreOfTheFormula) {
  for (const std::vector<std::size_t>& schedule :
       std::vector<std::vector<std::size_t>>{{0, 1, 2}, {0, 0, 1}, {2, 0}, {1}}) {
    SessionBench bench("null:rk3588");
    SessionOptions options = bench.options();
    options.schedule = schedule;
    Session session = bench.session(options);
    ASSERT_TRUE(session.set_trace(1000).ok());
    CallbackLog log;
    // Blocking and other calls draw from one counter.
    for (int i = 0; i < 300; ++i) {
      if (i % 3 == 0) {
        ASSERT_TRUE(session.run(feed_of(bench.x)));
      } else {
        ASSERT_EQ(session.run_async(feed_of(bench.x), log.callback(bench)).value(),
                  static_cast<std::uint64_t>(i));
      }
    }
    ASSERT_TRUE(session.wait_callbacks());
    const auto cores = cores_used(session);
    ASSERT_EQ(cores.size(), 300U);
    for (std::size_t t = 0; t < 300; ++t)
      EXPECT_EQ(cores[t], std::uint64_t{1} << schedule[t % schedule.size()]) << t;
  }
}

TEST(SessionMapping, AdaptiveGivesATaskThatIsAloneAllCores) {
  SessionBench bench("null:rk3588?a=20ms");
  SessionOptions options = bench.options();
  options.schedule = {0, 1, 2};
  options.placement = PlacementPolicy::kAdaptive;
  Session session = bench.session(options);
  ASSERT_TRUE(session.set_trace(100).ok());
  CallbackLog log;
  const auto submit = [&](int tasks) {
    for (int i = 0; i < tasks; ++i)
      ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
    bench.run_out(session);
  };
  submit(1);  // Nothing is known of its time yet.
  submit(1);
  submit(4);
  for (int i = 0; i < 8; ++i) submit(1);
  const auto cores = cores_used(session);
  ASSERT_EQ(cores.size(), 14U);
  EXPECT_EQ(cores[0], 1U);
  EXPECT_EQ(cores[1], 7U);
  EXPECT_EQ(cores[2], 7U);  // Was alone when it came; the others came while it ran.
  EXPECT_EQ(cores[3] | cores[4] | cores[5], 7U);
  for (const std::size_t t : {3, 4, 5}) EXPECT_EQ(std::popcount(cores[t]), 1) << t;
  // Calls that overlapped may do so again: the next ones are alone, but not yet long enough.
  for (std::size_t t = 6; t < 13; ++t) EXPECT_EQ(std::popcount(cores[t]), 1) << t;
  EXPECT_EQ(cores[13], 7U);
}

TEST(SessionMapping, AdaptiveGivesShortTasksOneCore) {
  SessionBench bench("null:rk3588?a=50us");
  SessionOptions options = bench.options();
  options.schedule = {0, 1, 2};
  options.placement = PlacementPolicy::kAdaptive;
  Session session = bench.session(options);
  ASSERT_TRUE(session.set_trace(100).ok());
  CallbackLog log;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
    bench.run_out(session);
  }
  for (const std::uint64_t bits : cores_used(session)) EXPECT_EQ(std::popcount(bits), 1);
}

TEST(SessionMapping, ContextsAreThreadsTimesUniqueCores) {
  const std::vector<std::pair<std::vector<std::size_t>, int>> cases = {
      {{0}, 1},       {{0}, 3},    {{0, 1, 2}, 1}, {{0, 1, 2}, 2},
      {{0, 0, 1}, 2}, {{2, 0}, 2}, {{}, 1},        {{}, 4}};
  for (const auto& [schedule, threads] : cases) {
    SessionBench bench("null:rk3588");
    SessionOptions options = bench.options();
    options.schedule = schedule;
    options.threads_per_core = threads;
    const auto unique =
        std::max<std::size_t>(1, std::set<std::size_t>(schedule.begin(), schedule.end()).size());
    const SessionStatistics s = bench.session(options).statistics();
    EXPECT_EQ(s.contexts, unique * static_cast<std::size_t>(threads));
    EXPECT_EQ(s.duplicated, s.contexts - 1);
    options.disable_dup_context = true;
    const SessionStatistics independent = bench.session(options).statistics();
    EXPECT_EQ(independent.contexts, s.contexts);
    EXPECT_EQ(independent.duplicated, 0U);
  }
}

TEST(SessionMapping, ContextsSitOnTheSortedUniqueCoresInTurn) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.schedule = {2, 0};
  options.threads_per_core = 2;
  EXPECT_THAT(bench.session(options).statistics().core_of_context, ElementsAre(0, 2, 0, 2));
}

TEST(SessionMapping, WithoutAScheduleAnyCoreMayBeTaken) {
  SessionBench bench("null:rk3588");
  Session session = bench.session(bench.options());
  EXPECT_EQ(session.options().tp_mode, TpMode::kAuto);
  EXPECT_THAT(session.statistics().core_of_context, ElementsAre(-1));
  EXPECT_TRUE(session.run(feed_of(bench.x)));
}

TEST(SessionMapping, AllCoresOfAModeRunATaskTogether) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.tp_mode = TpMode::kCores012;
  Session session = bench.session(options);
  ASSERT_TRUE(session.set_trace(8).ok());
  ASSERT_TRUE(session.run(feed_of(bench.x)));
  EXPECT_EQ(session.read_trace()->front().core_bits, 7U);
}

TEST(SessionMapping, TheModeAllIsAllCoresOfTheDevice) {
  for (const auto& [device, bits] : {std::pair{"null:rk3588", 7U}, {"null:rk3576", 3U}}) {
    SessionBench bench(device);
    SessionOptions options = bench.options();
    options.tp_mode = TpMode::kAll;
    Session session = bench.session(options);
    ASSERT_TRUE(session.set_trace(8).ok());
    ASSERT_TRUE(session.run(feed_of(bench.x)));
    ASSERT_TRUE(session.submit(feed_of(bench.x))->get());
    const auto jobs = *session.read_trace();
    ASSERT_EQ(jobs.size(), 2U);
    for (const device::JobRecord& job : jobs) EXPECT_EQ(job.core_bits, bits) << device;
  }
}

TEST(SessionCreate, CoresThatAreNotThereLeaveNothingBehind) {
  SessionBench bench("null:rk3566");
  SessionOptions options = bench.options();
  options.schedule = {0, 1};
  const std::string model = testing::relu_model({std::int64_t{1}, std::int64_t{4}});
  const auto refused = Session::create(as_byte_span(model), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kOutOfCores);
  EXPECT_EQ(bench.device->memory().total(), 0U);
  options.schedule = {0};
  EXPECT_TRUE(bench.session(options).run(feed_of(bench.x)));
}

/// Six tasks on three cores, of which core 0 takes 60 ms and the others 10.
void run_six(const std::string& device, bool sequential, CallbackLog& log) {
  SessionBench bench(device);
  SessionOptions options = bench.options();
  options.schedule = {0, 1, 2};
  options.sequential_callbacks = sequential;
  Session session = bench.session(options);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  bench.run_out(session);
}

TEST(SessionOrder, SequentialCallbacksWaitForEarlierTasks) {
  CallbackLog log;
  run_six("null:rk3588?a=10ms&core0=6", true, log);
  EXPECT_THAT(log.tasks(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(log.times(), ElementsAre(60, 60, 60, 120, 120, 120));
}

TEST(SessionOrder, OtherCallbacksComeAsTheyAreDone) {
  CallbackLog log;
  run_six("null:rk3588?a=10ms&core0=6", false, log);
  EXPECT_THAT(log.tasks(), ElementsAre(1, 2, 4, 5, 0, 3));
  EXPECT_THAT(log.times(), ElementsAre(10, 10, 20, 20, 60, 120));
}

TEST(SessionOrder, AFailedTaskKeepsItsPlace) {
  CallbackLog log;
  run_six("null:rk3588?a=10ms&core0=6&fail=2", true, log);
  EXPECT_THAT(log.tasks(), ElementsAre(0, 1, 2, 3, 4, 5));
  int failed = 0;
  for (const auto& entry : log.entries) failed += entry.status.code() == Code::kEngineFailed;
  EXPECT_EQ(failed, 3);
}

TEST(SessionOrder, ASlowCoreDelaysNoOtherWhileTheQueueHasRoom) {
  SessionBench bench("null:rk3588?a=1ms&core0=100");
  SessionOptions options = bench.options();
  options.schedule = {0, 1};
  options.sequential_callbacks = false;
  options.max_queue_size = 16;
  Session session = bench.session(options);
  CallbackLog log;
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  bench.run_out(session);
  const auto tasks = log.tasks();
  EXPECT_THAT(std::vector(tasks.begin(), tasks.begin() + 5), ElementsAre(1, 3, 5, 7, 9));
  EXPECT_EQ(log.times()[4], 5);
  EXPECT_EQ(log.times()[9], 500);
}

TEST(SessionOrder, LeastLoadedPlacementUsesWhatIsIdle) {
  SessionBench bench("null:rk3588?a=1ms&core0=100");
  SessionOptions options = bench.options();
  options.schedule = {0, 1};
  options.sequential_callbacks = false;
  options.placement = PlacementPolicy::kLeastLoaded;
  options.max_queue_size = 16;
  Session session = bench.session(options);
  CallbackLog log;
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  bench.run_out(session);
  EXPECT_EQ(log.times()[8], 9);    // Nine on core 1, one after the other.
  EXPECT_EQ(log.times()[9], 100);  // Task 0 alone on core 0.
  EXPECT_THAT(session.statistics().tasks_by_context, ElementsAre(1, 9));
}

TEST(SessionOrder, TwoContextsOfACoreQueueOnIt) {
  SessionBench bench("null:rk3588?a=10ms");
  SessionOptions options = bench.options();
  options.schedule = {0};
  options.threads_per_core = 2;
  Session session = bench.session(options);
  CallbackLog log;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  EXPECT_EQ(session.statistics().running, 2U);
  EXPECT_EQ(session.statistics().waiting, 2U);
  bench.run_out(session);
  EXPECT_THAT(log.times(), ElementsAre(10, 20, 30, 40));
}

}  // namespace
}  // namespace corelane
