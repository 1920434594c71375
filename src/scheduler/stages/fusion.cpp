#include "scheduler/stages/fusion.h"

#include "scheduler/config/settings.h"
#include "scheduler/stages/stage_maker.h"

namespace corelane::scheduler {

Status Fusion::init(const Config& config, const SharedDict& shared) {
  if (!groups_.empty()) return initialised_before("Fusion");
  CORELANE_ASSIGN(const NodeSettings settings, read_settings(config, *surroundings_.names));
  std::vector<std::unique_ptr<Stage>> made;
  for (const GroupSettings& group : settings.groups) {
    CORELANE_ASSIGN(std::unique_ptr<Stage> one, make_stage(group.config, "Fusion::backend",
                                                           "ContrastInstances", surroundings_));
    // Where the user gave no dictionary, each group gets one of its own: a program that two groups
    // name is loaded twice.
    Status ready = one->init(group.config, shared != nullptr ? shared : std::make_shared<Dict>());
    if (!ready.ok())
      return settings.groups.size() == 1 ? ready
                                         : ready.wrap(fmt::format("group {} of {}", made.size() + 1,
                                                                  settings.groups.size()));
    if (one->groups().size() != 1)
      return error(Code::kInvalidArgument, "a stage in Fusion must have one group, not {}",
                   one->groups().size());
    made.push_back(std::move(one));
  }
  groups_ = std::move(made);
  return {};
}

std::vector<Topology::Group> Fusion::groups() const {
  std::vector<Topology::Group> all;
  for (const auto& group : groups_) all.push_back(group->groups().front());
  return all;
}

bool Fusion::repeatable_group(std::uint32_t group) const {
  return groups_[group]->repeatable_group(0);
}

Status Fusion::start(StageCall call) {
  if (call.group >= groups_.size())
    return error(Code::kOutOfRange, "there is no group {}; there are {}", call.group,
                 groups_.size());
  Stage& group = *groups_[call.group];
  // The stage of a group knows that one alone, as init() has checked.
  call.group = 0;
  return group.start(std::move(call));
}

Status Fusion::resize(std::uint32_t group, std::uint32_t instances) {
  if (group >= groups_.size())
    return error(Code::kOutOfRange, "there is no group {}; there are {}", group, groups_.size());
  return groups_[group]->resize(0, instances);
}

}  // namespace corelane::scheduler
