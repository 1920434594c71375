#include "cli/qaic/runner_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/load_generator.h"
#include "cli/qaic/runner_options.h"

namespace corelane::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::HasSubstr;

LoadResult some(std::size_t count) {
  LoadResult result;
  for (std::size_t i = 1; i <= count; ++i) {
    Sample sample;
    sample.latency = microseconds(10 * i);
    sample.times.device = microseconds(i);
    result.samples.push_back(sample);
  }
  result.wall = milliseconds(500);
  return result;
}

TEST(StatsLines, TheRateIsTheLastWordAndCountsInferences) {
  EXPECT_EQ(stats_lines(some(40), 8),
            "---- Stats ----\n"
            "InferenceCnt 40 TotalDuration 500000us BatchSize 8 Inf/Sec 80.000\n");
  EXPECT_THAT(stats_lines(LoadResult(), 1), HasSubstr("InferenceCnt 0 TotalDuration 0us"));
}

TEST(DeviceMetrics, HaveMeanExtremesAndDeviation) {
  const LoadResult result = some(3);
  const auto rows = device_metrics(result.samples);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].metric, "ExecTimeUs_Func_0");
  EXPECT_DOUBLE_EQ(rows[0].avg, 2);
  EXPECT_DOUBLE_EQ(rows[0].min, 1);
  EXPECT_DOUBLE_EQ(rows[0].max, 3);
  EXPECT_NEAR(rows[0].std, 0.816, 0.001);
  EXPECT_EQ(rows[4].metric, "LatencyUs");
  EXPECT_DOUBLE_EQ(rows[4].max, 30);
  EXPECT_EQ(device_metrics({})[0].max, 0);
}

TEST(LiveReport, ComesOnceAPeriodAndIsOfWhatIsNew) {
  LiveReport live({milliseconds(100), true, true}, TimePoint{});
  EXPECT_EQ(live.report(some(5), TimePoint(milliseconds(99))), "");
  const std::string first = live.report(some(10), TimePoint(milliseconds(100)));
  EXPECT_THAT(first, HasSubstr("0.1 s: InferenceCnt 10 Failed 0 Inf/Sec 100.000"));
  EXPECT_EQ(live.report(some(11), TimePoint(milliseconds(199))), "");
  const std::string second = live.report(some(30), TimePoint(milliseconds(300)));
  EXPECT_THAT(second, HasSubstr("InferenceCnt 30 Failed 0 Inf/Sec 100.000"));
  EXPECT_THAT(second, HasSubstr("11.000,")) << "the least of the new ones";
}

TEST(RunnerWrite, TakesTheFirstInferenceOrThoseAskedFor) {
  RunnerWrite write;
  EXPECT_FALSE(write.takes(0)) << "nothing was asked for";
  write.folder = "out";
  EXPECT_TRUE(write.takes(0));
  EXPECT_FALSE(write.takes(1));
  write.start = 5;
  write.count = UINT64_MAX;
  EXPECT_FALSE(write.takes(4));
  EXPECT_TRUE(write.takes(UINT64_MAX));
}

}  // namespace
}  // namespace corelane::cli
