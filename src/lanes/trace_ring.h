/// The last records of one lane.
#pragma once

#include <cstddef>
#include <vector>

#include "corelane/device/completion.h"

namespace corelane::lanes {

/// A ring of job records; not safe for threads.
class TraceRing {
 public:
  /// Keeps the last `capacity` records from now on; 0 keeps none.
  void resize(std::size_t capacity) {
    records_.clear();
    records_.reserve(capacity);
    capacity_ = capacity;
    next_ = 0;
  }
  void add(const device::JobRecord& record) {
    if (records_.size() < capacity_) {
      records_.push_back(record);
    } else if (capacity_ != 0) {
      records_[next_] = record;
      next_ = (next_ + 1) % capacity_;
    }
  }
  /// In no order.
  const std::vector<device::JobRecord>& records() const noexcept { return records_; }

 private:
  std::vector<device::JobRecord> records_;
  std::size_t capacity_ = 0;
  std::size_t next_ = 0;
};

}  // namespace corelane::lanes
