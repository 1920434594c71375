#include "corelane/runtime/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace corelane {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

device::DeviceInfo three_cores() {
  device::DeviceInfo info;
  info.kind = "null";
  info.instance = "null:rk3588#0";
  for (int i = 0; i < 3; ++i) info.cores.push_back({"core" + std::to_string(i), 0});
  return info;
}

device::JobRecord job(std::uint64_t id, std::uint64_t cores, Duration queued, Duration started,
                      Duration ended) {
  device::JobRecord r;
  r.id = id;
  r.core_bits = cores;
  r.queued = TimePoint(1s + queued);
  r.started = TimePoint(1s + started);
  r.ended = TimePoint(1s + ended);
  return r;
}

std::vector<Json> of_phase(const Json& trace, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& e : trace["traceEvents"])
    if (e["ph"] == phase) events.push_back(e);
  return events;
}

TEST(ChromeTrace, OneTrackPerCoreAndABarOnEachCoreOfAJob) {
  const std::vector<TraceSpan> spans{{job(2, 0b110, 0us, 5us, 9us), "det"},
                                     {job(1, 0b001, 0us, 1us, 4us), ""}};
  const Json trace = Json::parse(chrome_trace(three_cores(), spans));
  EXPECT_EQ(of_phase(trace, "M").size(), 4U);
  const auto bars = of_phase(trace, "X");
  ASSERT_EQ(bars.size(), 3U);
  EXPECT_EQ(bars[0]["name"], "job");
  EXPECT_EQ(bars[0]["ts"], 1.0);
  EXPECT_EQ(bars[0]["dur"], 3.0);
  EXPECT_EQ(bars[1]["name"], "det");
  EXPECT_EQ(bars[1]["tid"], 1);
  EXPECT_EQ(bars[2]["tid"], 2);
}

TEST(ChromeTrace, WaitingIsAnAsyncPairThatEndsAtTheStart) {
  const std::vector<TraceSpan> spans{{job(7, 1, 0us, 5us, 9us), "det"}};
  const Json trace = Json::parse(chrome_trace(three_cores(), spans));
  ASSERT_EQ(of_phase(trace, "b").size(), 1U);
  EXPECT_EQ(of_phase(trace, "b")[0]["ts"], 0.0);
  EXPECT_EQ(of_phase(trace, "b")[0]["id"], 7);
  EXPECT_EQ(of_phase(trace, "e")[0]["ts"], 5.0);
}

TEST(ChromeTrace, ConversionsOnTheHostAreShownWhereThereAreAny) {
  TraceSpan span{job(7, 1, 10us, 15us, 19us), "det"};
  span.host.enqueued = span.host.copy_in = TimePoint(1s + 4us);
  span.host.copied_in = TimePoint(1s + 9us);
  const Json trace = Json::parse(chrome_trace(three_cores(), std::vector{span}));
  const auto begins = of_phase(trace, "b");
  ASSERT_EQ(begins.size(), 2U);
  EXPECT_EQ(begins[0]["ts"], 6.0) << "queued, from the first stamp";
  EXPECT_EQ(begins[1]["name"], "det copy in");
  EXPECT_EQ(begins[1]["ts"], 0.0);
  EXPECT_EQ(of_phase(trace, "e")[1]["ts"], 5.0);
}

TEST(ChromeTrace, AJobThatNeverStartedHasNoBar) {
  auto never = job(7, 0, 0us, 0us, 9us);
  never.code = Code::kCancelled;
  const std::vector<TraceSpan> spans{{never, "det"}};
  const Json trace = Json::parse(chrome_trace(three_cores(), spans));
  EXPECT_TRUE(of_phase(trace, "X").empty());
  EXPECT_EQ(of_phase(trace, "e")[0]["ts"], 9.0);
}

TEST(ChromeTrace, NamesWithQuotesAndBadUtf8StayValidJson) {
  const std::vector<TraceSpan> spans{{job(1, 1, 0us, 1us, 2us), "a\"b\xFF"}};
  EXPECT_TRUE(Json::accept(chrome_trace(three_cores(), spans)));
  EXPECT_TRUE(Json::accept(chrome_trace(three_cores(), {})));
}

TEST(ChromeTrace, ControlCharactersAreWrittenOut) {
  const std::vector<TraceSpan> spans{{job(1, 1, 0us, 1us, 2us), "a\x1b\n\x7f\xc2\x9b"}};
  const std::string trace = chrome_trace(three_cores(), spans);
  EXPECT_TRUE(std::ranges::all_of(trace, [](char c) { return c >= ' ' && c < 0x7f; })) << trace;
}

TEST(Summary, PercentilesAreNearestRank) {
  std::vector<Duration> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(Duration(i));
  const DurationSummary s = summarize(samples);
  EXPECT_EQ(s.count, 100U);
  EXPECT_EQ(s.min.count(), 1);
  EXPECT_EQ(s.p50.count(), 50);
  EXPECT_EQ(s.p90.count(), 90);
  EXPECT_EQ(s.p95.count(), 95);
  EXPECT_EQ(s.p99.count(), 99);
  EXPECT_EQ(s.p999.count(), 100);
  EXPECT_EQ(s.max.count(), 100);
  EXPECT_EQ(s.mean.count(), 50);
  EXPECT_EQ(s.deviation.count(), 28);  // sqrt((100 * 100 - 1) / 12) = 28.87
}

TEST(Summary, OfOneAndOfNone) {
  const DurationSummary one = summarize({Duration(7)});
  EXPECT_EQ(one.p50.count(), 7);
  EXPECT_EQ(one.p999.count(), 7);
  EXPECT_EQ(summarize({}).count, 0U);
}

TEST(CoreShares, BusyTimeOverTheWholeSpan) {
  const std::vector<device::JobRecord> records{
      job(1, 0b01, 0us, 0us, 5us), job(2, 0b11, 0us, 5us, 10us), job(3, 0b00, 0us, 0us, 50us)};
  const auto shares = core_shares(records, 3);
  ASSERT_EQ(shares.size(), 3U);
  EXPECT_DOUBLE_EQ(shares[0], 1.0);
  EXPECT_DOUBLE_EQ(shares[1], 0.5);
  EXPECT_DOUBLE_EQ(shares[2], 0.0);
  EXPECT_EQ(core_shares({}, 2), (std::vector<double>{0.0, 0.0}));
}

TEST(CoreShares, PartsOfAJobHaveTheirCoresForTheirOwnTime) {
  device::JobRecord record = job(1, 0b11, 0us, 0us, 10us);
  record.parts = std::make_shared<const std::vector<device::JobPart>>(std::vector<device::JobPart>{
      {0b01, TimePoint(0us), TimePoint(4us)}, {0b10, TimePoint(4us), TimePoint(10us)}});
  const auto shares = core_shares(std::vector{record}, 2);
  EXPECT_DOUBLE_EQ(shares[0], 0.4);
  EXPECT_DOUBLE_EQ(shares[1], 0.6);
}

TEST(Prometheus, CountersCarryHelpTypeAndEscapedLabels) {
  device::DeviceInfo info = three_cores();
  info.instance = "virtual:\"odd\"\\name\n\x1b";
  device::DeviceCounters counters;
  counters.submitted = 12;
  counters.busy = {1500ms, 0ms, 0ms};
  const std::string text = prometheus_text(info, counters);
  EXPECT_NE(text.find("# TYPE corelane_jobs_submitted_total counter\n"), std::string::npos);
  EXPECT_NE(
      text.find(
          "corelane_jobs_submitted_total{device=\"virtual:\\\"odd\\\"\\\\name\\n\\\\x1b\"} 12\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("core=\"core0\"} 1.500000000\n"), std::string::npos);
}

}  // namespace
}  // namespace corelane
