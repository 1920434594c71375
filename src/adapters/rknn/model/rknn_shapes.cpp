/// rknn_set_input_shapes.
#include <cstring>

#include "adapters/rknn/model/rknn_model.h"

namespace corelane::rknn {
namespace {

/// Dimensions in the order of the model. Where no order is named it is that of INPUT_ATTR.
Result<Shape> shape_of(const rknn_tensor_attr& attr, const IoTensor& io, const Chip& chip) {
  const IoEntry& entry = *io.entry;
  if (attr.n_dims > RKNN_MAX_DIMS)
    return error(Code::kInvalidArgument, "input '{}': n_dims {} is more than {}", entry.desc.name,
                 attr.n_dims, RKNN_MAX_DIMS);
  std::vector<std::int64_t> dims(attr.dims, attr.dims + attr.n_dims);
  const rknn_tensor_format fmt =
      attr.fmt == RKNN_TENSOR_UNDEFINED ? normal_attr(io, chip).fmt : attr.fmt;
  if (fmt == RKNN_TENSOR_NHWC && dims.size() == 4) dims = {dims[0], dims[3], dims[1], dims[2]};
  if (entry.desc.shape.rank() == 0 && dims == std::vector<std::int64_t>{1}) dims.clear();
  return Shape(std::move(dims));
}

std::string allowed_shapes(const ProgramDescription& description) {
  std::string text;
  for (const std::vector<Shape>& set : description.shape_sets) {
    text += text.empty() ? " " : " or ";
    for (const Shape& shape : set) text += shape.to_string();
  }
  return text;
}

}  // namespace

Outcome ModelContext::set_input_shapes(std::uint32_t count, const rknn_tensor_attr* attrs) {
  if (attrs == nullptr)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "attr is null; pass one rknn_tensor_attr for each input");
  if (count != description_->inputs.size())
    return outcome(RKNN_ERR_PARAM_INVALID, "{} inputs given; the shapes of all {} are set together",
                   count, description_->inputs.size());
  std::vector<std::optional<Shape>> chosen(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::size_t place = attrs[i].index;
    const std::string name(attrs[i].name, strnlen(attrs[i].name, sizeof attrs[i].name));
    for (std::size_t k = 0; k < count && !name.empty(); ++k)
      if (description_->inputs[k].desc.name.compare(0, sizeof attrs[i].name - 1, name) == 0)
        place = k;
    if (place >= count || chosen[place])
      return outcome(RKNN_ERR_INPUT_INVALID,
                     "attr[{}] with name '{}' and index {} names {}; set index and name of each "
                     "input once",
                     i, name, attrs[i].index,
                     place >= count ? "no input" : "an input that another attr names");
    auto shape = shape_of(attrs[i], current_input(place), chip_);
    if (!shape) return shape.error();
    chosen[place] = *std::move(shape);
  }
  std::vector<Shape> shapes;
  for (std::optional<Shape>& shape : chosen) shapes.push_back(*std::move(shape));
  const Order order(*this);
  if (!order.ok()) return order.refused();
  if (Status status = ready(); !status.ok()) return status;
  (void)settle_all();
  for (Frame& frame : frames_) {
    const Status status = frame.context.set_input_shapes(shapes);
    if (status.ok()) continue;
    if (description_->shape_sets.empty() || status.code() != Code::kShapeMismatch)
      return Outcome(RKNN_ERR_FAIL, status);
    std::string given;
    for (const Shape& shape : shapes) given += shape.to_string();
    return outcome(RKNN_ERR_FAIL,
                   "shapes {} are none that the model was compiled for, in the model's order:{}",
                   given, allowed_shapes(*description_));
  }
  note_shapes();
  if (check::enabled()) shapes_call_ = check::current();
  return rebind_all("rknn_set_input_shapes");
}

}  // namespace corelane::rknn
