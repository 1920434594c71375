/// A device's text, held against the description of its driver.
#pragma once

#include "corelane/driver/module.h"

namespace corelane::device {

/// The text in the one form that is a key: "virtual" becomes "virtual:rk3588", "generic:04" becomes
/// "generic:4", and the name "0" of an instance, which is the default, goes. kInvalidArgument with
/// the known profiles.
Result<DeviceSpec> complete(const DriverDescription& driver, DeviceSpec spec);

/// What the description says of the device with a complete text. The instance, in leases and
/// traces, is "virtual:rk3588#0", or "#left" by `name=left`.
DeviceInfo describe(const DriverDescription& driver, const DeviceSpec& spec);

/// Texts that open devices of this driver.
std::vector<std::string> example_texts(const DriverDescription& driver);

}  // namespace corelane::device
