#include "scheduler/node/baseline_schedule.h"

#include <algorithm>

#include "scheduler/stages/stage_maker.h"

namespace corelane::scheduler {

/// Waits for the calls that run, and for the callbacks of their answers. Whoever is in one of them
/// leaves the end to another thread (NodeHandle).
BaselineSchedule::~BaselineSchedule() {
  if (core_ == nullptr) return;
  (void)core_->shutdown(Shutdown::kCancel, kNever);
  core_->end_callbacks();
}

namespace {

/// A user's stage may get this wrong, and its node would then wait without end.
Status check_groups(const std::vector<Topology::Group>& groups) {
  if (groups.empty()) return error(Code::kInvalidArgument, "the stage below has no groups");
  for (const Topology::Group& group : groups)
    if (group.range.min == 0 || group.range.max < group.range.min || group.instances == 0)
      return error(Code::kInvalidArgument,
                   "a group of backend '{}' has {} instances for {} to {} items a call; allowed is "
                   "1 instance or more, and 1 <= min <= max",
                   group.backend, group.instances, group.range.min, group.range.max);
  return {};
}

/// A stage may have groups of its own; it must not have other ones than the settings say.
Status check_parts(const std::vector<Topology::Group>& groups, const NodeSettings& settings) {
  const std::string stage = groups.front().backend;
  if (groups.size() < settings.groups.size())
    return error(Code::kInvalidArgument,
                 "the settings have {} parts of '&', and the stage below BaselineSchedule has {} "
                 "groups (of '{}'); write one value for each group, or leave "
                 "BaselineSchedule::backend out for Fusion, which makes a group of each part",
                 settings.groups.size(), groups.size(), stage);
  if (!settings.settings.contains("instance_num")) return {};
  for (std::size_t g = 0; g < settings.groups.size(); ++g)
    if (groups[g].instances != settings.groups[g].instance_num)
      return error(Code::kInvalidArgument,
                   "key 'instance_num': given {} for group {}, in which the stage of '{}' has {}; "
                   "leave the key out, or name ContrastInstances, which makes so many",
                   settings.groups[g].instance_num, g + 1, stage, groups[g].instances)
          .with(Detail::kKey, "instance_num")
          .with(Detail::kGiven, settings.groups[g].instance_num)
          .with(Detail::kAllowed, groups[g].instances);
  return {};
}

/// One group at least has to take the requests of one item.
Status check_single_items(const std::vector<Topology::Group>& groups,
                          const NodeSettings& settings) {
  std::uint32_t least = UINT32_MAX;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::uint32_t min = groups[g].range.min;
    if (min == 1 || (g < settings.groups.size() && settings.groups[g].padding)) return {};
    least = std::min(least, min);
  }
  return error(Code::kInvalidArgument,
               "key 'min': no group takes a single item (the smallest min is {}), so that a "
               "request might wait without end; add a group with min = 1 by '&', or set "
               "padding = true",
               least)
      .with(Detail::kKey, "min");
}

}  // namespace

Status BaselineSchedule::init(const Config& config, const SharedDict& shared) {
  if (core_ != nullptr) return initialised_before("BaselineSchedule");
  Config own = config;
  own.erase(kThreadIndex);  // Of an instance that holds this scheduler.
  CORELANE_ASSIGN(NodeSettings settings, read_settings(own, *surroundings_.names));
  CORELANE_ASSIGN(std::unique_ptr<Stage> stage,
                  make_stage(own, "BaselineSchedule::backend", "Fusion", surroundings_));
  CORELANE_TRY(stage->init(own, shared));
  const std::vector<Topology::Group> groups = stage->groups();
  CORELANE_TRY(check_groups(groups));
  CORELANE_TRY(check_parts(groups, settings));
  CORELANE_TRY(check_max_batch(groups, settings));
  CORELANE_TRY(check_single_items(groups, settings));
  core_ = std::make_shared<NodeCore>(std::move(settings), std::move(stage), surroundings_.clock);
  return {};
}

/// The values go into the line and come back with the answer. A request that is cancelled meanwhile
/// leaves the line at its next decision.
Status BaselineSchedule::forward(std::span<const RequestPtr> batch) {
  if (core_ == nullptr)
    return error(Code::kWrongState, "'BaselineSchedule' was called before init()");
  if (core_->inside())
    return error(Code::kWrongState, "a backend that calls its own scheduler would deadlock");
  std::vector<TicketPtr> tickets;
  for (const RequestPtr& request : batch)
    tickets.push_back(
        core_->submit(std::move(request->values), request->options, nullptr, request));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Status status = tickets[i]->wait(kNever);
    batch[i]->values = std::move(tickets[i]->values);
    // One that was cancelled has no result, which says enough.
    const bool unwanted = status.code() == Code::kCancelled && batch[i]->cancelled();
    if (!status.ok() && !unwanted) batch[i]->fail(std::move(status));
  }
  return {};
}

}  // namespace corelane::scheduler
