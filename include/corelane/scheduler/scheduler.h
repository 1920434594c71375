/// A pipeline: one node, which gathers the requests of many callers into batches and spreads them
/// over the instances of a backend.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/scheduler/backend.h"
#include "corelane/scheduler/request.h"
#include "corelane/scheduler/statistics.h"

namespace corelane::scheduler {

class NodeCore;
class NodeHandle;
struct TicketState;

/// Surroundings of a pipeline. The defaults: real time, the registry of the process.
struct PipelineOptions {
  std::shared_ptr<Clock> clock;               ///< Null: real_clock().
  const BackendRegistry* registry = nullptr;  ///< Null: backend_registry(). Outlives the pipeline.
  SharedDict shared;                          ///< Null: an empty one for each `&` group.
};

/// A submitted request. A cheap handle; dropping it does not cancel the request. Any thread. In a
/// forked child a request of the parent that had not ended is kCancelled, with kWrongState.
class CORELANE_API Ticket {
 public:
  /// Its number in the pipeline, from 1: for Pipeline::why().
  std::uint64_t id() const noexcept;
  /// Where it stands.
  RequestState state() const;
  /// Whether it has ended.
  bool done() const;
  /// Waits until it has ended, and says how: ok, or why not (Pipeline::run). kTimeout with the
  /// detail "limit" when `until` came first and the request goes on.
  Status wait(TimePoint until = kNever) const;
  /// Removes it from the line: true, and it has ended with kCancelled. Of one that runs, asks the
  /// backend to leave it out (Request::cancelled): false.
  bool cancel() const;
  /// Its values, once: with "result" where it succeeded. Those of a request that was answered
  /// while a backend still had them are lost. kWrongState before it has ended.
  Result<Dict> take() const;

 private:
  friend class NodeCore;
  friend class Pipeline;
  std::shared_ptr<TicketState> state_;
};

/// The end of a request that run() did not wait for: put a std::shared_ptr<Event> into it under the
/// key "event". For one request. Any thread.
class CORELANE_API Event {
 public:
  /// Whether its request has ended.
  bool done() const;
  /// As Ticket::wait(); kWrongState before it was given to a pipeline.
  Status wait(TimePoint until = kNever) const;
  /// As Ticket::take().
  Result<Dict> take() const;

 private:
  friend class Pipeline;
  static Result<std::shared_ptr<Event>> take_from(Dict& request);
  std::atomic<bool> used_{false};
  std::atomic<bool> given_{false};
  Ticket ticket_;  ///< Once it was given.
};

/// How shutdown() treats the requests that are there.
enum class Shutdown : std::uint8_t {
  kDrain,   ///< Nothing enters; what is there ends as usual.
  kCancel,  ///< What waits is cancelled; what runs ends as usual.
  kAbort,   ///< What waits is cancelled; what runs is answered with kCancelled at once.
};

/// Its last handle ends it as shutdown(kCancel) does, and waits for the running batches and the
/// callbacks. In a callback it does not wait for callbacks; in forward() of its backend, and where
/// a request that holds it is destroyed in a thread of a pipeline or of the clock, for nothing:
/// another thread ends it then. Any thread.
class CORELANE_API Pipeline {
 public:
  /// A node of these settings (docs/apis/scheduler.md lists them). kInvalidArgument names the key,
  /// what was given and what is allowed; else what init() of a backend failed with. No thread is
  /// left after a failure.
  static Result<Pipeline> create(const Config& config, const PipelineOptions& options = {});
  /// The same from TOML: global settings and one table. Errors of settings name line, column and
  /// key; those that a backend finds in its init() name the backend.
  static Result<Pipeline> from_toml(std::string_view text, const PipelineOptions& options = {});
  /// The same from a file. kNotFound, kIo; kMalformed for a folder or more than 1 MiB.
  static Result<Pipeline> from_file(const std::string& path, const PipelineOptions& options = {});

  /// Runs `request` and waits: ok if and only if it has "result" afterwards. kOutOfRange without
  /// "data", or for more items than a call can take and that cannot be split; kBusy when the line
  /// is full (the detail "limit" says of what); kTimeout; kCancelled; kBadResult when the backend
  /// left "result" out; kOutOfMemory; else the backend's failure with its name. With an Event under
  /// "event" it returns at once, and takes the values. kWrongState in forward() of the same
  /// pipeline.
  Status run(Dict& request, const RequestOptions& options = {}) const;
  /// Submits all in order, and waits for all. One answer for each. Throws std::bad_alloc, before it
  /// submits any, where memory for the list of answers is missing.
  std::vector<Status> run(std::span<Dict> requests, const RequestOptions& options = {}) const;
  /// Returns at once, or, where the line is full and `queue_policy` is "block", when it has
  /// entered. `on_done` is called once, in a thread of the pipeline that calls one at a time; what
  /// it throws goes to the log. A request that cannot enter has ended already: the ticket says why.
  /// Nor can one with an "event", which is for run().
  /// Where there was no memory for a ticket of its own that is kOutOfMemory, its number 0, and
  /// `on_done` is not called.
  Ticket submit(Dict request, const RequestOptions& options = {},
                std::function<void(const Ticket&)> on_done = {}) const;

  /// The fewest items of a request: 1.
  std::uint32_t min() const noexcept;
  /// The most items of a request: all, where it can be split; else those of the largest call.
  std::uint32_t max() const noexcept;
  /// Which instances there are.
  Topology topology() const;

  /// Changes settings of a running pipeline: `batching`, `batching_timeout`, `max_batch`,
  /// `instance_num`, limits of the line, `plan`, `deadlines`, `isolate`. No request is lost. All
  /// or nothing: kInvalidArgument, or what init() of a new instance failed with.
  Status reconfigure(const Config& changes) const;
  /// Waits until nothing waits or runs; kTimeout when `until` came first.
  Status drain(TimePoint until = kNever) const;
  /// Ends it; later requests end with kCancelled. Waits for the running batches (until `until`:
  /// kTimeout). A second call may be stronger than the first.
  Status shutdown(Shutdown how, TimePoint until = kNever) const;

  /// Exact figures since its start.
  Statistics statistics() const;
  /// The same in Prometheus' text format.
  std::string prometheus_text() const;
  /// The last batches, oldest first: at most `records` of the settings.
  std::vector<BatchRecord> records() const;
  /// The last batches in the format of chrome_trace() (corelane/runtime/trace.h): a track for each
  /// of the first 64 instances.
  std::string chrome_trace() const;
  /// Why a request ended when and how it did: kNotFound for one that left the records.
  Result<std::string> why(std::uint64_t id) const;

 private:
  void run_all(std::span<Dict> requests, const RequestOptions& options, std::span<Status> answers,
               std::span<std::shared_ptr<TicketState>> tickets) const noexcept;
  std::shared_ptr<NodeHandle> node_;
};

}  // namespace corelane::scheduler
