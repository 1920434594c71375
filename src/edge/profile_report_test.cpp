// The texts of profiling reports.
#include "edge/profile_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::edge {
namespace {

using std::chrono::nanoseconds;
using testing::EndsWith;
using testing::HasSubstr;

TimePoint at(std::int64_t ns) { return TimePoint(nanoseconds(ns)); }

ProfileReport report_of(const SetRecord& record) {
  ProfileReport made;
  made.programs = {std::make_shared<const ProfiledProgram>(ProfiledProgram{1, "net", {}, nullptr})};
  made.samples = {{made.programs.front(), record}};
  return made;
}

SetRecord whole_record() {
  SetRecord r;
  r.in_flight = 2;
  r.submitted = at(1'000'000);
  r.run.enqueued = at(1'000'001);
  r.run.copy_in = at(1'000'013);
  r.run.copied_in = at(1'000'113);
  r.job.queued = at(1'001'113);
  r.job.started = at(1'003'000);
  r.job.ended = at(1'503'000);
  r.job.queue_depth = 3;
  r.run.copy_out = at(1'513'050);
  r.run.copied_out = at(1'513'999);
  r.completed = at(1'600'000);
  r.collected = at(61'001'000'007);
  return r;
}

TEST(ProfileReport, LatencyRowHasExactMicrosecondsOfEachPart) {
  EXPECT_THAT(latency_report(report_of(whole_record())),
              EndsWith("\n1,3,2,2000.000,500.000,1.887,10.050,511.937,0.001,0.100,1.000,599.999,"
                       "0.000,597.000,0.949,61000000.007\n"));
}

TEST(ProfileReport, LatencyColumnIsZeroWhereTheInferenceDidNotCome) {
  SetRecord refused;
  refused.submitted = at(5'000);
  refused.completed = refused.collected = at(6'500);
  EXPECT_THAT(latency_report(report_of(refused)),
              EndsWith("\n1,0,0,0.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000,1.500,0.000,0.000,"
                       "0.000,1.500\n"));
}

TEST(ProfileReport, LatencyHeaderHasTheFiguresOfTheTotal) {
  EXPECT_THAT(latency_report(report_of(whole_record())),
              HasSubstr("Samples: 1 Dropped: 0\ntotalRoundtripTimeUs: mean 61000000.007"));
}

}  // namespace
}  // namespace corelane::edge
