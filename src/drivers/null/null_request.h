/// The tensors of one inference on the null device.
#pragma once

#include <memory>

#include "drivers/null/null_engine.h"
#include "drivers/null/null_image.h"

namespace corelane::drivers::null {

std::unique_ptr<device::LaneRequest> make_null_request(
    std::shared_ptr<NullState> state, std::shared_ptr<const Description> description);

}  // namespace corelane::drivers::null
