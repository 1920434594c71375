/// Which of its optimizers ONNX Runtime is to leave out.
#pragma once

#include <map>
#include <string>

#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu::ort {

/// Optimizers that the engine is to leave out, separated by semicolons, as the session entry
/// "optimization.disable_specified_optimizers" takes them. Most are those that look for operators
/// which the network does not have: each walks over all nodes. Then the one that merges two Q-DQ
/// pairs in a row into one, whose results are up to half a step off the grid of the second.
/// `operators`: PatchedModel::first_node. Some operators are made of others once the engine has
/// begun; a fusion of those that is missed costs speed only.
std::string needless_optimizers(const std::map<std::string, std::string, std::less<>>& operators);

/// True where the optimised network may compute in integers what the given one computes in floats:
/// it has QuantizeLinear, or what DequantizeLinear makes has another reader than a recurrence or a
/// look at its shape. Results differ by a step of the quantization then.
bool is_fused_to_integers(const PatchedModel& model);

}  // namespace corelane::drivers::virtual_npu::ort
