/// A lease: cores of a named device instance held by a lock that the kernel releases when the
/// holder dies. Works between threads and between processes. Residences take them where the
/// device's text says lease=1.
///
/// The locks lie in one folder: `CORELANE_RUN_DIR`, else `$XDG_RUNTIME_DIR` where it belongs to
/// this user, else `corelane-run-<uid>` below the temporary directory. So each user has leases of
/// their own. Users share a device's leases where CORELANE_RUN_DIR names a folder of root that they
/// may write to and that has the sticky bit (mode 1777, or 1770 and a group). A folder of another
/// user, or one that others may write to without the sticky bit, is not used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"

namespace corelane::device {

/// How long to wait for a process that looks for cores at the same moment: some microseconds,
/// unless that process has been stopped.
struct LeaseWait {
  std::shared_ptr<Clock> clock = real_clock();
  Duration limit = std::chrono::seconds(1);
};

/// What the holder of a core says of its work there, for people who watch: its own word, some 100
/// ms old while it works, and older once it does not.
struct LeaseFigures {
  Duration busy{};         ///< The core was busy for so long, since the holder opened the device.
  std::uint64_t jobs = 0;  ///< Jobs that ended on the core since then.
  std::uint64_t waiting = 0;  ///< Jobs of the holder that wait for cores of the device.
  std::string programs;       ///< Names of those on the core, divided by commas.
};

/// Held until destroyed. Move-only. A child that is forked does not hold it too: its copy of the
/// object is empty, and the cores are free when the parent gives them back or ends.
class CORELANE_API Lease {
 public:
  /// Takes exactly the cores of a mask, or any free ones of `count` (platform: all). `total` is
  /// how many cores the instance has. kOutOfCores at once when they are not free, with the process
  /// that holds them; kBusy when another process has been looking for cores for `wait.limit`, with
  /// that process; kIo when the folder of the locks cannot be used or must not be trusted.
  static Result<Lease> acquire(const std::string& instance, std::size_t total, const CoreSet& cores,
                               const LeaseWait& wait = {});
  /// A core that a process holds. Who it is stands in the lock's file, by that process's own word:
  /// where users share a folder, for people to read, not to act on.
  struct Holder {
    std::size_t core = 0;
    std::string process;  ///< Its number, as text; "unknown" where the lock file does not say.
    std::string program;  ///< Its program, at most 32 bytes; empty where the file does not say.
    /// None where the file does not say.
    std::optional<LeaseFigures> figures;
  };
  /// Who has leases of this instance now, by core; this process's own too. kIo when a lock file
  /// cannot be read, or the folder must not be trusted. Any thread.
  static Result<std::vector<Holder>> holders(const std::string& instance, std::size_t total);
  /// Takes over; the other one holds nothing.
  Lease(Lease&&) noexcept;
  /// Gives back what it held, then takes over.
  Lease& operator=(Lease&&) noexcept;
  /// Writes into the lock of a core what holders() tells others: one system call. Programs are cut
  /// at 128 bytes. kInvalidArgument for a core that it does not hold, kIo. Any thread.
  Status publish(std::size_t core, const LeaseFigures& figures) const;
  /// Gives the cores back.
  ~Lease();
  /// The mask of the cores held.
  CoreSet cores() const noexcept;

 private:
  struct Impl;
  explicit Lease(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace corelane::device
