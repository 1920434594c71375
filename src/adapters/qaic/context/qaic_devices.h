/// Devices by their numbers: `CORELANE_QAIC_DEVICES`, a list of device texts divided by ";";
/// without it one "virtual:aic100". All functions from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "QAicApi.h"
#include "corelane/base/status.h"

namespace corelane::device {
class Device;
}

namespace corelane::qaic {

/// The device texts, in the order of their numbers. kInvalidArgument for a text that names no
/// device.
Result<std::vector<std::string>> device_texts();
/// The device of this number, which is opened by the first who asks and shared while anyone has it.
/// kNotFound, for QS_NODEV, says which numbers there are.
Result<std::shared_ptr<device::Device>> open_device(QID number);

/// For tests: number 0, 1, ... are these instead, until it is called with none.
void set_devices(std::vector<std::shared_ptr<device::Device>> devices);

}  // namespace corelane::qaic
