/// Finding and opening devices by a text such as "virtual:rk3588".
///
/// Grammar: `kind[:profile][?key=value[&key=value]...]`, for instance `virtual:generic:4`,
/// `null:rk3588?a=1ms&b=2ms`, `virtual:rk3588?name=left`. Besides the options of its driver, every
/// device of lanes (all of the tree) takes these:
///   memory=256M   bytes that its buffers, executables and bindings may hold together, with k, M or
///                 G for 2^10, 2^20, 2^30; beyond them kOutOfMemory. No limit by default
///   depth=64      jobs that may wait at a time, for cores or fences; beyond them kBusy. No limit
///                 by default
///   lease=1       residences take leases of their cores, so that they are held for this process
///                 among all that open a device of the same kind, profile and name with lease=1. 0
///                 by default
/// Devices are built in (the list of
/// CORELANE_DRIVERS at build time) or shared objects `libcorelane_<kind>.so`, looked for in
/// `CORELANE_DRIVER_PATH` (colon-separated), then beside the library (in `corelane/0.3/`, which has
/// major and minor version, `corelane/`, and the same two in `../lib/`). They are opened RTLD_LOCAL
/// at the first use.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/base/file.h"
#include "corelane/base/status.h"
#include "corelane/device/fault.h"

namespace corelane::device {

class Device;

/// A device's text, taken apart.
struct DeviceSpec {
  std::string kind;
  std::string profile;  ///< Everything between the first ':' and '?', may hold ':'.
  std::map<std::string, std::string> options;
  /// The text again, options in order of their keys. Any thread.
  std::string to_string() const;
};
/// Reads the grammar above; does not look whether there is such a device. kInvalidArgument with the
/// text and an example.
CORELANE_API Result<DeviceSpec> parse_device_spec(std::string_view text);

/// Device texts divided by ';', such as "virtual:rk3588?name=left;virtual:rk3588?name=right";
/// blanks around them and a ';' at the end are not part of them. Empty for an empty list. `source`
/// names what holds the list, for messages. kInvalidArgument for a text that is not a device, and
/// for one that is there twice, which would be one device with two numbers. Any thread.
CORELANE_API Result<std::vector<std::string>> parse_device_list(std::string_view list,
                                                                std::string_view source);

/// How a device is opened.
struct OpenOptions {
  std::shared_ptr<Clock> clock;             ///< Null: the real clock.
  std::shared_ptr<FaultPoint> fault_point;  ///< Null: from CORELANE_FAULTS, else none.
  /// False: one device per complete text in this process, shared by all that open it (so they share
  /// cores). True, or with a clock or fault point: an instance of its own.
  bool own_instance = false;
  /// Wraps the device so that each argument is checked once. Leave on.
  bool validate = true;
};

/// The text that is opened where neither the caller nor `CORELANE_DEVICE` names a device: the first
/// kind of CORELANE_DRIVERS with its first profile, "virtual:rk3588". Any thread.
CORELANE_API std::string default_device();

/// Opens `spec`; an empty text means `CORELANE_DEVICE`, and without it default_device(). A text may
/// leave out the profile: "virtual" and "virtual:rk3588" are one device. Two devices open at the
/// same time; of callers with one text, one opens it and the others wait. Any thread.
/// kNotFound (unknown kind, with the known ones and where modules were looked for),
/// kInvalidArgument (profile, option), kVersionMismatch (a module of another build), kIo.
CORELANE_API Result<std::shared_ptr<Device>> open_device(std::string_view spec = {},
                                                         const OpenOptions& options = {});

/// A driver that can be opened here.
struct DriverInfo {
  std::string kind;
  std::string origin;                 ///< "built in" or the path of the module.
  std::vector<std::string> profiles;  ///< Examples of texts that open.
};
/// Built-in drivers and the modules that were found, by kind. No device or engine is opened; a
/// module from outside the tree is loaded for its description, and listed with its kind alone where
/// that fails. Any thread.
CORELANE_API std::vector<DriverInfo> list_drivers();

/// How the files begin that drivers take as they are: those of all drivers, in the order of the
/// drivers' kinds. Opens what list_drivers() opens. Any thread.
CORELANE_API std::vector<FileMagic> list_file_magics();

}  // namespace corelane::device
