/// The engine of the virtual NPU: OpenVINO behind the lanes of a LanedDevice.
#pragma once

#include <cstddef>
#include <memory>

#include "corelane/device/device.h"
#include "corelane/driver/lane_engine.h"

namespace corelane::drivers::virtual_npu {

/// `lanes`: cores of the device. Nothing is loaded before the first prepare(). `direct`: small
/// networks run without OpenVINO (direct_network.h); tests of the way through it switch that off.
std::shared_ptr<device::LaneEngine> make_virtual_engine(std::size_t lanes, bool direct = true);

/// Fills the engine's part of `info`: name, instruction set, whether jobs can take several cores.
void describe_engine(device::DeviceInfo& info);

}  // namespace corelane::drivers::virtual_npu
