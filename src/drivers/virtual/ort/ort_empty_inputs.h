/// Inputs without elements, and lengths of 0, that end the process inside of the engine.
///
/// Measured with ONNX Runtime 1.31.1: each operator of the standard's node tests with each of its
/// inputs' dimensions at 0, and with its integers at 0, -1 and both ends of their type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu::ort {

/// What one input of a network must not be, because of a node that reads it.
struct EmptyBound {
  std::size_t input = 0;   ///< Of PatchedModel::inputs.
  std::uint32_t dims = 0;  ///< A bit for each dimension that must not be 0.
  std::size_t rank = 0;    ///< Of tensors of this rank alone; 0: of any.
  bool values = false;     ///< Its integer, or what a Cast makes of it, must not be 0.
  std::string node;        ///< "name (type)".
};

/// The bounds of a network's inputs: of nodes of the top graph that read an input, as it is or
/// cast. A recurrence divides by its steps and samples, in threads whose exceptions end the
/// process: with one in the network no float input of two dimensions or more may be empty.
/// kUnsupportedModel where a constant is what an input must not be; kMalformed where the bytes are
/// no ONNX model.
Result<std::vector<EmptyBound>> empty_bounds(const PatchedModel& model);

/// kUnsupported naming the input, what it is and the node, where a tensor of `shape` and `dtype` at
/// `data`, null for zeros, is what `bound` forbids.
Status check_empty(const EmptyBound& bound, const std::string& input, DType dtype,
                   const Shape& shape, const void* data);

}  // namespace corelane::drivers::virtual_npu::ort
