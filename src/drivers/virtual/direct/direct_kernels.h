/// The operators of direct networks.
#pragma once

#include <openvino/core/node.hpp>

#include "drivers/virtual/direct/direct_network.h"

namespace corelane::drivers::virtual_npu {

/// One operator in the steps of direct networks.
struct DirectOperator {
  DirectStep::Kernel kernel = nullptr;
  std::size_t operands = 1;
  std::size_t cost = 1;  ///< Of one value, in the time of an addition.
};

/// The kernel of an operator that works element by element; null for others.
const DirectOperator* find_elementwise(const ov::Node& node);

/// False for operators that no step can compute, whatever their shapes.
bool is_direct_operator(const ov::Node& node);

void direct_matmul(const DirectStep& step, const float* a, const float* b, float* y);
void direct_softmax(const DirectStep& step, const float* a, const float* b, float* y);

}  // namespace corelane::drivers::virtual_npu
