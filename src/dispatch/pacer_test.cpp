#include "dispatch/pacer.h"

#include <gtest/gtest.h>

#include <vector>

namespace corelane::dispatch {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TimePoint at(Duration d) { return TimePoint{} + d; }

TEST(Pacer, AverageOfTheContract) {
  Pacer pacer(1);
  for (const int ms : {10, 20, 20}) pacer.sample(milliseconds(ms));
  EXPECT_NEAR(static_cast<double>(pacer.average().count()) / 1e6, 10.98, 0.01);
}

TEST(Pacer, NothingIsPacedBeforeTheFirstSample) {
  Pacer pacer(1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pacer.admit(at(microseconds(i))), at(microseconds(i)));
    pacer.submitted(at(microseconds(i)));
  }
  pacer.sample(milliseconds(20));
  EXPECT_EQ(pacer.admit(at(milliseconds(1))), at(microseconds(20099)));
}

TEST(Pacer, IntervalIsTheAverageOverTheCores) {
  for (const auto& [cores, us] :
       std::vector<std::pair<std::size_t, int>>{{1, 20000}, {2, 10000}, {3, 6666}}) {
    Pacer pacer(cores);
    pacer.sample(milliseconds(20));
    std::vector<Duration> gaps;
    TimePoint now{};
    TimePoint last{};
    for (int i = 0; i < 31; ++i) {
      now = pacer.admit(now);
      pacer.submitted(now);
      if (i > 0) gaps.push_back(now - last);
      last = now;
    }
    for (const Duration gap : gaps)
      EXPECT_EQ(std::chrono::duration_cast<microseconds>(gap).count(), us);
  }
}

TEST(Pacer, ALateSubmissionIsNotMadeUpFor) {
  Pacer pacer(1);
  pacer.sample(milliseconds(10));
  pacer.submitted(at(Duration{}));
  EXPECT_EQ(pacer.admit(at(milliseconds(35))), at(milliseconds(35)));
  pacer.submitted(at(milliseconds(35)));
  EXPECT_EQ(pacer.admit(at(milliseconds(36))), at(milliseconds(45)));
}

TEST(Pacer, ZeroTimesAreSamplesToo) {
  Pacer pacer(1);
  pacer.sample(Duration{0});
  pacer.sample(milliseconds(20));
  EXPECT_EQ(pacer.average(), milliseconds(1));
}

}  // namespace
}  // namespace corelane::dispatch
