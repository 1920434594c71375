/// One round: calls of one door while allocations fail, and what became of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace corelane::allocation {

struct Tally {
  std::atomic<int> taken{0};     ///< Calls that the library accepted.
  std::atomic<int> answered{0};  ///< Of those, the ones that ended, well or not.
  std::atomic<int> refused{0};   ///< Calls that it did not accept.
  std::atomic<int> wrong{0};     ///< Answers twice, wrong results, a door that works no more.

  /// `what` holds, else it is wrong, and printed.
  void expect(bool holds, const char* what) noexcept;
};

struct Plan {
  std::string device;  ///< Its text.
  double share = 0;    ///< Of the allocations that fail.
  std::uint64_t seed = 0;
};

// Each begins and ends the failing itself, and uses its door afterwards once more.
void session_round(const Plan& plan, Tally& tally);
void rknn_round(const Plan& plan, Tally& tally);
void exec_round(const Plan& plan, Tally& tally);
void set_round(const Plan& plan, Tally& tally);
void scheduler_round(const Plan& plan, Tally& tally);
/// Devices are opened, programs loaded and contexts made while allocations fail.
void load_round(const Plan& plan, Tally& tally);
/// Programs are loaded through the compile cache, whose entries come and go.
void cache_round(const Plan& plan, Tally& tally);

}  // namespace corelane::allocation
