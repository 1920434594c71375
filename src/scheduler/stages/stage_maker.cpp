#include "scheduler/stages/stage_maker.h"

#include "scheduler/stages/instance_thread.h"

namespace corelane::scheduler {

Result<std::unique_ptr<Stage>> make_stage(const Config& config, std::string_view key,
                                          std::string_view otherwise,
                                          const BackendSurroundings& surroundings) {
  const auto found = config.find(key);
  const std::string name(found == config.end() ? otherwise : std::string_view(found->second));
  auto made = surroundings.names->make(name, surroundings);
  if (!made) return error(made.error().wrap(fmt::format("setting '{}'", key)));
  if (auto* const stage = dynamic_cast<Stage*>(made->get())) {
    (void)made->release();
    return std::unique_ptr<Stage>(stage);
  }
  return std::make_unique<InstanceThread>(surroundings, std::move(*made), name);
}

Failure initialised_before(std::string_view name) {
  return error(Code::kWrongState, "'{}' was initialised before; make another one", name);
}

}  // namespace corelane::scheduler
