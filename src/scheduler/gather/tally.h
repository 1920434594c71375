/// The counts and records of a node.
#pragma once

#include <deque>
#include <string>

#include "corelane/scheduler/request.h"
#include "corelane/scheduler/statistics.h"

namespace corelane::scheduler {

/// Exact counts and the last records. Not thread-safe.
class Tally {
 public:
  /// `sizes`: the largest size with a bucket of its own, at most kSizes.
  static constexpr std::uint32_t kSizes = 256;
  Tally(std::uint32_t largest, std::size_t records);

  void submitted() noexcept { ++figures_.submitted; }
  void entered(std::uint32_t items, std::uint64_t bytes) noexcept;
  /// Out of the line, for a backend or not.
  void left(std::uint32_t items, std::uint64_t bytes) noexcept;
  void runs() noexcept { ++figures_.running; }
  /// Back in the line, or answered.
  void stops() noexcept { --figures_.running; }
  void waited(Duration time) noexcept;
  /// It has ended like this; kWaiting and kRunning are not allowed.
  void ended(RequestState how) noexcept;
  void late() noexcept { ++figures_.late; }
  void batch(BatchRecord record);
  void keep(std::size_t records);

  const Statistics& figures() const noexcept { return figures_; }
  const std::deque<BatchRecord>& records() const noexcept { return records_; }

 private:
  Statistics figures_;
  std::deque<BatchRecord> records_;
  std::size_t kept_;
};

/// The figures in Prometheus' text format, of the node `name`.
std::string prometheus_of(const Statistics& figures, std::string_view name);

}  // namespace corelane::scheduler
