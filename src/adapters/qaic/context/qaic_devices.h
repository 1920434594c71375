/// Devices by their numbers: `CORELANE_QAIC_DEVICES`, a list of device texts divided by ";";
/// without it one "virtual:aic100". All functions from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/qaic/api/qaic_edge.h"

namespace corelane::device {
class Device;
}

namespace corelane::qaic {

/// The device texts, in the order of their numbers. kInvalidArgument for a text that is wrong, or
/// is there twice.
Result<std::vector<std::string>> device_texts();
/// The device of this number: the first call opens it, later calls share it while it is in use.
/// kNotFound, for QS_NODEV, says which numbers there are, or why the device cannot be opened.
Result<std::shared_ptr<device::Device>> open_device(QID number);
/// The same failure for a caller of the API: kNotFound is QS_NODEV.
Outcome device_outcome(Status status);
/// Whether residences on this device take leases, so that those of other processes count.
bool takes_leases(QID number);

/// For tests: number 0, 1, ... are these instead, until it is called with none.
void set_devices(std::vector<std::shared_ptr<device::Device>> devices);

}  // namespace corelane::qaic
