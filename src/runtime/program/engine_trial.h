/// Which of a device's engines computes a program faster: one is timed against the other, on the
/// program's own inputs, while the program runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/device/core_set.h"
#include "runtime/program/engine_timing.h"

namespace corelane::device {
class Device;
class Executable;
struct DeviceInfo;
}  // namespace corelane::device

namespace corelane::runtime {

/// Runs of a program before its engines are timed: what runs once or twice is not worth it.
inline constexpr std::uint32_t kRunsBeforeTrial = 8;
/// Runs in a row that take the device's cores otherwise than the engines were timed (see TimedOn),
/// before they are timed again; eight times as many before each further time, up to 4,096.
inline constexpr std::uint32_t kRunsBeforeAnother = 64;
/// Each of the runs at the same time takes memory on both engines; on other cores the program's own
/// ones go on.
inline constexpr std::size_t kMostAtOnce = 4;
/// One of so many runs of a context is looked at for that, and counts for all of them: it asks the
/// device which cores are busy.
inline constexpr std::uint32_t kRunsPerLook = 8;

/// True where users see no change between the executables: the types and shapes of inputs and
/// outputs are the same. An output that is open in both is known after a run only, so that it may
/// have other dimensions fixed in one of them.
bool described_alike(const device::Executable& a, const device::Executable& b);

/// What a trial came to, kept as data beside the compiled program.
struct EngineVerdict {
  std::string engine;     ///< The one that computes it; in DeviceInfo::engines.
  double ratio = 1;       ///< Median of its time by that of the other one.
  std::size_t pairs = 0;  ///< Of runs or blocks; none where the other refuses the program.
  TimedOn timed_on = TimedOn::kNothing;  ///< kNothing: not told, or not timed.

  /// For people: why this engine.
  std::string reason() const;
  /// "onnxruntime 0.81 21 one": engine, ratio, pairs, and "one", "several" or "each" for timed_on.
  std::string text() const;
  /// Nothing for another text.
  static std::optional<EngineVerdict> parse(std::string_view text);
};

/// For which devices a verdict in a program file holds: "OpenVINO 2026.4.1, corelane 0.3.0,
/// avx512". The library's version stands for that of the second engine, which it fixes.
std::string trial_tag(const device::DeviceInfo& info);
/// True where engines are timed: CORELANE_TIME_ENGINES may switch it off for the process.
bool engines_are_timed(bool wanted);

/// The trials of a program: one, and others where its runs take the cores otherwise later. Each
/// is made in a thread that lives while it lasts, and for some seconds more: until no context uses
/// the engine that lost, whose memory then goes back to the system. Any thread. The end of this
/// object waits for the calls of the engine that are under way.
class EngineTrial {
 public:
  struct Parts {
    std::shared_ptr<device::Device> device;
    std::string name;          ///< Of the program, for the log.
    std::string first_engine;  ///< In use.
    std::string other_engine;
    /// The executable in use. Called in the trial's thread, as the three below; without a lock.
    std::function<std::shared_ptr<device::Executable>()> first;
    /// Prepares the same on an engine that is not in use.
    std::function<Result<std::shared_ptr<device::Executable>>(const std::string& engine)>
        prepare_on;
    /// The program runs on it from now on. `is_tried`: it may have to leave again, so there has to
    /// be memory for it beside what contexts have. Not given where the program does not run.
    std::function<Status(const std::shared_ptr<device::Executable>&, bool is_tried)> use;
    /// Called with the verdict of each trial, after use(). Not called where the trial could not be
    /// made this time.
    std::function<void(const EngineVerdict&)> done;
  };

  /// `known`: of an earlier trial, which stands for the first one.
  explicit EngineTrial(Parts parts, const std::optional<EngineVerdict>& known = {});
  ~EngineTrial();
  EngineTrial(const EngineTrial&) = delete;
  EngineTrial& operator=(const EngineTrial&) = delete;

  /// False in a forked child: its runs are not noted, since the thread is the parent's.
  bool is_of_this_process() const noexcept;
  /// A run of the program begins, before over(). True once: for the run that has to hand its inputs
  /// to begin().
  bool note_run() noexcept;
  /// `runs` of this kind have begun, after over(). True where they make up as many in a row as a
  /// further trial needs: the inputs of the last one are handed to begin().
  bool note_runs(TimedOn kind, std::uint32_t runs) noexcept;
  /// Starts the trial; nothing while one is under way. Where it cannot be made the log says why,
  /// and the engine in use stays.
  void begin(TimedRun run);
  /// In place of begin(), where the inputs could not be copied: the first engine stays.
  void give_up(const Status& why) noexcept;
  /// True from the end of a trial to the begin of the next one.
  bool over() const noexcept;
  /// Waits until a trial that has begun is over. At once in a forked child, whose parent has the
  /// thread, and in that thread, where the log calls.
  void wait_idle();

 private:
  struct Core;
  std::shared_ptr<Core> core_;
  std::atomic<std::uint32_t> runs_;  ///< Before the first trial.
  /// In a row, of another kind than those timed.
  std::atomic<std::uint32_t> others_{0};
  std::atomic<std::uint32_t> before_another_{kRunsBeforeAnother};
};

/// Cores for a trial of what runs on `cores` of a device with `in_all`: as many, since engines
/// differ in what several cores gain them, but any. All of them are the platform's choice, which
/// leaves out those that others hold exclusively.
device::CoreSet trial_cores(const device::CoreSet& cores, std::size_t in_all) noexcept;

}  // namespace corelane::runtime
