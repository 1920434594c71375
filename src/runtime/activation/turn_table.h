/// Whose turn it is on cores that several activations want, and which jobs may go. Plain data, no
/// lock, no clock: each function takes the time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "corelane/device/figures.h"
#include "corelane/runtime/turn_group.h"

namespace corelane::runtime {

/// The rules are those of turn_group.h. A member is an activation, known by its number; a job is a
/// number above all that were given before.
class TurnTable {
 public:
  TurnTable(Duration slice, Duration longest_wait) : slice_(slice), longest_wait_(longest_wait) {}

  std::size_t join(std::uint64_t core_bits, const TurnOptions& options);
  /// It has no jobs left. Its turn ends.
  void leave(std::size_t member) { members_.erase(member); }
  /// How many members have this core.
  std::size_t members_on(std::size_t core) const;

  /// A job that wants to go.
  void arrive(std::size_t member, std::uint64_t job, std::int32_t priority, TimePoint now);
  /// It has ended, or was withdrawn; a record without cores: it never ran.
  void end(std::size_t member, std::uint64_t job, const device::JobRecord& record);
  /// Begins and ends turns; the jobs that go, in their order.
  std::vector<std::uint64_t> decide(TimePoint now);
  /// When decide() comes to another answer though nothing has happened; kNever when it does not.
  TimePoint next_due() const;

  /// Whether the member has its turn.
  bool in_turn(std::size_t member) const { return members_.at(member).in_turn; }
  const TurnFigures& figures(std::size_t member) const { return members_.at(member).figures; }

 private:
  struct Member {
    std::uint64_t core_bits = 0;
    TurnOptions options;
    std::size_t window = 0;  ///< Jobs that may be in flight.
    std::map<std::uint64_t, std::pair<std::int32_t, TimePoint>> waiting;  ///< Priority, since.
    std::set<std::pair<std::int32_t, std::uint64_t>> order;  ///< Of those: priority negated, job.
    std::size_t in_flight = 0;
    Duration charged{};  ///< Core time that it has had, or let pass while it had no jobs.
    bool in_turn = false;
    TimePoint slice_end{};
    std::optional<TimePoint> candidate_since;
    std::uint64_t first_job = 0;       ///< Of the turn, while its start is not known; else 0.
    std::optional<TimePoint> free_at;  ///< When the turn's first job could have started.
    TurnFigures figures;

    /// Core time for the weight, in nanoseconds.
    double level() const noexcept { return static_cast<double>(charged.count()) / options.weight; }
    bool idle() const noexcept { return waiting.empty() && in_flight == 0; }
  };
  struct Candidate {
    bool overdue = false;
    Member* member = nullptr;
    std::size_t number = 0;
    bool before(const Candidate& other) const;
  };

  std::vector<Candidate> candidates(TimePoint now);
  static bool ready(const Member& member, TimePoint now);
  bool yields(const Member& holder, const Candidate& to, TimePoint now) const;
  bool cores_are_free(const Candidate& candidate, TimePoint now) const;
  void begin(const Candidate& candidate, TimePoint now);
  static void let_go(Member& member, std::vector<std::uint64_t>& going);
  static void note_start(Member& member, const device::JobRecord& record);

  struct Core {
    std::size_t last_member = 0;  ///< Number + 1; 0: nobody's yet.
    TimePoint last_end{};
  };

  const Duration slice_;
  const Duration longest_wait_;
  std::map<std::size_t, Member> members_;
  std::size_t last_number_ = 0;
  std::map<std::int32_t, double> levels_;  ///< By priority: the highest at which a job began.
  std::array<Core, device::CoreSet::kMaxCores> cores_;
};

}  // namespace corelane::runtime
