#include "runtime/activation/turn_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <random>

namespace corelane::runtime {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TimePoint at(int ms) { return TimePoint{} + milliseconds(ms); }

/// A table, the numbers of its jobs, and the time.
struct Turns {
  explicit Turns(int slice = 10, int longest_wait = 100)
      : Turns(milliseconds(slice), milliseconds(longest_wait)) {}
  Turns(Duration slice, Duration longest_wait) : table(slice, longest_wait) {}
  std::size_t join(std::uint64_t cores, const TurnOptions& options = {}) {
    return table.join(cores, options);
  }
  std::uint64_t arrive(std::size_t member, int now, std::int32_t priority = 0) {
    table.arrive(member, ++last, priority, at(now));
    return last;
  }
  std::vector<std::uint64_t> decide(int now) { return table.decide(at(now)); }
  void end(std::size_t member, std::uint64_t job, int started, int ended, std::uint64_t cores = 1) {
    device::JobRecord record;
    record.core_bits = cores;
    record.started = at(started);
    record.ended = at(ended);
    table.end(member, job, record);
  }
  TurnTable table;
  std::uint64_t last = 0;
};

TEST(TurnTable, OneJobAndTheNextForEachCoreGoAtATime) {
  Turns turns;
  const std::size_t one = turns.join(1);
  for (int i = 0; i < 3; ++i) turns.arrive(one, 0);
  EXPECT_THAT(turns.decide(0), ElementsAre(1, 2));
  EXPECT_THAT(turns.decide(0), IsEmpty());
  turns.end(one, 1, 0, 1);
  EXPECT_THAT(turns.decide(1), ElementsAre(3));
  const std::size_t two = turns.join(6);
  for (int i = 0; i < 5; ++i) turns.arrive(two, 1);
  EXPECT_THAT(turns.decide(1), ElementsAre(4, 5, 6, 7)) << "its cores are others";
}

TEST(TurnTable, JobsOfHigherPriorityGoFirst) {
  Turns turns;
  const std::size_t one = turns.join(1);
  turns.arrive(one, 0);
  turns.arrive(one, 0, 5);
  turns.arrive(one, 0, 5);
  EXPECT_THAT(turns.decide(0), ElementsAre(2, 3));
}

TEST(TurnTable, ATurnEndsWithItsJobsWhereAnotherWants) {
  Turns turns;
  const std::size_t one = turns.join(1);
  const std::size_t two = turns.join(1);
  turns.arrive(one, 0);
  EXPECT_THAT(turns.decide(0), ElementsAre(1));
  turns.arrive(two, 1);
  EXPECT_THAT(turns.decide(1), IsEmpty());
  turns.end(one, 1, 0, 3);
  EXPECT_THAT(turns.decide(3), ElementsAre(2));
  EXPECT_FALSE(turns.table.in_turn(one));
  EXPECT_EQ(turns.table.figures(two).longest_wait, milliseconds(2));
  turns.end(two, 2, 4, 5);
  turns.decide(5);
  EXPECT_TRUE(turns.table.in_turn(two)) << "nobody wants the core";
  turns.arrive(two, 7);
  EXPECT_THAT(turns.decide(7), ElementsAre(3));
  EXPECT_EQ(turns.table.figures(two).turns, 1U);
}

TEST(TurnTable, ASliceProtectsATurn) {
  Turns turns;
  const std::size_t low = turns.join(1);
  const std::size_t high = turns.join(1, {.priority = 5});
  for (int i = 0; i < 5; ++i) turns.arrive(low, 0);
  EXPECT_THAT(turns.decide(0), ElementsAre(1, 2));
  const std::uint64_t wants = turns.arrive(high, 1);
  turns.end(low, 1, 0, 9);
  EXPECT_THAT(turns.decide(9), ElementsAre(3));
  turns.end(low, 2, 9, 10);
  EXPECT_THAT(turns.decide(10), IsEmpty()) << "its slice is over, what was let go ends";
  turns.end(low, 3, 10, 12);
  EXPECT_THAT(turns.decide(12), ElementsAre(wants));
}

TEST(TurnTable, AThresholdWaitsForJobsOrForItsTimeout) {
  Turns turns;
  const std::size_t one = turns.join(1, {.threshold = 3, .timeout = milliseconds(20)});
  turns.arrive(one, 0);
  turns.arrive(one, 5);
  EXPECT_THAT(turns.decide(5), IsEmpty());
  EXPECT_EQ(turns.table.next_due(), at(20));
  EXPECT_THAT(turns.decide(20), ElementsAre(1, 2));
  EXPECT_EQ(turns.table.next_due(), kNever);
  const std::size_t two = turns.join(2, {.threshold = 3, .timeout = milliseconds(20)});
  for (int i = 0; i < 3; ++i) turns.arrive(two, 30);
  EXPECT_THAT(turns.decide(30), ElementsAre(3, 4));
}

TEST(TurnTable, TimesMayBeForEver) {
  Turns turns(Duration::max(), milliseconds(1000));
  const std::size_t low = turns.join(1);
  const std::size_t high =
      turns.join(1, {.threshold = 2, .timeout = Duration::max(), .priority = 5});
  turns.arrive(high, 5);
  EXPECT_THAT(turns.decide(5), IsEmpty());
  EXPECT_EQ(turns.table.next_due(), kNever);
  for (int i = 0; i < 4; ++i) turns.arrive(low, 5);
  EXPECT_THAT(turns.decide(5), ElementsAre(2, 3));
  turns.arrive(high, 6);
  turns.end(low, 2, 5, 20);
  EXPECT_THAT(turns.decide(20), ElementsAre(4)) << "its slice is not over";
}

TEST(TurnTable, AJobThatIsWithdrawnMakesNoCandidate) {
  Turns turns;
  const std::size_t one = turns.join(1);
  const std::size_t two = turns.join(1, {.threshold = 2, .timeout = milliseconds(50)});
  turns.arrive(one, 0);
  turns.decide(0);
  const std::uint64_t gone = turns.arrive(two, 1);
  turns.arrive(two, 1);
  turns.decide(1);
  turns.table.end(two, gone, {});
  turns.end(one, 1, 0, 2);
  EXPECT_THAT(turns.decide(2), IsEmpty());
  EXPECT_EQ(turns.table.next_due(), at(51));
  EXPECT_THAT(turns.decide(51), ElementsAre(3));
}

TEST(TurnTable, AWideCandidateIsNotPassedByNarrowOnes) {
  Turns turns(10, 1000);
  const std::size_t left = turns.join(0b01);
  const std::size_t right = turns.join(0b10);
  const std::size_t wide = turns.join(0b11, {.priority = 1});
  turns.arrive(left, 0);
  turns.arrive(right, 0);
  EXPECT_THAT(turns.decide(0), ElementsAre(1, 2));
  turns.arrive(wide, 1);
  turns.end(left, 1, 0, 12);
  EXPECT_THAT(turns.decide(12), IsEmpty());
  turns.arrive(left, 13);
  EXPECT_THAT(turns.decide(13), IsEmpty()) << "its core is kept for the wide one";
  turns.end(right, 2, 0, 15, 2);
  EXPECT_THAT(turns.decide(15), ElementsAre(3));
}

TEST(TurnTable, TheCostIsFromTheLastJobBeforeToTheFirstOfTheTurn) {
  Turns turns;
  const std::size_t one = turns.join(1);
  const std::size_t two = turns.join(1);
  turns.arrive(one, 0);
  turns.decide(0);
  turns.arrive(two, 1);
  turns.end(one, 1, 1, 5);
  turns.decide(5);
  turns.end(two, 2, 8, 9);
  EXPECT_EQ(turns.table.figures(one).switches, 0U) << "nobody had the core before";
  EXPECT_EQ(turns.table.figures(two).switches, 1U);
  EXPECT_EQ(turns.table.figures(two).cost_last, milliseconds(3));
  EXPECT_EQ(turns.table.figures(two).served, milliseconds(1));
  // Where the core was idle, from the moment when the turn was asked for.
  turns.arrive(one, 20);
  turns.decide(20);
  turns.end(one, 3, 21, 22);
  EXPECT_EQ(turns.table.figures(one).cost_last, milliseconds(1));
  turns.table.leave(two);
  EXPECT_EQ(turns.table.members_on(0), 1U);
}

/// Members that always have jobs, on one core that runs one job at a time: a device in a few lines.
class Saturated {
 public:
  Saturated(Turns& turns, const std::vector<TurnOptions>& members, Duration job, int depth)
      : turns_(turns), job_(job) {
    for (const TurnOptions& options : members) members_.push_back(turns_.join(1, options));
    for (int i = 0; i < depth; ++i)
      for (const std::size_t member : members_) submit(member, at(0));
  }
  void run_until(TimePoint end) {
    TimePoint now{};
    take(now);
    while (now < end && !line_.empty()) {
      const std::uint64_t job = line_.front();
      line_.pop_front();
      device::JobRecord record;
      record.core_bits = 1;
      record.started = now;
      now += job_;
      record.ended = now;
      const std::size_t member = owner_.at(job);
      turns_.table.end(member, job, record);
      take(now);
      submit(member, now);
      take(now);
    }
  }
  const TurnFigures& figures(std::size_t place) const {
    return turns_.table.figures(members_[place]);
  }

 private:
  void submit(std::size_t member, TimePoint now) {
    turns_.table.arrive(member, ++turns_.last, 0, now);
    owner_[turns_.last] = member;
  }
  void take(TimePoint now) {
    for (const std::uint64_t job : turns_.table.decide(now)) line_.push_back(job);
  }
  Turns& turns_;
  const Duration job_;
  std::vector<std::size_t> members_;
  std::map<std::uint64_t, std::size_t> owner_;
  std::deque<std::uint64_t> line_;
};

TEST(TurnTable, WeightsShareTheTime) {
  Turns turns(10, 500);
  Saturated load(turns, {{.weight = 1}, {.weight = 3}, {.weight = 2}}, milliseconds(1), 6);
  load.run_until(at(12000));
  EXPECT_NEAR(load.figures(0).served / milliseconds(1), 2000, 60);
  EXPECT_NEAR(load.figures(1).served / milliseconds(1), 6000, 60);
  EXPECT_NEAR(load.figures(2).served / milliseconds(1), 4000, 60);
}

TEST(TurnTable, ALowPriorityWaitsNoLongerThanTheBound) {
  constexpr int kSlice = 10;
  constexpr int kLongest = 80;
  constexpr int kJob = 3;
  Turns turns(kSlice, kLongest);
  Saturated load(turns, {{.priority = 9}, {.priority = 3}, {.priority = -5}}, milliseconds(kJob),
                 6);
  load.run_until(at(10000));
  // A slice, and the jobs in flight, of each other member; a job that began just before the end of
  // the slice is among these.
  const Duration bound = milliseconds(kLongest + 2 * (kSlice + 2 * kJob));
  for (const std::size_t place : {0U, 1U, 2U}) {
    EXPECT_LE(load.figures(place).longest_wait, bound) << place;
    EXPECT_GT(load.figures(place).turns, 50U) << place;
  }
  EXPECT_GT(load.figures(0).served, 2 * load.figures(2).served);
}

/// Members on any of four cores, with jobs at random: a device that runs what it is given at once
/// where a core of the member is free.
class Crowd {
 public:
  static constexpr int kSlice = 7;
  static constexpr int kLongest = 60;
  static constexpr int kLongestJob = 5;

  explicit Crowd(unsigned seed) : random_(seed), turns_(kSlice, kLongest) {
    const int count = draw(2, 6);
    for (int i = 0; i < count; ++i) {
      TurnOptions options;
      options.priority = draw(-2, 2);
      options.weight = draw(1, 4);
      options.threshold = static_cast<std::size_t>(draw(1, 3));
      options.timeout = milliseconds(options.threshold > 1 ? draw(1, 20) : 0);
      const auto cores = static_cast<std::uint64_t>(draw(1, 15));
      members_.push_back({turns_.join(cores, options), cores, {}, draw(1, 8)});
    }
  }
  /// One step of the time. Ends are seen before starts.
  void step(int now) {
    for (std::size_t c = 0; c < cores_.size(); ++c) finish(c, now);
    for (std::size_t m = 0; m < members_.size(); ++m)
      for (int i = 0; i < members_[m].load && draw(0, 20) < members_[m].load; ++i) {
        owner_[turns_.arrive(members_[m].number, now, draw(-1, 1))] = m;
        ++arrived_;
      }
    for (const std::uint64_t job : turns_.decide(now)) members_[owner_.at(job)].line.push_back(job);
    for (std::size_t c = 0; c < cores_.size(); ++c) start(c, now);
  }
  void check(std::size_t least_jobs) const {
    EXPECT_GT(ended_, least_jobs);
    EXPECT_LE(ended_, arrived_);
    const auto others = static_cast<int>(members_.size()) - 1;
    // A step is the grain of all times.
    const Duration bound = milliseconds(kLongest + others * (kSlice + 2 * kLongestJob + 2));
    for (const Member& member : members_)
      EXPECT_LE(turns_.table.figures(member.number).longest_wait, bound);
  }

 private:
  struct Member {
    std::size_t number;
    std::uint64_t cores;
    std::deque<std::uint64_t> line;
    int load;
  };
  struct Core {
    std::uint64_t job = 0;
    std::size_t member = 0;
    int started = 0, end = 0;
  };
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  void finish(std::size_t c, int now) {
    Core& core = cores_[c];
    if (core.job == 0 || core.end > now) return;
    turns_.end(members_[core.member].number, core.job, core.started, core.end,
               std::uint64_t{1} << c);
    core.job = 0;
    ++ended_;
  }
  /// On a core the jobs of one member run, and those of another once they have ended.
  void start(std::size_t c, int now) {
    if (cores_[c].job != 0) return;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      Member& member = members_[m];
      if (((member.cores >> c) & 1U) == 0 || member.line.empty()) continue;
      EXPECT_TRUE(turns_.table.in_turn(member.number));
      cores_[c] = {member.line.front(), m, now, now + draw(1, kLongestJob)};
      member.line.pop_front();
      return;
    }
  }
  std::mt19937 random_;
  Turns turns_;
  std::vector<Member> members_;
  std::array<Core, 4> cores_;
  std::map<std::uint64_t, std::size_t> owner_;
  std::size_t arrived_ = 0, ended_ = 0;
};

TEST(TurnTable, TheBoundHoldsForCoresAndJobsAtRandom) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Crowd crowd(seed);
    for (int now = 0; now < 4000; ++now) crowd.step(now);
    crowd.check(300);
  }
}

TEST(TurnTable, NobodySavesUpTimeWithoutJobs) {
  Turns turns(10, 10000);
  const std::size_t busy = turns.join(1);
  const std::size_t late = turns.join(1);
  int now = 0;
  for (int i = 0; i < 100; ++i, now += 10) {
    const std::uint64_t job = turns.arrive(busy, now);
    turns.decide(now);
    turns.end(busy, job, now, now + 10);
  }
  std::vector<std::uint64_t> going;
  for (int i = 0; i < 50; ++i) {
    turns.arrive(busy, now);
    turns.arrive(late, now);
  }
  // Both have jobs now: the one that comes late has no second of its own before the other.
  int served = 0;
  for (int step = 0; step < 20; ++step) {
    for (const std::uint64_t job : turns.decide(now)) going.push_back(job);
    ASSERT_FALSE(going.empty());
    const std::uint64_t job = going.front();
    going.erase(going.begin());
    const bool of_late = (job - 100) % 2 == 0;
    turns.end(of_late ? late : busy, job, now, now + 5);
    now += 5;
    served += of_late ? 1 : -1;
  }
  EXPECT_LE(std::abs(served), 6);
}

}  // namespace
}  // namespace corelane::runtime
