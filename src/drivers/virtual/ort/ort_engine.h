/// ONNX Runtime behind the lanes of a device: the second engine of the virtual NPU.
#pragma once

#include <cstddef>
#include <memory>

#include "corelane/driver/lane_engine.h"

namespace corelane::drivers::virtual_npu::ort {

/// `lanes`: cores of the device. The library is opened at the first prepare().
std::shared_ptr<device::LaneEngine> make_ort_engine(std::size_t lanes);

}  // namespace corelane::drivers::virtual_npu::ort
