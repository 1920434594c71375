/// Several devices as one, for a network that was cut into a chain of parts.
#pragma once

#include <memory>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"

namespace corelane {

namespace device {
class Device;
}

/// A device that runs a chain of parts (`corelane compile --cut`), part k on `devices[k]`; one of
/// them may stand at several places. LoadOptions::on takes it. A chain that is loaded on any other
/// device runs all of its parts there.
///
/// One inference is one job: it has one deadline, and one record from its first start to its last
/// end, with the times of its parts (JobRecord::parts); while a part of it runs on one device,
/// parts of others run on the rest. Its cores are those of all devices, in the order in which they
/// first stand in `devices`: a mask names cores of each, "any N" and the platform's choice are of
/// each. Where a device is lost, so is this one: what is on its way ends with kDeviceLost, and the
/// other devices go on. It is back when all are.
///
/// Memory is the host's: imports of descriptors are kUnsupported with several devices. Inner values
/// have one size for each size of the inputs: open dimensions are fixed before a part is prepared.
///
/// kInvalidArgument (fewer than two places, no device, a chain itself, devices on several clocks,
/// more than 64 cores together). Any thread.
CORELANE_API Result<std::shared_ptr<device::Device>> chain_devices(
    std::vector<std::shared_ptr<device::Device>> devices);

}  // namespace corelane
