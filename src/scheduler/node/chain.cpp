#include "scheduler/node/chain.h"

#include "scheduler/node/baseline_schedule.h"
#include "scheduler/stages/contrast_instances.h"
#include "scheduler/stages/fusion.h"
#include "scheduler/stages/instance_thread.h"

namespace corelane::scheduler {
namespace {

template <class T>
void add(BackendRegistry& registry, std::string_view name) {
  // A registry that has the name keeps the one of its user.
  (void)registry.add(
      name,
      [](const BackendSurroundings& surroundings) { return std::make_unique<T>(surroundings); },
      {"backend"});
}

}  // namespace

void add_chain(BackendRegistry& registry) {
  add<BaselineSchedule>(registry, "BaselineSchedule");
  add<Fusion>(registry, "Fusion");
  add<ContrastInstances>(registry, "ContrastInstances");
  add<InstanceThread>(registry, "InstanceThread");
}

}  // namespace corelane::scheduler
