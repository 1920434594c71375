/// The engine of the virtual NPU: OpenVINO behind the lanes of a LanedDevice.
#pragma once

#include <cstddef>
#include <memory>

#include "corelane/device/device.h"
#include "corelane/driver/lane_engine.h"

namespace corelane::device {
struct DriverDescription;
struct OpenedEngine;
struct OpenRequest;
const DriverDescription& describe_virtual();
}  // namespace corelane::device

namespace corelane::drivers::virtual_npu {

/// `lanes`: cores of the device. Nothing is loaded before the first prepare(). `direct`: small
/// networks run without OpenVINO (direct_network.h); tests of the way through it switch that off.
std::shared_ptr<device::LaneEngine> make_virtual_engine(std::size_t lanes, bool direct = true);

/// Opens the device with its description completed. kInvalidArgument for an option it does not
/// know. Any thread; never throws.
Result<device::OpenedEngine> open_virtual_engine(const device::OpenRequest& request);

}  // namespace corelane::drivers::virtual_npu
