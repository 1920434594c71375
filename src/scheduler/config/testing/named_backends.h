/// A registry of names and keys for tests of settings: its backends are never made.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "corelane/scheduler/backend.h"

namespace corelane::scheduler::testing {

/// SyncTensor and S (backend), TensorrtTensor (model, device), Identity, a (k), b, Mine (speed).
inline std::unique_ptr<BackendRegistry> named_backends() {
  auto registry = std::make_unique<BackendRegistry>();
  const std::vector<std::pair<std::string, std::vector<std::string>>> all = {
      {"SyncTensor", {"backend"}},
      {"TensorrtTensor", {"model", "device"}},
      {"Identity", {}},
      {"S", {"backend"}},
      {"a", {"k"}},
      {"b", {}},
      {"Mine", {"speed"}}};
  for (const auto& [name, keys] : all) {
    static_cast<void>(registry->add(
        name, [](const BackendSurroundings&) { return std::unique_ptr<Backend>(); }, keys));
  }
  return registry;
}

/// The example of the original's documentation.
inline constexpr const char* kThreePrograms = R"([model]
model="batch1.onnx&batch4.onnx&batch8.onnx"
backend="SyncTensor[TensorrtTensor]" # or 'SyncTensor[TensorrtTensor]&SyncTensor[TensorrtTensor]'
instance_num = 2 # auto extend to '2&2&2'
min="1&4&8"
max="1&4&8"
)";

}  // namespace corelane::scheduler::testing
