/// What the objects of a device hold, against the device's limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

#include "corelane/base/status.h"

namespace corelane::lanes {

/// Bytes alone: who holds them is known to the objects. Without a limit nothing is counted. Any
/// thread; no lock.
class MemoryLedger {
 public:
  /// `limit` in bytes; 0: none.
  MemoryLedger(std::string device, std::size_t limit) : device_(std::move(device)), limit_(limit) {}

  bool limited() const noexcept { return limit_ != 0; }
  /// Counts `bytes` for `what` ("a buffer"). kOutOfMemory, with the limit, what is in use and what
  /// was asked for, counts nothing.
  Status take(std::size_t bytes, std::string_view what);
  void give_back(std::size_t bytes) noexcept;
  /// Whether take() would succeed now.
  Status check(std::size_t bytes, std::string_view what) const;
  /// What is there already has been measured: counted in any case, refused as take() does.
  Status correct(std::size_t before, std::size_t now, std::string_view what);

 private:
  Status refuse(std::size_t held, std::size_t bytes, std::string_view what) const;

  const std::string device_;
  const std::size_t limit_;
  std::atomic<std::size_t> held_{0};
};

}  // namespace corelane::lanes
