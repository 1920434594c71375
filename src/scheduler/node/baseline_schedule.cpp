#include "scheduler/node/baseline_schedule.h"

#include <algorithm>

#include "scheduler/stages/stage_maker.h"

namespace corelane::scheduler {

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

}  // namespace

Status BaselineSchedule::init(const Config& config, const SharedDict& shared) {
  if (core_ != nullptr) return initialised_before("BaselineSchedule");
  CORELANE_ASSIGN(NodeSettings settings, read_settings(config, *surroundings_.names));
  CORELANE_ASSIGN(std::unique_ptr<Stage> stage,
                  make_stage(config, "BaselineSchedule::backend", "Fusion", surroundings_));
  CORELANE_TRY(stage->init(config, shared));
  const std::vector<Topology::Group> groups = stage->groups();
  CORELANE_TRY(check_groups(groups));
  const auto takes_one = [&](const Topology::Group& group) {
    const auto g = static_cast<std::size_t>(&group - groups.data());
    return group.range.min == 1 || (g < settings.groups.size() && settings.groups[g].padding);
  };
  if (std::ranges::none_of(groups, takes_one)) {
    std::uint32_t least = UINT32_MAX;
    for (const Topology::Group& group : groups) least = std::min(least, group.range.min);
    return error(Code::kInvalidArgument,
                 "key 'min': no group takes a single item (the smallest min is {}), so that a "
                 "request might wait without end; add a group with min = 1 by '&', or set "
                 "padding = true",
                 least);
  }
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
