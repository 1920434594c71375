#include "scheduler/stages/contrast_instances.h"

#include <charconv>

#include "scheduler/stages/stage_maker.h"

namespace corelane::scheduler {

Result<std::shared_ptr<Stage>> ContrastInstances::make(std::uint32_t index) const {
  Config own = config_;
  own[kThreadIndex] = std::to_string(index);
  CORELANE_ASSIGN(std::shared_ptr<Stage> made,
                  make_stage(own, "ContrastInstances::backend", "InstanceThread", surroundings_));
  CORELANE_TRY(made->init(own, shared_));
  return made;
}

Status ContrastInstances::init(const Config& config, const SharedDict& shared) {
  if (instance(0) != nullptr) return initialised_before("ContrastInstances");
  config_ = config;
  shared_ = shared;
  std::uint32_t count = 1;
  if (const auto found = config.find("instance_num"); found != config.end()) {
    const std::string& text = found->second;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (fault != std::errc{} || end != text.data() + text.size() || count == 0 || count > 1024)
      return error(Code::kInvalidArgument, "instance_num is '{}'; allowed is 1 to 1024", text);
  }
  Instances made;
  for (std::uint32_t i = 0; i < count; ++i) {
    CORELANE_ASSIGN(std::shared_ptr<Stage> one, make(i));
    const std::vector<Topology::Group> groups = one->groups();
    if (groups.size() != 1 || groups[0].instances != 1)
      return error(Code::kInvalidArgument, "a stage in ContrastInstances must have one instance");
    if (i == 0) {
      facts_ = groups[0];
      // The first speaks for all: they are made with the same settings.
      repeatable_ = one->repeatable_group(0);
    } else if (groups[0].range != facts_.range) {
      return error(Code::kInvalidArgument,
                   "instance {} of backend '{}' takes {} to {} items, instance 0 {} to {}; the "
                   "instances of a group must be equal",
                   i, facts_.backend, groups[0].range.min, groups[0].range.max, facts_.range.min,
                   facts_.range.max);
    }
    made.push_back(std::move(one));
  }
  const MutexLock lock(mutex_);
  instances_ = std::move(made);
  return {};
}

std::vector<Topology::Group> ContrastInstances::groups() const {
  Topology::Group group = facts_;
  const MutexLock lock(mutex_);
  if (instances_.empty()) return {};
  group.instances = static_cast<std::uint32_t>(instances_.size());
  return {group};
}

std::shared_ptr<Stage> ContrastInstances::instance(std::uint32_t index) const {
  const MutexLock lock(mutex_);
  return index < instances_.size() ? instances_[index] : nullptr;
}

Status ContrastInstances::start(StageCall call) {
  const std::shared_ptr<Stage> one = instance(call.instance);
  if (one == nullptr)
    return error(Code::kOutOfRange, "there is no instance {} of backend '{}'", call.instance,
                 facts_.backend);
  // The stage of one instance knows one group with one instance, as init() has checked.
  call.group = 0;
  call.instance = 0;
  return one->start(std::move(call));
}

Status ContrastInstances::resize(std::uint32_t /*group*/, std::uint32_t instances) {
  std::uint32_t count = 0;
  {
    const MutexLock lock(mutex_);
    count = static_cast<std::uint32_t>(instances_.size());
  }
  Instances more;
  // Without the lock: init() of a backend may take long. The count holds, since a node changes its
  // settings one at a time (NodeCore::reconfigure).
  for (std::uint32_t i = count; i < instances; ++i) {
    CORELANE_ASSIGN(std::shared_ptr<Stage> one, make(i));
    more.push_back(std::move(one));
  }
  Instances gone;  // Destroyed after the lock: their threads are joined.
  const MutexLock lock(mutex_);
  for (auto& one : more) instances_.push_back(std::move(one));
  while (instances_.size() > instances) {
    gone.push_back(std::move(instances_.back()));
    instances_.pop_back();
  }
  return {};
}

}  // namespace corelane::scheduler
