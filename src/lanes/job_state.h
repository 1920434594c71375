/// The states of a job and the ways between them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace corelane::lanes {

enum class JobState : std::uint8_t {
  kNew,         ///< Not submitted.
  kBlocked,     ///< Waits for fences.
  kCopyingIn,   ///< Its fences are signalled; its inputs are copied without the lock.
  kWaiting,     ///< In the line for cores.
  kGranted,     ///< Has cores; no thread runs it yet.
  kRunning,     ///< The engine has it.
  kCopyingOut,  ///< The engine is done; the result is copied to the caller's memory.
  kAbandoned,   ///< Has failed, but the engine still has its bindings.
  kDone,
};

/// The state of one job, which changes only along the ways listed here.
///
/// A blocking run goes from new to running; a job without fences goes from new to waiting or
/// granted, and back to new where the line has no room for it. Until it runs, a job may end at any
/// time except while its inputs are copied: its caller could then free memory that is being read.
/// From running it may go back to waiting once.
class JobProgress {
 public:
  JobState state() const noexcept { return state_; }
  bool is(JobState state) const noexcept { return state_ == state; }

  /// Goes to `next`; false, and nothing changes, when no way leads there.
  bool advance(JobState next) noexcept {
    if (!allows(next)) return false;
    if (next == JobState::kWaiting && state_ == JobState::kRunning) went_back_ = true;
    state_ = next;
    return true;
  }

 private:
  static constexpr unsigned to(JobState state) noexcept {
    return 1U << static_cast<unsigned>(state);
  }
  template <class... More>
  static constexpr unsigned to(JobState state, More... more) noexcept {
    return to(state) | to(more...);
  }
  bool allows(JobState next) const noexcept {
    using enum JobState;
    static constexpr unsigned kWays[] = {
        to(kBlocked, kWaiting, kGranted, kRunning, kDone),  // kNew
        to(kCopyingIn, kDone),                              // kBlocked
        to(kWaiting, kDone),                                // kCopyingIn
        to(kGranted, kDone, kNew),                          // kWaiting
        to(kRunning, kDone),                                // kGranted
        to(kCopyingOut, kAbandoned, kWaiting, kDone),       // kRunning
        to(kDone),                                          // kCopyingOut
        to(kDone),                                          // kAbandoned
        0,                                                  // kDone
    };
    if (next == kWaiting && went_back_) return false;
    return (kWays[static_cast<std::size_t>(state_)] & to(next)) != 0;
  }

  JobState state_ = JobState::kNew;
  bool went_back_ = false;
};

}  // namespace corelane::lanes
