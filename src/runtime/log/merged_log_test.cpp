#include "corelane/runtime/merged_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include "runtime/testing/set_bench.h"

namespace corelane {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SetBench;

/// A merged log that keeps its lines; read after flush() or its end.
struct KeptLog {
  explicit KeptLog(MergedLogOptions options) {
    options.on_line = [this](const MergedLine& line) { lines.push_back(line); };
    auto made = MergedLog::create(std::move(options));
    EXPECT_TRUE(made) << made.error().to_string();
    if (made) log = *made;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> found;
    for (const MergedLine& line : lines) found.push_back(line.text);
    return found;
  }
  std::vector<MergedLine> lines;
  MergedLog log;
};

TEST(MergedLog, HostLinesComeAfterTheirWindowWithTheirStamps) {
  const auto clock = std::make_shared<VirtualClock>();
  KeptLog kept({.window = milliseconds(100), .clock = clock});
  clock->advance(milliseconds(5));
  kept.log.write(log::Level::kWarn, "model", "one");
  kept.log.write(log::Level::kOff, "model", "of no level");
  clock->advance(milliseconds(5));
  kept.log.write(log::Level::kDebug, "runtime", "two");
  EXPECT_EQ(clock->next_timer(), TimePoint(milliseconds(105)));
  clock->advance(milliseconds(200));
  EXPECT_TRUE(kept.log.flush());
  ASSERT_THAT(kept.texts(), ElementsAre("one", "two"));
  EXPECT_EQ(kept.lines[0].stamp, TimePoint(milliseconds(5)));
  EXPECT_EQ(kept.lines[0].level, log::Level::kWarn);
  EXPECT_EQ(kept.lines[0].part, "model");
  EXPECT_FALSE(kept.lines[0].from_device);
  EXPECT_EQ(kept.log.dropped(), 0U);
}

/// Three devices at work, each with a line for each job, and a host that writes, in virtual time.
TEST(MergedLog, LinesOfHostAndDevicesAreInOrderOfTime) {
  constexpr auto kWindow = milliseconds(50);
  const auto clock = std::make_shared<VirtualClock>();
  std::vector<std::unique_ptr<SetBench>> benches;
  MergedLogOptions options;
  options.window = kWindow;
  for (const char* text : {"null:generic:1?a=3ms&log=1", "null:generic:2?a=5ms&log=1",
                           "null:generic:3?a=700us&log=2"}) {
    benches.push_back(std::make_unique<SetBench>(text, clock, nullptr));
    options.devices.push_back(benches.back()->device);
  }
  std::vector<MergedLine> lines;
  options.on_line = [&](const MergedLine& line) {
    EXPECT_GE(clock->now(), line.stamp + kWindow) << "too early";
    lines.push_back(line);
  };
  std::atomic<std::size_t> events{0};
  std::vector<std::shared_ptr<device::Observation>> observations;
  MergedLog merged = MergedLog::create(std::move(options)).value();
  std::vector<InferenceSet> sets;
  SetCallback again;
  for (const auto& bench : benches) {
    device::ObserverOptions watch;
    watch.on_event = [&](const device::Event&) { ++events; };
    observations.push_back(bench->device->observe(std::move(watch)).value());
    sets.push_back(bench->set({.size = 4}));
  }
  std::atomic<bool> going{true};
  for (InferenceSet& set : sets) {
    again = [&](const SetHandle& done) {
      for (InferenceSet& its : sets)
        if (going && its.submit(done, 0, again).ok()) return;
    };
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(set.submit(set.acquire().value(), 0, again).ok());
  }
  std::mt19937 random(3);
  std::size_t written = 0;
  while (clock->now() < TimePoint(milliseconds(400))) {
    clock->advance(std::chrono::microseconds(random() % 2000));
    // Each device's thread has called the log once it has called its later observer.
    for (const auto& observation : observations) ASSERT_TRUE(observation->flush());
    for (unsigned i = random() % 3; i > 0; --i, ++written)
      merged.write(log::Level::kInfo, "host", "line " + std::to_string(written));
  }
  going = false;
  clock->advance(milliseconds(10));  // All jobs end.
  for (const auto& observation : observations) ASSERT_TRUE(observation->flush());
  clock->advance(seconds(1));
  EXPECT_TRUE(merged.flush());
  EXPECT_TRUE(
      std::is_sorted(lines.begin(), lines.end(),
                     [](const MergedLine& a, const MergedLine& b) { return a.stamp < b.stamp; }));
  EXPECT_EQ(merged.dropped(), 0U);
  EXPECT_EQ(lines.size(), events + written);
  for (const auto& bench : benches)
    EXPECT_GT(std::count_if(lines.begin(), lines.end(),
                            [&](const MergedLine& one) {
                              return one.part == bench->device->info().instance;
                            }),
              50);
}

TEST(MergedLog, WhatHappensToADeviceHasALevel) {
  SetBench bench("null:rk3588");
  KeptLog kept({.devices = {bench.device}});
  ASSERT_TRUE(bench.device->reset(device::CoreSet::of({1})).ok());
  EXPECT_TRUE(kept.log.flush());
  ASSERT_FALSE(kept.lines.empty());
  EXPECT_TRUE(std::any_of(kept.lines.begin(), kept.lines.end(),
                          [](const MergedLine& line) { return line.level == log::Level::kWarn; }));
  for (const MergedLine& line : kept.lines) {
    EXPECT_TRUE(line.from_device);
    EXPECT_EQ(line.part, bench.device->info().instance);
  }
}

TEST(MergedLog, ItsEndDeliversWhatWaits) {
  SetBench bench("null:rk3588");
  std::vector<std::string> texts;
  MergedLogOptions options;
  options.devices = {bench.device};
  options.on_line = [&](const MergedLine& line) { texts.push_back(line.text); };
  {
    const MergedLog merged = MergedLog::create(std::move(options)).value();
    merged.write(log::Level::kInfo, "host", "before");
    bench.clock->advance(milliseconds(1));
    ASSERT_TRUE(bench.device->reset(device::CoreSet::of({1})).ok());
    bench.clock->advance(milliseconds(1));
    merged.write(log::Level::kInfo, "host", "after");
  }
  ASSERT_GE(texts.size(), 3U);
  EXPECT_EQ(texts.front(), "before");
  EXPECT_EQ(texts.back(), "after");
}

TEST(MergedLog, ACallMayWriteFlushAndEndTheLog) {
  std::promise<void> ended;
  std::vector<std::string> texts;
  auto held = std::make_shared<std::optional<MergedLog>>();
  MergedLogOptions options;
  options.on_line = [&](const MergedLine& line) {
    texts.push_back(line.text);
    if (line.text == "first") {
      EXPECT_FALSE((*held)->flush()) << "in its own call";
      (*held)->write(log::Level::kInfo, "host", "last");
      held->reset();
    }
    if (line.text == "last") ended.set_value();
  };
  const auto clock = std::make_shared<VirtualClock>();
  options.clock = clock;
  held->emplace(MergedLog::create(std::move(options)).value());
  (*held)->write(log::Level::kInfo, "host", "first");
  (*held)->write(log::Level::kInfo, "host", "second");
  clock->advance(seconds(3));
  ended.get_future().wait();
  EXPECT_THAT(texts, ElementsAre("first", "second", "last"));
}

TEST(MergedLog, WhatACallThrowsGoesToTheLogAndNotToThisOne) {
  int calls = 0;
  MergedLogOptions options;
  options.on_line = [&](const MergedLine&) {
    ++calls;
    throw std::runtime_error("as users do");
  };
  std::vector<std::string> complaints;
  {
    const MergedLog merged = MergedLog::create(std::move(options)).value();
    log::set_callback([&](log::Level level, std::string_view part, std::string_view text) {
      complaints.emplace_back(text);
      merged.write(level, part, text);
    });
    merged.write(log::Level::kInfo, "host", "one");
    merged.write(log::Level::kInfo, "host", "two");
    EXPECT_TRUE(merged.flush());
    log::set_callback(nullptr);
  }
  EXPECT_EQ(calls, 2);
  ASSERT_EQ(complaints.size(), 2U);
  EXPECT_THAT(complaints[0], HasSubstr("as users do"));
}

TEST(MergedLog, WhatFindsNoRoomIsDroppedAndCounted) {
  const auto clock = std::make_shared<VirtualClock>();
  KeptLog kept({.memory = 4096, .clock = clock});
  for (int i = 0; i < 10; ++i) kept.log.write(log::Level::kInfo, "host", std::string(1000, 'x'));
  EXPECT_EQ(kept.log.dropped(), 7U);
  EXPECT_TRUE(kept.log.flush());
  EXPECT_EQ(kept.lines.size(), 3U);
  kept.log.write(log::Level::kInfo, "host", "there is room");
  EXPECT_EQ(kept.log.dropped(), 7U);
}

TEST(MergedLog, AnyThreadMayWriteAndFlush) {
  KeptLog kept({.window = milliseconds(1)});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 500; ++k) {
        kept.log.write(log::Level::kInfo, "host", "text");
        if (k % 100 == 0) EXPECT_TRUE(kept.log.flush());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(kept.log.flush());
  EXPECT_EQ(kept.lines.size(), 2000U);
}

TEST(MergedLog, LinesComeByThemselvesOnARealClock) {
  std::promise<void> came;
  MergedLogOptions options;
  options.window = milliseconds(1);
  options.on_line = [&](const MergedLine&) { came.set_value(); };
  const MergedLog merged = MergedLog::create(std::move(options)).value();
  merged.write(log::Level::kInfo, "host", "one");
  came.get_future().wait();
}

TEST(MergedLog, OptionsThatCannotBeAreRefused) {
  SetBench one("null:rk3588");
  SetBench two("null:rk3588");
  const auto code = [](MergedLogOptions options) {
    options.on_line = [](const MergedLine&) {};
    return MergedLog::create(std::move(options)).error().code();
  };
  EXPECT_EQ(MergedLog::create({}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(code({.window = milliseconds(-1)}), Code::kInvalidArgument);
  EXPECT_EQ(code({.window = std::chrono::hours(2)}), Code::kInvalidArgument);
  EXPECT_EQ(code({.memory = 100}), Code::kInvalidArgument);
  EXPECT_EQ(code({.devices = {nullptr}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.devices = {one.device, two.device}}), Code::kInvalidArgument) << "two clocks";
  EXPECT_EQ(code({.devices = {one.device}, .clock = real_clock()}), Code::kInvalidArgument);
  MergedLog().write(log::Level::kInfo, "host", "to nobody");
  EXPECT_FALSE(MergedLog().flush());
}

TEST(MergedLog, InAForkedChildNothingIsDeliveredAndNothingHangs) {
  SetBench bench("null:rk3588", false);
  KeptLog kept({.devices = {bench.device}});
  kept.log.write(log::Level::kInfo, "host", "of the parent");
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    kept.log.write(log::Level::kInfo, "host", "of the child");
    const bool flushed = kept.log.flush();
    kept.log = {};
    _exit(flushed || !kept.lines.empty() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(kept.log.flush());
  EXPECT_THAT(kept.texts(), ElementsAre("of the parent"));
}

}  // namespace
}  // namespace corelane
