/// A lease: cores of a named device instance held by a lock that the kernel releases when the
/// holder dies. Works between threads and between processes. Residences take them where the
/// device's text says lease=1.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"

namespace corelane::device {

/// Held until destroyed. Move-only. A child that is forked does not hold it too: its copy of the
/// object is empty, and the cores are free when the parent gives them back or ends.
class CORELANE_API Lease {
 public:
  /// Takes exactly the cores of a mask, or any free ones of `count` (platform: all). `total` is
  /// how many cores the instance has. kOutOfCores at once when they are not free, with the process
  /// that holds them; kIo when the lock folder (`CORELANE_RUN_DIR`, else `$XDG_RUNTIME_DIR`, else
  /// the temporary directory) cannot be used.
  static Result<Lease> acquire(const std::string& instance, std::size_t total,
                               const CoreSet& cores);
  /// A core that a process holds.
  struct Holder {
    std::size_t core = 0;
    std::string process;  ///< Its number, as text; "unknown" where the lock file does not say.
  };
  /// Who has leases of this instance now, by core; this process's own too. kIo when a lock file
  /// cannot be read. Any thread.
  static Result<std::vector<Holder>> holders(const std::string& instance, std::size_t total);
  /// Takes over; the other one holds nothing.
  Lease(Lease&&) noexcept;
  /// Gives back what it held, then takes over.
  Lease& operator=(Lease&&) noexcept;
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
