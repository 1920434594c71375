/// Tensors bound to a program that may run without the engine, and the run.
#pragma once

#include <functional>
#include <memory>

#include "corelane/base/status.h"
#include "corelane/driver/lane_engine.h"
#include "drivers/virtual/direct/direct_forms.h"

namespace corelane::drivers::virtual_npu {

using MakeRequest = std::function<Result<std::unique_ptr<device::LaneRequest>>()>;

/// Reads and writes bound memory in place; tensors that are not bound have memory of the request.
/// Shapes that give no direct network run on a request of the engine, made at the first of them.
std::unique_ptr<device::LaneRequest> make_direct_request(
    std::shared_ptr<const device::LaneProgram> program, std::shared_ptr<DirectForms> forms,
    MakeRequest engine_request);

}  // namespace corelane::drivers::virtual_npu
