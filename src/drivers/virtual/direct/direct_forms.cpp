#include "drivers/virtual/direct/direct_forms.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "corelane/base/log.h"
#include "drivers/virtual/direct/direct_kernels.h"
#include "drivers/virtual/engine/engine_runtime.h"

namespace corelane::drivers::virtual_npu {
namespace {

bool all_known(const ov::Model& network) {
  const auto& nodes = network.get_ordered_ops();
  return std::all_of(nodes.begin(), nodes.end(),
                     [](const auto& node) { return is_direct_operator(*node); });
}

}  // namespace

ShapeKey dims_of(const std::vector<Shape>& shapes) {
  ShapeKey dims;
  for (const Shape& shape : shapes) dims.push_back(shape.dims());
  return dims;
}

/// By name: the engine may have dropped or reordered inputs.
std::map<ov::Output<ov::Node>, ov::PartialShape> wanted_shapes(const ov::Model& network,
                                                               std::span<const TensorDesc> inputs,
                                                               const std::vector<Shape>& shapes) {
  std::map<ov::Output<ov::Node>, ov::PartialShape> wanted;
  for (const auto& parameter : network.get_parameters()) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].name == parameter->get_friendly_name() && !inputs[i].shape.is_static())
        wanted.emplace(parameter->output(0), engine_shape(shapes[i]));
  }
  return wanted;
}

/// A network of static shapes is tried at once; one of open shapes may fit for some of them.
std::unique_ptr<DirectForms> DirectForms::make(std::shared_ptr<ov::Model> network,
                                               std::vector<TensorDesc> inputs) {
  if (!all_known(*network)) return nullptr;
  std::unique_ptr<DirectForms> forms(new DirectForms(std::move(network), std::move(inputs)));
  std::vector<Shape> shapes;
  for (const TensorDesc& input : forms->inputs_) shapes.push_back(input.shape);
  const bool open = std::any_of(shapes.begin(), shapes.end(),
                                [](const Shape& shape) { return !shape.is_static(); });
  return open || forms->find(shapes) != nullptr ? std::move(forms) : nullptr;
}

std::shared_ptr<const DirectNetwork> DirectForms::find(const std::vector<Shape>& shapes) {
  using Made = Result<std::shared_ptr<const DirectNetwork>>;
  return made_.get(dims_of(shapes), [&] { return Made(make_for(shapes)); }).value_or(nullptr);
}

/// Shapes that do not fit throw here and, when they run, in the engine, which gives the reason.
std::shared_ptr<const DirectNetwork> DirectForms::make_for(const std::vector<Shape>& shapes) const
    try {
  // The engine's request knows which inputs may have no elements.
  if (std::ranges::any_of(shapes, [](const Shape& shape) { return shape.elements() == 0U; }))
    return nullptr;
  const auto network = network_->clone();
  const auto wanted = wanted_shapes(*network, inputs_, shapes);
  if (!wanted.empty()) network->reshape(wanted);
  return DirectNetwork::make(*network, inputs_);
} catch (const std::exception& e) {
  log::debug("virtual", "no direct form: {}", e.what());
  return nullptr;
}

}  // namespace corelane::drivers::virtual_npu
