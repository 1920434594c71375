/// Which of two executables of a program is faster: both repeat a run of the program, beside its
/// own ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"
#include "corelane/tensor/shape.h"

namespace corelane::device {
class Device;
class Executable;
}  // namespace corelane::device

namespace corelane::runtime {

/// A run on each engine, or the median of a block of runs.
struct EnginePair {
  Duration first{};
  Duration other{};
};

/// How runs take the device's cores: one, several cores for one run, or each a run of its own at
/// the same time. Engines that are equally fast on one core may differ where others work beside it,
/// since cores share caches.
enum class TimedOn : std::uint8_t { kNothing, kOneCore, kSeveralCores, kEachCore };

/// What time_in_turns() gives.
struct TimedPairs {
  std::vector<EnginePair> pairs;
  TimedOn on = TimedOn::kNothing;
};

/// True once `pairs` are enough: 21 in 20 ms, or 5 in 60 ms, or 3 in 400 ms, or 1 in 2 s; `spent`
/// is all their time.
bool is_enough(std::size_t pairs, Duration spent) noexcept;
/// The time of the other engine by that of the first one, at the median of the pairs. 1 without
/// pairs, and where a run took no time.
double median_ratio(std::span<const EnginePair> pairs);
/// The other engine has to win by 3 percent: less is not worth a change.
inline constexpr double kWorthAChange = 0.97;
/// By 40 percent where runs take less than 200 us: some networks pass each run on to a thread of
/// their engine, which costs 10 us in a trial and up to 45 us in the program's own runs, as the
/// kernel places the threads.
inline constexpr double kWorthAShortChange = 0.6;
/// Which of the two holds for what was timed.
double worth_a_change(std::span<const EnginePair> pairs);
/// Where one engine takes less of the other's time than this, neither further blocks nor a trial
/// beside other runs would change the verdict.
inline constexpr double kClear = 0.8;

/// One run of the program, which both engines repeat.
struct TimedRun {
  /// The content of an input as it was bound for one run.
  struct Input {
    Shape shape;
    ByteVector bytes;
  };
  std::vector<Input> inputs;
  device::CoreSet cores;    ///< As trial_cores() gives them, or those at work for runs at once.
  std::size_t at_once = 1;  ///< Runs at the same time, where each takes one core.
  std::int32_t priority = 0;

  TimedOn kind() const noexcept;
};

/// The program runs on the other executable from now on, or on the first one again; where this
/// fails, on what it ran before.
using UseEngine = std::function<Status(bool other)>;

/// Two executables of a program, and the run that both repeat, as further callers of the device.
/// Their inputs lie in other memory each time.
struct Comparison {
  device::Device& device;
  std::string name;                           ///< Of the program.
  std::shared_ptr<device::Executable> first;  ///< In use.
  std::shared_ptr<device::Executable> other;
  TimedRun run;                   ///< Its inputs are read only.
  std::function<bool()> stopped;  ///< Asked before each two turns, and each run of a block.
};

/// Runs both in turns, right after one another, until is_enough(). A turn of runs below 1 ms is
/// several of them. One run at a time on one core where several are seldom idle together, or cannot
/// be had, or the device lets too few jobs wait. kCancelled once it is stopped.
Result<TimedPairs> time_in_turns(Comparison& of);

/// Runs both in blocks of runs of the same one, while the program uses it too: each has in the
/// caches what it would have if it stayed in use. Five blocks of each; two where both say that one
/// takes less than 0.8 of the other's time, three where all say the same by 3 percent, fewer where
/// three seconds are over. The last block may leave the other one in use, also where this fails.
/// `on`: as time_in_turns() could run them. No `use`: the program does not run. kBusy where there
/// was no time for a block of each, kCancelled, or what `use` and the engines fail with.
Result<std::vector<EnginePair>> time_in_blocks(Comparison& of, TimedOn on, const UseEngine& use);

/// What time_engines() gives.
struct TimedEngines {
  double ratio = 1;       ///< The time of the other engine by that of the first one.
  double needed = 1;      ///< worth_a_change()
  std::size_t pairs = 0;  ///< Of runs or blocks.
  TimedOn on = TimedOn::kNothing;
};
/// In turns, and in blocks where these do not tell: unless one engine takes about half of the
/// other's time or less, the runs are longer than 25 ms, or their cores cannot be had. What is in
/// use afterwards: as for time_in_blocks(). Where cores or memory are lacking with the first one in
/// use, the turns stand.
Result<TimedEngines> time_engines(Comparison& of, const UseEngine& use);

}  // namespace corelane::runtime
