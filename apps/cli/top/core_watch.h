/// What `corelane top` shows of cores: two looks at them, and the table of what lies between.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "corelane/base/clock.h"
#include "corelane/device/lease.h"

namespace corelane::cli {

/// A core at one moment.
struct WatchedCore {
  std::string device;  ///< Its instance.
  std::size_t core = 0;
  std::optional<device::Lease::Holder> holder;  ///< None: nobody has it by a lease.
};

struct CoreLook {
  TimePoint at{};
  std::vector<WatchedCore> cores;
};

/// What happened on a core between two looks.
struct CoreRow {
  std::string device;
  std::size_t core = 0;
  std::string process, program;  ///< Empty: nobody.
  std::string set;               ///< The programs that reside there.
  std::optional<double> busy;    ///< Share of the time, 0 to 1; none without figures of one holder.
  std::optional<double> rate;    ///< Jobs a second.
  std::optional<std::uint64_t> jobs;
  std::optional<std::uint64_t> waiting;  ///< Of the holder, on all its cores.
};

/// A row for each core of `now`. A core whose holder is another one than before has no share yet.
std::vector<CoreRow> core_rows(const CoreLook& before, const CoreLook& now);

/// The cores that one process holds for one set of programs, together.
struct SetRow {
  std::string device, process, program, set;
  std::vector<std::size_t> cores;
  std::optional<double> busy;  ///< The mean of its cores.
  std::optional<double> rate;
  std::optional<std::uint64_t> waiting;
};
std::vector<SetRow> set_rows(const std::vector<CoreRow>& rows);

std::string watch_table(const std::vector<CoreRow>& rows);
Json watch_json(const std::vector<CoreRow>& rows, Duration period);

/// Looks at cores again and again, by the clock that it is given.
class CoreWatch {
 public:
  struct Hooks {
    std::function<Result<std::vector<WatchedCore>>()> look;
    /// The rows of a round, and the time between its looks.
    std::function<void(const std::vector<CoreRow>&, Duration)> show;
    std::function<bool()> stop;
    /// Returns when the clock says so, or earlier.
    std::function<void(TimePoint)> sleep;
  };
  CoreWatch(std::shared_ptr<Clock> clock, Hooks hooks)
      : clock_(std::move(clock)), hooks_(std::move(hooks)) {}

  /// So many rounds (0: until `stop`), each `period` after the one before. Fails as `look`.
  Status run(std::uint64_t rounds, Duration period);

 private:
  Result<CoreLook> look() const;
  /// False where `stop` came first.
  bool wait(TimePoint until) const;
  std::shared_ptr<Clock> clock_;
  Hooks hooks_;
};

}  // namespace corelane::cli
