/// The line of jobs that wait for cores, and the decision which of them is next.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/reserve.h"
#include "lanes/lane_cores.h"

namespace corelane::lanes {

class LanedJob;

/// Plain data, no lock: part of the LaneTable. The arbiter decides; what it cannot grant is not
/// granted. Joining and leaving the line does not fail.
class JobLine {
 public:
  /// A job that leaves the line, and its cores.
  struct Choice {
    std::shared_ptr<LanedJob> job;
    std::uint64_t core_bits = 0;
  };

  /// True when some wait whose queue has a cap.
  bool any_capped() const noexcept { return capped_ != 0; }
  /// When the first of those may start whose queue has used up its cap; kNever without one.
  TimePoint next_allowed(TimePoint now) const;

  bool empty() const noexcept { return jobs_.empty(); }
  std::size_t size() const noexcept { return jobs_.size(); }
  /// True when a user's arbiter decides.
  bool has_arbiter() const noexcept { return arbiter_ != nullptr; }
  /// Null: the first-in-first-out one.
  void swap_arbiter(std::shared_ptr<const device::Arbiter>& arbiter) noexcept {
    arbiter_.swap(arbiter);
  }

  /// What a user's arbiter grants a newcomer that nobody waits before; 0 when it must join the
  /// line.
  std::uint64_t grant_alone(const device::WaitingJob& facts, const LanedExecutable& executable,
                            const LaneCores& cores, TimePoint now,
                            SureVector<std::string>& complaints) const;

  /// `facts` is what the arbiter sees of `job`.
  void add(device::WaitingJob facts, std::shared_ptr<LanedJob> job);
  /// For a job that was in the line before: before all that were submitted later.
  void put_back(device::WaitingJob facts, std::shared_ptr<LanedJob> job);
  void remove(const LanedJob& job);
  /// Takes out the jobs for which `gone` holds.
  SureVector<std::shared_ptr<LanedJob>> remove_if(const std::function<bool(LanedJob&)>& gone);

  /// Takes out the next job that can start now; nullopt when none can. A user's arbiter that
  /// throws, or grants what cannot be had, is replaced for this decision; `complaints` says so.
  std::optional<Choice> next(const LaneCores& cores, TimePoint now,
                             SureVector<std::string>& complaints);

 private:
  void count(const LanedJob& job, bool joins) noexcept;
  void update(const device::Grant& grant, TimePoint now);
  Choice take(const device::Grant& grant);
  std::optional<device::Grant> decide(std::span<const device::WaitingJob> waiting,
                                      std::span<const device::CoreState> cores, TimePoint now,
                                      SureVector<std::string>& complaints) const;
  std::optional<device::Grant> decide_limited(const LaneCores& cores, TimePoint now,
                                              SureVector<std::string>& complaints) const;

  std::shared_ptr<const device::Arbiter> arbiter_;
  std::size_t capped_ = 0;                      ///< Jobs whose queue has a cap.
  SureVector<device::WaitingJob> waiting_;      ///< Of each of jobs_, in the same order.
  SureVector<std::shared_ptr<LanedJob>> jobs_;  ///< In order of submission.
};

}  // namespace corelane::lanes
