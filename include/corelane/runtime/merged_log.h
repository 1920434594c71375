/// One log of host and devices: lines ordered by the time of what they tell, not of their arrival.
///
///     MergedLogOptions options;
///     options.devices = {device};
///     options.on_line = [](const MergedLine& line) { print(line); };
///     auto merged = MergedLog::create(std::move(options)).value();
///     log::set_callback([merged](log::Level level, std::string_view part, std::string_view text) {
///       merged.write(level, part, text);
///     });  // This copy keeps the log until there is another callback.
///
/// A line waits for earlier ones until the window has passed since its stamp, so that lines are
/// delivered in the order of their stamps where none is later than the window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/log.h"
#include "corelane/base/status.h"

namespace corelane {

namespace device {
class Device;
}
namespace runtime {
class MergedLogCore;
}

/// One line of a merged log.
struct MergedLine {
  TimePoint stamp{};  ///< Of the log's clock: when it was written, or a device says it happened.
  log::Level level = log::Level::kInfo;
  std::string part;  ///< As written; for a device's line its instance, "virtual:rk3588#0".
  std::string text;
  bool from_device = false;
};

/// How a merged log is made.
struct MergedLogOptions {
  /// Gets each line, from one thread, one line at a time, with no lock held. It may call any
  /// function; an exception is dropped and goes to the log, but not to this one.
  std::function<void(const MergedLine&)> on_line;
  /// How long a line waits for earlier ones, 0 to an hour.
  Duration window = std::chrono::seconds(2);
  /// Bytes that waiting lines may take, each with some 150 bytes besides its texts; 4 KiB to 1 GiB.
  /// A line that finds no room is dropped and counted.
  std::size_t memory = std::size_t{16} << 20;
  /// Each with its own log (kInfo), resets and losses (kWarn), and returns (kInfo). They are kept
  /// open.
  std::vector<std::shared_ptr<device::Device>> devices;
  /// The clock of stamps and window. Null: the first device's, or real_clock() without a device.
  std::shared_ptr<Clock> clock;
};

/// A cheap handle; copies stand for the same log, which ends with the last of them: what waits is
/// delivered then, and that end waits for it, unless it comes in a callback of the library. In a
/// forked child nothing is written or delivered. Any thread.
class CORELANE_API MergedLog {
 public:
  /// Stands for no log: write() does nothing.
  MergedLog() = default;
  /// kInvalidArgument (no function, a window or memory out of range, a device that is null or on
  /// another virtual clock), kIo where the system gives no thread, and those of Device::observe.
  static Result<MergedLog> create(MergedLogOptions options);

  /// A line of the host, stamped now. Any level; kOff is dropped. Does not wait for on_line.
  void write(log::Level level, std::string_view part, std::string_view text) const;
  /// Delivers at once what was written, and what devices wrote, before; false when `until` came
  /// first, in a callback of the library, and for no log. Lines with earlier stamps that come after
  /// that are late.
  bool flush(TimePoint until = kNever) const;
  /// Lines that were dropped, those of devices included, because there was no room.
  std::uint64_t dropped() const;

 private:
  struct Owner;
  explicit MergedLog(std::shared_ptr<Owner> owner) : owner_(std::move(owner)) {}
  std::shared_ptr<Owner> owner_;
};

}  // namespace corelane
