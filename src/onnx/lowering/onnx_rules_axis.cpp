// Rules about operators that the engine computes along other axes than ONNX says.
#include <algorithm>

#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

/// Before operator set 13, Softmax takes all dimensions from `axis` on as one. The engine does so
/// up to set 10, and for LogSoftmax and Hardmax; in sets 11 and 12 it goes along `axis` alone.
Result<bool> flattened_softmax(Rewriter& r, const ::onnx::NodeProto& node) {
  if (r.opset() != 11 && r.opset() != 12) return false;
  const auto x = r.of(node.input(0));
  std::int64_t axis = int_attribute(node, "axis", 1);
  if (x.shape) {
    const auto at = normal_axis(axis, x.shape->rank());
    if (!at) return false;
    const auto& dims = x.shape->dims();
    const auto after = dims.begin() + static_cast<std::ptrdiff_t>(*at) + 1;
    if (std::all_of(after, dims.end(), [](std::int64_t d) { return d == 1; })) return false;
    axis = static_cast<std::int64_t>(*at);
  } else if (axis == -1) {
    return false;
  }
  const std::string flat = r.add("Flatten", {node.input(0)}, {{"axis", axis}});
  const std::string y = r.add("Softmax", {flat}, {{"axis", -1}});
  const std::string shape =
      x.is_static() ? r.ints(x.shape->dims()) : r.add("Shape", {node.input(0)});
  return r.instead(node, "Reshape", {y, shape});
}

/// ONNX aligns the slope with the last dimension. The engine takes one of rank 1 as one value for
/// each channel, which is dimension 1; where that is open, its kernel reads past the slope's end.
Result<bool> aligned_slope(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto& x = r.of(node.input(0));
  const auto& slope = r.of(node.input(1));
  if (r.opset() < 7 || slope.rank() != 1 || (*slope.shape)[0] == 1) return false;
  if (x.shape && x.rank() < 3) return false;
  if (x.shape) return r.instead(node, "PRelu", {node.input(0), r.unsqueeze(node.input(1), {0})});
  // Of rank 1 perhaps, which the slope must not exceed.
  const std::string below = r.add("Relu", {r.add("Neg", {node.input(0)})});
  return r.instead(node, "Sub",
                   {r.add("Relu", {node.input(0)}), r.add("Mul", {node.input(1), below})});
}

constexpr Rule kAxisRules[] = {
    {"Softmax", flattened_softmax, "operator set 11 or 12: the dimensions from `axis` on as one"},
    {"PRelu", aligned_slope, "a slope for the last dimension: its rank is raised"},
};

}  // namespace

std::span<const Rule> axis_rules() { return kAxisRules; }

}  // namespace corelane::onnx
