/// The settings of one node, read and checked. All functions from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/scheduler/backend.h"
#include "scheduler/plan/composite.h"

namespace corelane::scheduler {

/// When a batch that is not full leaves the line.
enum class Batching : std::uint8_t {
  kIdle,     ///< As soon as an instance is idle.
  kFull,     ///< batching_timeout after its oldest request, as the original does.
  kLearned,  ///< As kIdle, but for a wait that pays by the learned rate, within batching_timeout.
};

/// What happens to a request that finds the line full.
enum class QueuePolicy : std::uint8_t { kBlock, kReject, kDropOldest };

/// What `deadlines` says.
enum class Deadlines : std::uint8_t {
  kPredict,  ///< A request that S(n) says will be late is refused, or dropped before its batch.
  kExpire,   ///< A request ends when its time has come, not earlier.
};

/// What happens to a request of more items than one call takes.
enum class Oversize : std::uint8_t { kSplit, kRefuse };

/// One part of `&`.
struct GroupSettings {
  /// The settings that its instances get, without kThreadIndex: all of the node, of a value with
  /// `&` this group's part, `A[B]` expanded (expansion.h).
  Config config;
  std::uint32_t instance_num = 1;
  bool padding = false;
};

struct NodeSettings {
  std::string name = "model";
  /// The scheduler itself: "BaselineSchedule", or what Interpreter::backend or PipelineV3::backend
  /// say. `A[B]` is expanded: settings has A::backend = B.
  std::string scheduler;
  /// All of the node, globals included, `&` as written. The scheduler's expressions are expanded,
  /// and `backend`, too, where there is one group.
  Config settings;
  std::vector<GroupSettings> groups;
  Batching batching = Batching::kIdle;
  Duration batching_timeout = std::chrono::milliseconds(2);
  Plan plan = Plan::kGreedy;
  Deadlines deadlines = Deadlines::kPredict;
  Oversize oversize = Oversize::kSplit;
  QueuePolicy queue_policy = QueuePolicy::kBlock;
  std::uint32_t max_batch = 0;                       ///< A lower max of every group; 0: none.
  std::uint64_t queue_items = 65536;                 ///< 0: no limit.
  std::uint64_t queue_bytes = 0;                     ///< 0: no limit.
  std::uint64_t max_in_flight = 0;                   ///< Items that wait or run; 0: no limit.
  Duration ageing = std::chrono::milliseconds(100);  ///< What one level of priority is worth.
  bool isolate = true;
  double weight = 1;           ///< Share of the device's time among programs.
  std::size_t records = 1024;  ///< Batches that are remembered.
};

/// Reads the settings of a node, global ones and its own together (key_table.h has all keys).
/// kInvalidArgument names key, what was given, what is allowed, and the nearest key where it is
/// unknown; kUnsupported: a key of pipelines of several nodes.
Result<NodeSettings> read_settings(const Config& config, const BackendRegistry& registry);

/// `changes` applied to `settings`: only the keys that Pipeline::reconfigure allows, and none that
/// changes the number of groups. Fails as read_settings().
Result<NodeSettings> change_settings(const NodeSettings& settings, const Config& changes,
                                     const BackendRegistry& registry);

}  // namespace corelane::scheduler
