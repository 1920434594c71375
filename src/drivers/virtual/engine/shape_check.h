/// Whether shapes of open inputs fit a network. The engine does not check everywhere: a product of
/// matrices whose inner sizes differ reads past its operand (OpenVINO 2026.4.1).
#pragma once

#include <memory>
#include <openvino/core/model.hpp>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane::drivers::virtual_npu {

/// Any thread.
class ShapeCheck {
 public:
  /// Copies the network without the values of large constants, which no shape depends on.
  ShapeCheck(const std::shared_ptr<ov::Model>& network, std::vector<TensorDesc> inputs);

  /// kShapeMismatch naming the node.
  Status check(const std::vector<Shape>& shapes) const;

 private:
  const std::vector<TensorDesc> inputs_;
  std::shared_ptr<ov::Model> network_;  ///< Constant after construction.
};

}  // namespace corelane::drivers::virtual_npu
