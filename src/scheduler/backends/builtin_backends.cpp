#include "scheduler/backends/builtin_backends.h"

#include <utility>
#include <vector>

#include "corelane/base/log.h"
#include "scheduler/backends/program_backend.h"

namespace corelane::scheduler {
namespace {

struct Builtin {
  std::string_view name;
  BackendRegistry::Maker maker;
  std::vector<std::string> keys;
};

std::vector<Builtin> all_builtins() {
  const auto sequential = [](std::string name) {
    return [name = std::move(name)](const BackendSurroundings& surroundings) {
      return make_sequential(name, surroundings);
    };
  };
  return {
      {"Identity", make_identity, {"min", "max"}},
      {"Sleep", make_sleep, {"a", "b", "min", "max"}},
      {"Faulty",
       make_faulty,
       {"fail_every", "throw_every", "leave_out_every", "fail_rate", "seed", "bad_item", "bad_how",
        "fail_init", "repeatable", "backend"}},
      {"Range", make_range, {"range", "backend"}},
      {"TensorrtTensor",
       make_program_backend,
       {"model", "device", "min", "max", "weight", "priority"}},
      {"SyncTensor", make_sync_tensor, {"backend"}},
      {"S", sequential("S"), {"backend"}},
      {"Sequential", sequential("Sequential"), {"backend"}},
  };
}

}  // namespace

void add_builtin_backends(BackendRegistry& registry) {
  for (Builtin& builtin : all_builtins()) {
    const Status added = registry.add(builtin.name, builtin.maker, std::move(builtin.keys));
    if (!added.ok()) log::write(log::Level::kError, "scheduler", added.to_string());
  }
}

}  // namespace corelane::scheduler
