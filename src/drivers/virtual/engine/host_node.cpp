#include "drivers/virtual/engine/host_node.h"

#include <stdexcept>
#include <utility>

#include "corelane/tensor/convert.h"
#include "drivers/virtual/engine/engine_runtime.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// An empty tensor has no address that may be used.
TensorView view_of(const ov::Tensor& tensor) {
  TensorView view;
  view.data = tensor.get_size() == 0 ? nullptr : tensor.data();
  view.size = tensor.get_byte_size();
  view.dtype = dtype_of(tensor.get_element_type());
  view.shape = shape_of(tensor.get_shape());
  return view;
}

}  // namespace

HostNode::HostNode(const ov::OutputVector& inputs, std::shared_ptr<HostOperators> operators,
                   std::size_t index)
    : Op(inputs), operators_(std::move(operators)), index_(index) {
  for (const auto& input : inputs) input_types_.push_back(input.get_element_type());
  constructor_validate_and_infer_types();
}

void HostNode::depend_on(const ov::Output<ov::Node>& parameter) {
  set_argument(get_input_size(), parameter);
  validate_and_infer_types();
}

/// The model's type where it is known: the engine may have narrowed the input's.
ov::element::Type HostNode::declared_input_type(std::size_t input) const {
  const ov::element::Type& type = input_types_[input];
  return type.is_dynamic() ? get_input_element_type(input) : type;
}

/// Declared dimensions win; open ones follow input 0 where the ranks agree.
ov::PartialShape HostNode::output_shape(std::size_t output, const ov::PartialShape* input) const {
  const CustomNode& node = operators_->nodes()[index_];
  if (output >= node.output_shapes.size())
    return input != nullptr ? *input : ov::PartialShape::dynamic();
  const Shape& declared = node.output_shapes[output];
  ov::PartialShape shape(std::vector<ov::Dimension>(declared.rank()));
  const bool same_rank = input != nullptr && input->rank().is_static() &&
                         input->rank().get_length() == static_cast<std::int64_t>(declared.rank());
  // A classifier's labels [N] go with its samples [N, features].
  const bool has_batch =
      input != nullptr && input->rank().is_static() && input->rank().get_length() > 0;
  for (std::size_t i = 0; i < declared.rank(); ++i)
    if (declared[i] != Shape::kOpen)
      shape[i] = declared[i];
    else if (same_rank || (i == 0 && has_batch))
      shape[i] = (*input)[i];
  return shape;
}

void HostNode::validate_and_infer_types() {
  const CustomNode& node = operators_->nodes()[index_];
  const bool has_input = !input_types_.empty();
  set_output_size(node.output_count);
  for (std::size_t i = 0; i < node.output_count; ++i) {
    const bool declared = i < node.output_dtypes.size();
    NODE_VALIDATION_CHECK(this, declared || has_input, "custom operator '", node.type,
                          "' has no input and declares no type for output ", i);
    const ov::element::Type type =
        declared ? engine_type(node.output_dtypes[i]) : declared_input_type(0);
    NODE_VALIDATION_CHECK(this, !declared || type != ov::element::dynamic, "custom operator '",
                          node.type, "' declares an element type for output ", i,
                          " that this device does not have");
    const ov::PartialShape* input = has_input ? &get_input_partial_shape(0) : nullptr;
    set_output_type(i, type, output_shape(i, input));
  }
}

/// Types are kept from the original, since the new inputs may be narrowed ones.
std::shared_ptr<ov::Node> HostNode::clone_with_new_inputs(const ov::OutputVector& inputs) const {
  check_new_args_count(this, inputs);
  auto clone = std::make_shared<HostNode>();
  clone->set_arguments(inputs);
  clone->operators_ = operators_;
  clone->index_ = index_;
  clone->input_types_ = input_types_;
  clone->validate_and_infer_types();
  return clone;
}

bool HostNode::visit_attributes(ov::AttributeVisitor& visitor) {
  // Two nodes of one type with equal inputs are not the same: attributes may differ.
  auto index = static_cast<std::int64_t>(index_);
  visitor.on_attribute("index", index);
  return true;
}

/// The engine narrows 64-bit types before it calls; the callback gets the declared ones back.
bool HostNode::evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const {
  std::vector<ByteVector> widened;
  const auto fail = [&](Status status) {
    throw std::runtime_error(operators_->keep(std::move(status)));
  };
  std::vector<TensorView> in;
  for (std::size_t i = 0; i < input_types_.size(); ++i) {
    TensorView view = view_of(inputs[i]);
    const DType declared = dtype_of(declared_input_type(i));
    if (declared != view.dtype) {
      MutableTensorView wide{.dtype = declared, .shape = view.shape};
      widened.emplace_back(dtype_bytes(declared, inputs[i].get_size()));
      wide.data = widened.back().data();
      wide.size = widened.back().size();
      if (wide.size > 0) {
        if (Status status = convert(view, wide); !status.ok()) fail(std::move(status));
      }
      view = wide;
    }
    in.push_back(std::move(view));
  }
  std::vector<MutableTensorView> out;
  const Shape first = in.empty() ? Shape() : in.front().shape;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto shape = operators_->output_shape(index_, i, in.empty() ? nullptr : &first);
    if (!shape) fail(shape.error());
    const ov::Shape wanted = engine_shape(*shape);
    if (outputs[i].get_shape() != wanted) outputs[i].set_shape(wanted);
    const TensorView view = view_of(outputs[i]);
    out.push_back({.data = const_cast<void*>(view.data),  // The engine's, for writing.
                   .size = view.size,
                   .dtype = view.dtype,
                   .shape = view.shape});
  }
  if (Status status = operators_->call(index_, in, out); !status.ok()) fail(std::move(status));
  return true;
}

}  // namespace corelane::drivers::virtual_npu
