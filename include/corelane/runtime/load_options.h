/// How a program is loaded, and how an ONNX model given instead is compiled.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corelane/base/clock.h"
#include "corelane/device/figures.h"
#include "corelane/onnx/import_options.h"
#include "corelane/program/batch_range.h"
#include "corelane/program/verify.h"

namespace corelane {

namespace device {
class Device;
class HostOperatorTable;
}  // namespace device

class Program;

/// How a program is loaded; the defaults suit most uses.
struct LoadOptions {
  /// Device text; empty: CORELANE_DEVICE, else "virtual:rk3588". Ignored when `on` is set.
  std::string device;
  std::shared_ptr<device::Device> on;
  device::Precision precision = device::Precision::kF32;
  bool fast_math = false;
  /// The engine that computes it, of a device with several (device::DeviceInfo::engines). Empty:
  /// the device's own, or the one that computes the network rightly, and the faster one where both
  /// do. kInvalidArgument for a name that the device does not have.
  std::string engine;
  /// Begin on the engine that is ready soonest, time the engines against each other once the
  /// program has run a few times (it may run on either one meanwhile), and go on with the faster
  /// one; off: the device's own engine from the beginning. `CORELANE_TIME_ENGINES=0` switches it
  /// off for a process.
  bool time_engines = true;
  /// Give shapes that come back a static form of their own beside the open one, made in the
  /// background and kept where it is faster; of programs with open dimensions, without shape sets
  /// and without a batch range. All that they take counts against `replicate_limit`.
  /// `CORELANE_STATIC_FORMS=0` switches it off for a process.
  bool static_forms = true;
  bool profile_layers = false;
  std::vector<std::string> exposed_values;
  /// Operators by type; may be filled later.
  std::shared_ptr<device::HostOperatorTable> host_operators;
  /// As device::PrepareOptions::replicate_limit, which says what it means. Of a program with a
  /// batch range, or with static forms of open shapes, these forms count against it too; 0: one
  /// form serves all. Where each shape is prepared when it is asked for (a network in parts, a
  /// device without open dimensions), the constants of all forms but one count, and the least
  /// recently used form goes; 0: a network in parts keeps that of its last shapes.
  std::size_t replicate_limit = device::kReplicateLimit;
  /// As ProgramDescription::batch_range, of a program that was compiled without one but leaves
  /// dimension 0 of its inputs open and nothing else, or to serve fewer sizes than it was compiled
  /// for. kInvalidArgument for others.
  std::optional<BatchRange> batch_range;
  Verify verify = Verify::kHeader;
  /// Which network of a program file of several, by its name; empty: the first. kNotFound names
  /// those there are; kInvalidArgument for files of other kinds.
  std::string part;
  /// ONNX given instead of a program file: how it is compiled in memory.
  ImportOptions import;
  /// Use the compile cache on disk (`CORELANE_CACHE_DIR`; `CORELANE_CACHE=0` switches it off).
  bool cache = true;
  /// Where a program that was compiled without its constants takes them from: one of the same
  /// constants, such as the same network for another input size. Ignored otherwise.
  std::shared_ptr<const Program> weights_of;
  /// How the caller names `weights_of`, for messages. Empty: LoadOptions::weights_of.
  std::string weights_option;
  /// The load fails with kTimeout where it has not come to its last step by then, which is the
  /// preparing by the device's engine; 0: none. Looked at between steps, each of which comes to its
  /// end: an engine that prepares cannot be stopped within the process.
  Duration load_timeout = std::chrono::minutes(10);
  /// Bytes that the network may need at the same time: its constants and, as far as its shapes say,
  /// its inputs, outputs and inner values. One that needs more fails with kOutOfMemory before an
  /// engine sees it. An estimate, which no engine is held to. 0: as much as the machine has, or the
  /// control group of the process is allowed.
  std::uint64_t load_memory = 0;
  /// As device::QueueOptions::weight, of all contexts together.
  double weight = 1;
  /// As device::QueueOptions::timeout_option. Empty: RunOptions::timeout.
  std::string timeout_option;
};

}  // namespace corelane
