/// The records of the last jobs of each core.
#pragma once

#include <vector>

#include "corelane/device/completion.h"

namespace corelane::lanes {

/// A ring of records for each core. Plain data, no lock: part of the LaneTable.
class JobTrace {
 public:
  explicit JobTrace(std::size_t cores) : rings_(cores) {}

  /// Keeps the last `capacity` records of each core from now on; 0 keeps none.
  void start(std::size_t capacity);
  bool on() const noexcept { return capacity_ != 0; }
  /// Adds the record of a job, which goes to the ring of each of its cores.
  void add(const device::JobRecord& record);
  /// Each job once, in order of start; kWrongState when it was never on.
  Result<std::vector<device::JobRecord>> read() const;

 private:
  struct Ring {
    std::vector<device::JobRecord> records;
    std::size_t next = 0;  ///< The oldest, once the ring is full.
  };
  std::vector<Ring> rings_;
  std::size_t capacity_ = 0;
  bool was_on_ = false;
};

}  // namespace corelane::lanes
