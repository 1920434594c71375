/// What the handles of one program share.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/program/description.h"
#include "corelane/runtime/program.h"
#include "runtime/program/executable_set.h"
#include "runtime/program/load_limits.h"

namespace corelane {

/// Immutable after load, but for the executables (which guard themselves) and counters.
struct ProgramState {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Queue> queue;
  ProgramDescription description;
  std::vector<std::string> parts;  ///< Of the file that it was loaded from.
  std::shared_ptr<device::HostOperatorTable> host_operators;
  std::optional<runtime::ExecutableSet> executables;  ///< Refers to `description`.
  runtime::KnownWork work;                            ///< For Program::work().
  /// Applied where a run asks for "any": the program's own wish, as far as the device can.
  device::CoreSet default_cores;
  /// Bytes of buffers that contexts hold beyond the device's own; shared with the buffers, which
  /// an abandoned job may keep longer than the program lives.
  std::shared_ptr<std::atomic<std::size_t>> context_bytes =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::unique_ptr<ProgramState> dropped_before;  ///< Of those that end late (LateEnds).
};

}  // namespace corelane
