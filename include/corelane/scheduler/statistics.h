/// What a scheduler counts, and its record of each batch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"

namespace corelane::scheduler {

/// How many items one call takes.
struct Range {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  /// Whether a call of so many items is allowed.
  bool holds(std::uint32_t items) const noexcept { return min <= items && items <= max; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Why a batch left the line when it did.
enum class Reason : std::uint8_t {
  kFull,      ///< As many items as a call takes.
  kIdle,      ///< An instance was idle.
  kTimeout,   ///< `batching_timeout` of its oldest request.
  kDeadline,  ///< A request would have been late.
  kFlush,     ///< The pipeline drains, or submissions wait for room in the line.
  kIsolate,   ///< A part of a batch that failed.
};
inline constexpr std::size_t kReasons = 6;
/// "full", "idle", ...
CORELANE_API std::string_view reason_name(Reason reason) noexcept;

/// The instances of a node.
struct Topology {
  struct Group {
    std::string backend;
    Range range;
    std::uint32_t instances = 0;
  };
  std::vector<Group> groups;  ///< One for each part of `&`.
  /// As many as the largest group has instances: virtual instance i is instance i of each group.
  std::uint32_t virtual_instances = 0;
  Range range;  ///< Of a virtual instance: min of mins, max of maxes.
};

/// One call of a backend.
struct BatchRecord {
  std::uint64_t id = 0;        ///< From 1.
  std::uint32_t group = 0;     ///< Of the topology.
  std::uint32_t instance = 0;  ///< In its group.
  std::uint32_t items = 0;
  std::uint32_t padding = 0;  ///< Items that were added to reach the group's min.
  Reason reason = Reason::kIdle;
  TimePoint oldest{};  ///< Submission of its oldest request.
  TimePoint started{};
  TimePoint ended{};
  Duration predicted{};  ///< Expected time of the call; 0: none was known.
  bool failed = false;
  std::vector<std::uint64_t> requests;
};

/// Exact counts. submitted = done + failed + rejected + cancelled + expired + waiting + running.
struct Statistics {
  std::uint64_t submitted = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t rejected = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t expired = 0;
  std::uint64_t waiting = 0;
  std::uint64_t running = 0;
  std::uint64_t waiting_items = 0;
  std::uint64_t waiting_bytes = 0;
  std::uint64_t batches = 0;  ///< Calls that have ended.
  std::uint64_t running_batches = 0;
  std::uint64_t batch_items = 0;  ///< Sum over the batches, without padding.
  std::uint64_t padding_items = 0;
  std::uint64_t late = 0;  ///< Answered as expired while a backend ran them.
  std::array<std::uint64_t, kReasons> reasons{};
  /// Batches by items: index is the size, the last one also holds all larger ones.
  std::vector<std::uint64_t> batch_sizes;
  /// Time in the line, of requests that left it for a backend: bucket i holds those of at most
  /// kQueueTimeBounds[i], the last one the rest.
  std::vector<std::uint64_t> queue_times;
  Duration queue_time_sum{};
  Duration busy_sum{};  ///< Of all instances.
};

/// Upper bounds of Statistics::queue_times.
inline constexpr std::array<Duration, 14> kQueueTimeBounds = {
    std::chrono::microseconds(50),  std::chrono::microseconds(100), std::chrono::microseconds(250),
    std::chrono::microseconds(500), std::chrono::milliseconds(1),   std::chrono::microseconds(2500),
    std::chrono::milliseconds(5),   std::chrono::milliseconds(10),  std::chrono::milliseconds(25),
    std::chrono::milliseconds(50),  std::chrono::milliseconds(100), std::chrono::milliseconds(250),
    std::chrono::milliseconds(500), std::chrono::seconds(1)};

}  // namespace corelane::scheduler
