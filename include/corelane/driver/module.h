/// The face of a driver: what the library asks of one, built in or in a shared object.
///
/// A driver describes itself (chips, files, abilities) without loading anything, and opens either a
/// LaneEngine, which the library makes a device of, or a Device, where it has queues of its own. A
/// shared object exports `corelane_driver_module_v1`, which returns a static DriverModule. Both
/// sides are built from one version of this tree: `build` must be equal, otherwise the module is
/// refused (kVersionMismatch) before any C++ object crosses. One that lacks a function, or whose
/// description is of no device, is refused too (kIo). A module is never closed: threads and
/// objects of its devices run its code.
///
/// How to write one: CONTRIBUTING.md; a complete one outside the tree: examples/driver_outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "corelane/base/log.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/driver/lane_engine.h"

namespace corelane::device {

/// A chip that a driver presents: the profile in the device's text.
struct ChipRow {
  std::string name;            ///< "npu2"; lower case, digits, '_' and '-'.
  std::size_t cores = 1;       ///< 1 to CoreSet::kMaxCores.
  std::uint64_t clock_hz = 0;  ///< Of a core; 0 when unknown.
};

/// What a driver is, known without opening a device or loading an engine.
struct DriverDescription {
  std::string kind;  ///< First word of the device's text; the file is libcorelane_<kind>.so.
  /// At least one, unless most_generic_cores is not 0. The first is opened where the text names
  /// none.
  std::vector<ChipRow> chips;
  /// Takes "generic:N" with N from 1 to this, CoreSet::kMaxCores at most; 0: does not.
  std::size_t most_generic_cores = 0;
  /// Files that the driver takes as they are, beside ONNX models and program files.
  std::vector<FileMagic> files;
  /// What a device of this driver can do at most; one that is open may do less. "*" among the image
  /// kinds stands for the kinds of `files` of all drivers.
  Capabilities capabilities;
  std::vector<std::string> examples;  ///< Texts with options, for list_drivers().
  /// True: no device, but an engine that another driver opens. Not listed, and no device's text
  /// names it; of the members only `kind` counts.
  bool engine_only = false;
};

/// What a module that has its own copy of the library's base needs of the library's.
struct HostServices {
  log::Callback log;
  log::Level log_level = log::Level::kWarn;
};

/// The options of a device's text that the library reads itself for an engine of lanes, for a
/// driver's message about an unknown one. open_engine never sees them, open_device does.
inline constexpr const char* kLaneOptionNames = "memory, depth, lease";

/// A device to open. `spec` is complete: its profile is never empty, and is one of the description.
struct OpenRequest {
  DeviceSpec spec;
  /// Kind, profile, instance, cores, and the capabilities of the description.
  DeviceInfo info;
  std::shared_ptr<Clock> clock;  ///< Never null.
  /// May be null. For drivers that open a Device: ask it before each run. A LaneEngine is not
  /// concerned.
  std::shared_ptr<FaultPoint> fault_point;
  HostServices services;
};

/// A lane engine, and the request's `info` completed: `engine`, `isa`, and less capabilities where
/// this device has less.
struct OpenedEngine {
  DeviceInfo info;
  std::shared_ptr<LaneEngine> engine;
};

/// What a driver consists of. Immutable and static. The functions may be called from any thread, at
/// the same time, with no lock held, and never throw.
struct DriverModule {
  const char* build;  ///< CORELANE_DRIVER_BUILD of the module.
  /// The same object at each call.
  const DriverDescription& (*describe)();
  /// Opens a device of lanes; null where open_device is set. Fails with kInvalidArgument (an option
  /// of the text, with the known ones), kNotFound or kIo (a library that the driver needs), kBusy
  /// or kOutOfCores (hardware in use).
  Result<OpenedEngine> (*open_engine)(const OpenRequest& request);
  /// Opens a device that has queues of its own; null where open_engine is set. Fails alike.
  Result<std::shared_ptr<Device>> (*open_device)(const OpenRequest& request) = nullptr;
};

/// Version of the tree, revision of these headers, and compiler (its ABI and standard library).
#define CORELANE_DRIVER_BUILD CORELANE_VERSION_STRING "/8/" __VERSION__

using DriverModuleEntry = const DriverModule* (*)();
inline constexpr const char* kDriverModuleSymbol = "corelane_driver_module_v1";

}  // namespace corelane::device

/// Defined and exported by a module. Any thread; never throws, never null.
extern "C" CORELANE_API const corelane::device::DriverModule* corelane_driver_module_v1();
