#include "lanes/records/job_trace.h"

#include <algorithm>
#include <bit>

namespace corelane::lanes {

/// All memory is taken here: add() is on the way of each job and allocates nothing.
void JobTrace::start(std::size_t capacity) {
  capacity_ = capacity;
  was_on_ = was_on_ || on();
  for (Ring& ring : rings_) {
    ring = {};
    ring.records.reserve(capacity);
  }
}

void JobTrace::add(const device::JobRecord& record) {
  if (!on()) return;
  for (std::uint64_t bits = record.core_bits; bits != 0; bits &= bits - 1) {
    Ring& ring = rings_[static_cast<std::size_t>(std::countr_zero(bits))];
    if (ring.records.size() < capacity_) {
      ring.records.push_back(record);
    } else {
      // The ring is full: the oldest record goes.
      ring.records[ring.next] = record;
      ring.next = (ring.next + 1) % capacity_;
    }
  }
}

/// Records that were kept before tracing was switched off are gone, but reading them is not an
/// error.
Result<std::vector<device::JobRecord>> JobTrace::read() const {
  if (!was_on_)
    return error(Code::kWrongState, "tracing was never on; call set_trace(records_per_core)");
  std::vector<device::JobRecord> records;
  for (const Ring& ring : rings_)
    records.insert(records.end(), ring.records.begin(), ring.records.end());
  using Record = device::JobRecord;
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.started != b.started ? a.started < b.started : a.id < b.id;
  });
  const auto same = [](const Record& a, const Record& b) { return a.id == b.id; };
  // A job of several cores is in several rings. Sorting has put its records side by side.
  records.erase(std::unique(records.begin(), records.end(), same), records.end());
  return records;
}

}  // namespace corelane::lanes
