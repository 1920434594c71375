/// A custom operator inside the engine's graph: calls the host operator table when it runs.
#pragma once

#include <cstddef>
#include <memory>
#include <openvino/op/op.hpp>
#include <vector>

#include "drivers/virtual/common/host_operators.h"

namespace corelane::drivers::virtual_npu {

/// Outputs are as the model declares them (CustomNode); without a declaration as input 0. An open
/// dimension of a declared shape is that of input 0 at the same place when the ranks agree;
/// dimension 0, the batch, also when they do not.
class HostNode : public ov::op::Op {
 public:
  OPENVINO_OP("HostNode", "corelane");

  HostNode() = default;
  /// As the model has it: the inputs' element types are kept for the callback.
  HostNode(const ov::OutputVector& inputs, std::shared_ptr<HostOperators> operators,
           std::size_t index);

  /// Makes the node depend on `parameter`, which the callback does not see. For nodes that depend
  /// on constants only: the engine would run them while it compiles.
  void depend_on(const ov::Output<ov::Node>& parameter);

  void validate_and_infer_types() override;
  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
  bool visit_attributes(ov::AttributeVisitor& visitor) override;
  bool has_evaluate() const override { return true; }
  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;
  /// No user's callback while the engine compiles.
  bool can_constant_fold(const ov::OutputVector&) const override { return false; }
  bool evaluate_lower(ov::TensorVector&) const override { return false; }
  bool evaluate_upper(ov::TensorVector&) const override { return false; }
  bool evaluate_symbol(ov::TensorSymbolVector&) const override { return false; }

 private:
  ov::PartialShape output_shape(std::size_t output, const ov::PartialShape* input) const;

  ov::element::Type declared_input_type(std::size_t input) const;

  std::shared_ptr<HostOperators> operators_;
  std::size_t index_ = 0;
  /// The types of the inputs that the callback sees. The engine narrows 64-bit ones in its graph.
  std::vector<ov::element::Type> input_types_;
};

}  // namespace corelane::drivers::virtual_npu
