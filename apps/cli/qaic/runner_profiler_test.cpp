// Which inferences come into which report of qaic-runner, with records and times of the test's own.
#include "cli/qaic/runner_profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace corelane::cli {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TimePoint at(int ms) { return TimePoint(milliseconds(ms)); }

class RunnerProfilerTest : public testing::Test {
 protected:
  RunnerProfilerTest() {
    std::string pattern = testing::TempDir() + "corelane-profiler-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    options_.folder = folder_.string();
  }
  ~RunnerProfilerTest() override { std::filesystem::remove_all(folder_); }

  RunnerProfiler profiler() {
    return {options_, std::make_shared<const edge::ProfiledProgram>(
                          edge::ProfiledProgram{0, "net", {}, real_clock()})};
  }
  /// `count` inferences from number `first` on, one each millisecond from `from` on, collected one
  /// millisecond after their submission.
  static void infer(RunnerProfiler& profiler, int first, int count, int from) {
    for (int i = 0; i < count; ++i) {
      SetRecord record;
      record.id = static_cast<std::uint64_t>(first) + static_cast<std::uint64_t>(i);
      record.submitted = record.job.started = at(from + i);
      record.job.id = record.id + 1;
      record.job.ended = record.completed = record.collected = at(from + i + 1);
      profiler.take(record);
    }
  }
  std::string text(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  int samples(const std::string& name) const {
    const std::string all = text(name);
    std::smatch found;
    return std::regex_search(all, found, std::regex("Samples: (\\d+)")) ? std::stoi(found[1]) : -1;
  }
  /// The samples that each report of the latency stream has, in their order.
  std::vector<int> streamed() const {
    std::vector<int> all;
    for (int i = 0;; ++i) {
      const int found =
          samples("aic-profiling-program-0-latency-stream-" + std::to_string(i) + ".txt");
      if (found < 0) return all;
      all.push_back(found);
    }
  }

  std::filesystem::path folder_;
  RunnerProfiling options_;
};

TEST_F(RunnerProfilerTest, AReportHasSoManyInferencesFromTheFirstOneOn) {
  options_.types = {"raw_device_stats", "latency", "latency"};
  options_.start_iteration = 4;
  options_.samples = 3;
  RunnerProfiler made = profiler();
  made.start(at(1000));
  infer(made, 0, 6, 1000);
  EXPECT_THAT(made.written(), IsEmpty()) << "two of three";
  infer(made, 6, 1, 1006);
  EXPECT_EQ(made.written().size(), 2U) << "written at once; a type that is given twice counts once";
  infer(made, 7, 20, 1007);
  made.finish(at(2000));
  EXPECT_EQ(made.written().size(), 2U);
  EXPECT_EQ(samples("aic-profiling-program-0-latency.txt"), 3);
  const std::string raw = text("aic-profiling-program-0-raw.json");
  for (const char* id : {"\"id\": 4,", "\"id\": 5,", "\"id\": 6,"}) EXPECT_THAT(raw, HasSubstr(id));
  EXPECT_THAT(raw, testing::Not(HasSubstr("\"id\": 3,")));
}

TEST_F(RunnerProfilerTest, TheEndWritesWhatThereIsAndNothingForNothing) {
  options_.types = {"latency"};
  options_.samples = 10;
  RunnerProfiler made = profiler();
  made.start(at(0));
  infer(made, 0, 4, 0);
  made.finish(at(10));
  EXPECT_EQ(samples("aic-profiling-program-0-latency.txt"), 4);

  std::filesystem::remove(folder_ / "aic-profiling-program-0-latency.txt");
  RunnerProfiler none = profiler();
  none.start(at(0));
  none.finish(at(10));
  EXPECT_THAT(none.written(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(RunnerProfilerTest, DelayAndDurationAreTheLimitsOfEachType) {
  for (const char* type : {"latency", "latency_stream"}) {
    options_.types = {type};
    options_.samples = 1000;
    options_.start_delay_ms = 100;
    options_.duration_ms = 50;
    RunnerProfiler made = profiler();
    made.start(at(1000));
    infer(made, 0, 400, 1000);
    made.finish(at(1500));
  }
  EXPECT_EQ(samples("aic-profiling-program-0-latency.txt"), 50) << "of 1100 ms to 1150 ms";
  EXPECT_THAT(streamed(), ElementsAre(50)) << "no boundary before the end of the duration";
}

TEST_F(RunnerProfilerTest, AStreamIsCutAtTheBoundariesOfTheClock) {
  options_.types = {"latency_stream"};
  RunnerProfiler made = profiler();
  made.start(at(4400));
  infer(made, 0, 200, 4400);   // To 4600 ms: 100 are collected up to 4500 ms.
  infer(made, 200, 10, 6100);  // Two periods without one.
  EXPECT_THAT(streamed(), ElementsAre(100, 100, 0, 0)) << "written as their periods end";
  made.finish(at(7000));
  EXPECT_THAT(streamed(), ElementsAre(100, 100, 0, 0, 10, 0, 0)) << "the last is that of the end";
}

TEST_F(RunnerProfilerTest, EachRateTakesItsShareAndTheSumIsThatOfTheSamples) {
  int one_in = 1;
  for (const char* rate : {"full", "half", "fourth", "eighth", "sixteenth"}) {
    options_.types = {"latency_stream"};
    options_.sampling_rate = rate;
    options_.reporting_rate = "1000";
    RunnerProfiler made = profiler();
    made.start(at(0));
    infer(made, 0, 1600, 0);
    made.finish(at(1999));
    EXPECT_THAT(streamed(), ElementsAre(1000 / one_in + (1000 % one_in != 0), testing::_));
    EXPECT_EQ(streamed()[0] + streamed()[1], 1600 / one_in) << rate;
    one_in *= 2;
  }
}

TEST_F(RunnerProfilerTest, AStreamFromAnInferenceOnBeginsWithIt) {
  options_.types = {"latency_stream"};
  options_.start_iteration = 1000;
  RunnerProfiler made = profiler();
  made.start(at(0));
  infer(made, 0, 1010, 0);
  made.finish(at(1501));
  EXPECT_THAT(streamed(), ElementsAre(10, 0)) << "up to 1500 ms, and the end";
}

TEST_F(RunnerProfilerTest, AStreamWhoseDelayNeverEndsHasNoReport) {
  options_.types = {"latency_stream", "trace_stream"};
  options_.start_delay_ms = 5000;
  RunnerProfiler made = profiler();
  made.start(at(0));
  infer(made, 0, 100, 0);
  made.finish(at(4999));
  EXPECT_THAT(made.written(), IsEmpty());
}

TEST_F(RunnerProfilerTest, AFileThatCannotBeWrittenIsTheOutcome) {
  options_.types = {"latency"};
  std::ofstream(folder_ / "file") << "not a folder";
  options_.folder = (folder_ / "file").string();
  RunnerProfiler made = profiler();
  made.start(at(0));
  infer(made, 0, 2, 0);
  made.finish(at(10));
  EXPECT_EQ(made.status().code(), Code::kIo);
  EXPECT_THAT(made.status().to_string(), HasSubstr(options_.folder));
  EXPECT_THAT(made.written(), IsEmpty());
}

}  // namespace
}  // namespace corelane::cli
