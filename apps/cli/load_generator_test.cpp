#include "cli/load_generator.h"

#include <gtest/gtest.h>

namespace corelane::cli {
namespace {

/// All of an open loop that is never late.
std::vector<Duration> all_of(const LoadPoint& point, const LoadSettings& settings) {
  Arrivals arrivals(point, settings);
  std::vector<Duration> times;
  while (const auto due = arrivals.next(times.empty() ? Duration(0) : times.back()))
    times.push_back(*due);
  EXPECT_EQ(arrivals.leave_rest(Duration::max()), 0U);
  return times;
}

TEST(Arrivals, AClosedLoopBeginsAtOnceUntilItsTimeIsOver) {
  LoadSettings settings;
  settings.time = std::chrono::seconds(2);
  Arrivals arrivals({1, 0, false}, settings);
  EXPECT_EQ(arrivals.next(Duration(5)), Duration(5));
  EXPECT_EQ(arrivals.next(settings.time - Duration(1)), settings.time - Duration(1));
  EXPECT_FALSE(arrivals.next(settings.time));
  EXPECT_EQ(arrivals.leave_rest(settings.time), 0U);
}

TEST(Arrivals, AClosedLoopEndsWithItsCount) {
  LoadSettings settings;
  settings.count = 2;
  Arrivals arrivals({1, 0, false}, settings);
  EXPECT_TRUE(arrivals.next(Duration(0)));
  EXPECT_TRUE(arrivals.next(settings.time * 2));  // The time is not looked at.
  EXPECT_FALSE(arrivals.next(Duration(0)));
}

TEST(Arrivals, EqualGapsFillTheTime) {
  LoadSettings settings;
  settings.time = std::chrono::seconds(2);
  const auto times = all_of({1, 10, false}, settings);
  ASSERT_EQ(times.size(), 20U);
  EXPECT_EQ(times[0], Duration(0));
  EXPECT_NEAR(to_us(times[19]), 1.9e6, 1);
}

TEST(Arrivals, ALateLoadEndsWithItsTimeAndCountsWhatDidNotStart) {
  LoadSettings settings;
  settings.time = std::chrono::seconds(2);
  Arrivals arrivals({1, 10, false}, settings);
  EXPECT_EQ(arrivals.next(Duration(0)), Duration(0));
  EXPECT_EQ(arrivals.next(std::chrono::seconds(1)), std::chrono::milliseconds(100));
  EXPECT_FALSE(arrivals.next(settings.time));
  EXPECT_EQ(arrivals.leave_rest(std::chrono::seconds(9)), 18U);
  EXPECT_EQ(arrivals.leave_rest(std::chrono::seconds(9)), 0U);
}

TEST(Arrivals, OfALoadThatIsInterruptedOnlyWhatWasDueDidNotStart) {
  LoadSettings settings;
  settings.count = 100;
  Arrivals arrivals({1, 10, false}, settings);
  EXPECT_EQ(arrivals.next(Duration(0)), Duration(0));
  EXPECT_EQ(arrivals.leave_rest(std::chrono::milliseconds(350)), 3U);
}

TEST(Arrivals, CountDecidesWhenGiven) {
  LoadSettings settings;
  settings.count = 7;
  settings.time = Duration(1);
  EXPECT_EQ(all_of({1, 1000, true}, settings).size(), 7U);
}

TEST(Arrivals, PoissonGapsHaveTheRateAndSpread) {
  LoadSettings settings;
  settings.count = 20000;
  const auto times = all_of({1, 100, true}, settings);
  const double mean = to_us(times.back()) / static_cast<double>(times.size());
  EXPECT_NEAR(mean, 1e4, 300);
  double square = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const double gap = to_us(times[i] - times[i - 1]) - mean;
    square += gap * gap;
  }
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(times.size())), 1e4, 500);
  EXPECT_EQ(times, all_of({1, 100, true}, settings));  // The seed decides.
}

TEST(Summary, CountsFailuresApart) {
  LoadResult result;
  result.wall = std::chrono::seconds(1);
  result.failed = 2;
  result.not_started = 3;
  result.first_error = Status(Code::kTimeout, "late");
  for (int i = 1; i <= 100; ++i)
    result.samples.push_back({TimePoint(Duration(i)), std::chrono::microseconds(i), {}, 1});
  const auto j = summarize_load(result);
  EXPECT_EQ(j["failed"], 2);
  EXPECT_EQ(j["not_started"], 3);
  EXPECT_DOUBLE_EQ(j["throughput"].get<double>(), 100.0);
  EXPECT_DOUBLE_EQ(j["latency_us"]["p50"].get<double>(), 50.0);
  EXPECT_DOUBLE_EQ(j["latency_us"]["p99"].get<double>(), 99.0);
}

TEST(Page, IsSelfContained) {
  LoadResult result;
  result.samples.push_back({TimePoint(Duration(1)), Duration(5000), {}, 3});
  result.wall = std::chrono::seconds(1);
  result.failed = 1;
  result.first_error = Status(Code::kTimeout, "late <b>");
  const Json report{{"model", "<m>"},
                    {"corelane", "c"},
                    {"device", "d"},
                    {"engine", "e"},
                    {"points", Json::array({summarize_load(result)})}};
  const auto html = bench_page(report, {result}, {"core0", "core1"});
  EXPECT_EQ(html.find("http"), std::string::npos);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("&lt;m&gt;"), std::string::npos);
  EXPECT_NE(html.find("late &lt;b&gt;"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
}

}  // namespace
}  // namespace corelane::cli
