#include "drivers/virtual/engine/shape_check.h"

#include <openvino/core/graph_util.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/parameter.hpp>
#include <utility>

#include "drivers/virtual/direct/direct_forms.h"
#include "drivers/virtual/engine/engine_runtime.h"

namespace corelane::drivers::virtual_npu {
namespace {

constexpr std::size_t kSmallConstant = 64;  ///< Elements; shapes and axes are fewer.

}  // namespace

/// Values that shapes may be computed from are small constants and integers; they are kept.
ShapeCheck::ShapeCheck(const std::shared_ptr<ov::Model>& network, std::vector<TensorDesc> inputs)
    : inputs_(std::move(inputs)), network_(network->clone()) {
  for (const auto& node : network_->get_ordered_ops()) {
    const auto constant = std::dynamic_pointer_cast<ov::op::v0::Constant>(node);
    if (!constant || !constant->get_element_type().is_real()) continue;
    if (ov::shape_size(constant->get_shape()) <= kSmallConstant) continue;
    const auto place = std::make_shared<ov::op::v0::Parameter>(constant->get_element_type(),
                                                               constant->get_shape());
    ov::replace_node(constant, place);
    network_->add_parameters({place});
  }
}

/// The engine's own shape inference on a copy: reshape() throws where shapes contradict each other.
Status ShapeCheck::check(const std::vector<Shape>& shapes) const {
  try {
    const auto network = network_->clone();
    network->reshape(wanted_shapes(*network, inputs_, shapes));
    return {};
  } catch (...) {
    std::string text;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      text += (i > 0 ? ", " : "") + inputs_[i].name + " " + shapes[i].to_string();
    return error(engine_failure("the network does not take inputs of the shapes " + text,
                                Code::kShapeMismatch));
  }
}

}  // namespace corelane::drivers::virtual_npu
