/// Who is told of jobs that end and of events: observers, and the device's trace.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lanes/records/job_trace.h"
#include "lanes/records/observer_ring.h"

namespace corelane::lanes {

class Aftermath;

/// Plain data, no lock of its own: part of the LaneTable.
class JobRecords {
 public:
  explicit JobRecords(std::size_t cores) : trace_(cores) {}

  /// False: add() of a record does nothing.
  bool on() const noexcept { return on_; }
  void add(const device::JobRecord& record, Aftermath& after);
  void add(const device::Event& event, Aftermath& after);

  /// See JobTrace.
  void start_trace(std::size_t capacity);
  const JobTrace& trace() const noexcept { return trace_; }
  void add_observer(std::shared_ptr<ObserverRing> observer);
  void remove_observer(const ObserverRing* observer);

 private:
  void update() noexcept { on_ = trace_.on() || !observers_.empty(); }

  bool on_ = false;
  JobTrace trace_;
  std::vector<std::shared_ptr<ObserverRing>> observers_;
};

}  // namespace corelane::lanes
