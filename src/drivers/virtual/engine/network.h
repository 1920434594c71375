/// From an image to the engine's network.
#pragma once

#include <cstdint>
#include <memory>
#include <openvino/core/model.hpp>
#include <span>

#include "corelane/base/status.h"
#include "drivers/virtual/common/onnx_patch.h"
#include "drivers/virtual/engine/host_node.h"

namespace corelane::drivers::virtual_npu {

/// kUnsupportedModel for an input whose fixed shape has no elements. `inputs`: of `patched`.
Status check_elements(const PatchedModel& patched, std::span<const TensorDesc> inputs);

/// Reads the patched bytes; outputs get the element types the model declares. kUnsupportedModel
/// naming operator and node. The inputs have passed check_elements().
Result<std::shared_ptr<ov::Model>> read_network(const PatchedModel& patched,
                                                const std::shared_ptr<HostOperators>& operators);

/// Whether an inference may throw: with one stream and one thread OpenVINO 2026.4.1 swallows the
/// exceptions of infer() and runs the failed task again later, so only what never throws may run in
/// the caller's thread.
enum class Throwing : std::uint8_t {
  kNever,      ///< Static shapes, and kernels that check nothing that depends on data.
  kIfDynamic,  ///< Such kernels; shapes that the compiler may still make static.
  kMaybe,
};
Throwing throwing_of(const ov::Model& network);

/// True when every value of a network or of the engine's graph has a static shape.
bool all_static(const ov::Model& network);

}  // namespace corelane::drivers::virtual_npu
