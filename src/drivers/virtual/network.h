/// From an image to the engine's network.
#pragma once

#include <memory>
#include <openvino/core/model.hpp>

#include "corelane/base/status.h"
#include "drivers/virtual/host_node.h"
#include "drivers/virtual/onnx_patch.h"

namespace corelane::virtual_npu {

/// Reads the patched bytes; outputs get the element types the model declares. kUnsupportedModel
/// naming operator and node.
Result<std::shared_ptr<ov::Model>> read_network(const PatchedModel& patched,
                                                const std::shared_ptr<HostOperators>& operators);

/// True when no inference can throw: every shape is static and every operator is one whose kernel
/// checks nothing that depends on data. Only then may the engine run in the caller's thread: with
/// one stream and one thread OpenVINO 2026.4.1 swallows exceptions of infer() and later runs the
/// failed task again.
bool never_throws(const ov::Model& network);

}  // namespace corelane::virtual_npu
