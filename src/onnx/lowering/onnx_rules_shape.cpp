// Rules about shapes: repeats that come at run time, layouts, sizes of pools.
#include <algorithm>

#include "onnx/graph/onnx_checked.h"
#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// The engine computes Tile with repeats that come at run time wrongly; Expand is right.
Result<bool> tile_at_run_time(Rewriter& r, const ::onnx::NodeProto& node) {
  if (r.opset() < 6 || r.of(node.input(1)).known_ints()) return false;
  const std::int64_t rank = r.of(node.input(0)).rank();
  if (rank < 1)
    return r.unfit(node,
                   "repeats that come at run time, of a tensor of unknown rank, "
                   "are computed wrongly by the engine; make them constant");
  // [r0, 1, r1, 1, ...] against [1, d0, 1, d1, ...]
  const std::string shape = r.add("Shape", {node.input(0)});
  Names spread;
  Names wide;
  for (std::int64_t i = 0; i < rank; ++i) {
    const std::string one = r.ints({1});
    spread.push_back(one);
    spread.push_back(r.slice(shape, 0, i, i + 1));
    wide.push_back(r.slice(node.input(1), 0, i, i + 1));
    wide.push_back(spread.back());
  }
  const std::string tall = r.add("Reshape", {node.input(0), r.concat(spread, 0)});
  const std::string expanded = r.add("Expand", {tall, r.concat(wide, 0)});
  const std::string dims = r.add("Mul", {shape, node.input(1)});
  return r.instead(node, "Reshape", {expanded, dims});
}

Result<bool> space_to_depth_crd(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto& x = r.of(node.input(0));
  const std::int64_t b = int_attribute(node, "blocksize", 0);
  if (string_attribute(node, "mode", "DCR") != "CRD") return false;
  if (!x.is_static() || x.rank() != 4 || b < 1) {
    return r.unfit(node,
                   "mode CRD with open dimensions is computed wrongly by the engine; fix "
                   "the input shape");
  }
  const Shape s = *x.shape;
  // CRD: channel, row, column; the blocks' place goes after the channel.
  const std::int64_t channels = (Checked(s[1]) * b * b).or_open();
  if (channels < 0) return false;
  const std::string split = r.reshape(node.input(0), {s[0], s[1], s[2] / b, b, s[3] / b, b});
  const std::string moved = r.transpose(split, {0, 1, 3, 5, 2, 4});
  return r.instead(node, "Reshape", {moved, r.ints({s[0], channels, s[2] / b, s[3] / b})});
}

/// Without padding no window begins after the last element, unless it jumps over some.
bool may_begin_in_padding(const ::onnx::NodeProto& node) {
  const std::string pad = string_attribute(node, "auto_pad", "NOTSET");
  const Ints pads = ints_attribute(node, "pads");
  const Ints strides = ints_attribute(node, "strides");
  const Ints kernel = ints_attribute(node, "kernel_shape");
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (i >= kernel.size() || strides[i] > kernel[i]) return true;
  return (pad != "NOTSET" && pad != "VALID") ||
         std::ranges::any_of(pads, [](std::int64_t p) { return p != 0; });
}

/// The engine divides by the number of places while it compiles.
Result<bool> no_places(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto& places = r.of(input_of(node, 1));
  if (!places.shape || std::ranges::count(places.shape->dims(), 0) == 0) return false;
  return r.unfit(node, "indices without elements end the process in the engine");
}

/// Indices in the order of columns.
Result<bool> column_places(Rewriter& r, const ::onnx::NodeProto& node) {
  if (int_attribute(node, "storage_order", 0) == 0 || !has_output(node, 1)) return false;
  return r.unfit(node, "storage_order is not read by the engine");
}

Result<bool> padded_mean(Rewriter& r, const ::onnx::NodeProto& node) {
  if (int_attribute(node, "ceil_mode", 0) == 0 || int_attribute(node, "count_include_pad", 0) == 0)
    return false;
  return r.unfit(node, "ceil_mode with count_include_pad has other means at the border");
}

/// With an open batch alone, too.
Result<bool> open_transposed_convolution(Rewriter& r, const ::onnx::NodeProto& node) {
  const bool same = string_attribute(node, "auto_pad", "NOTSET").starts_with("SAME");
  const bool sized = !ints_attribute(node, "output_shape").empty();
  if ((!same && !sized) || r.of(node.input(0)).is_static()) return false;
  return r.unfit(node,
                 "auto_pad and output_shape with open dimensions are computed wrongly by the "
                 "engine; fix the input shape");
}

/// The engine counts a window that begins in the padding; where both roundings give the right
/// size, rounding down is right.
Result<bool> ceil_pool(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto x = r.of(node.input(0));
  if (int_attribute(node, "ceil_mode", 0) == 0) return false;
  if (!x.is_static()) {
    if (!may_begin_in_padding(node)) return false;
    return r.unfit(node,
                   "ceil_mode with padding and open dimensions may count a window that begins in "
                   "the padding");
  }
  ::onnx::NodeProto down = node;
  set_attribute(down, "ceil_mode", std::int64_t{0});
  constexpr const char* kProbe = "corelane: a pool that is not in the graph";
  const auto shape_of_pool = [&](::onnx::NodeProto pool) {
    FactsTable facts(&r.facts());
    pool.set_output(0, kProbe);
    infer_node(pool, r.opset(), {}, facts);
    return facts.of(kProbe).shape;
  };
  const auto up = shape_of_pool(node);
  if (!up || !up->is_static() || up != shape_of_pool(down)) return false;
  r.emit(down);
  return true;
}

/// Squeeze without axes of a value whose shape is known: with them.
Result<bool> squeeze_known(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto& x = r.of(node.input(0));
  if (!input_of(node, 1).empty() || find_attribute(node, "axes") != nullptr || !x.is_static())
    return false;
  Ints axes;
  for (std::size_t i = 0; i < x.shape->rank(); ++i)
    if ((*x.shape)[i] == 1) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) return r.instead(node, "Identity", {node.input(0)});
  if (r.opset() < 13) return r.instead(node, "Squeeze", {node.input(0)}, {{"axes", axes}});
  return r.instead(node, "Squeeze", {node.input(0), r.ints(axes)});
}

/// Whether a value is a size, 0 or more, that was moved or converted at most.
bool is_size(const Rewriter& r, std::string name) {
  constexpr std::string_view kMovers[] = {"Cast",  "Gather",  "Identity", "Reshape",
                                          "Slice", "Squeeze", "Unsqueeze"};
  for (int steps = 0; steps < 8; ++steps) {
    const auto* const maker = r.maker(name);
    if (maker == nullptr) return false;
    if (maker->op_type() == "Shape" || maker->op_type() == "Size") return true;
    if (std::ranges::find(kMovers, maker->op_type()) == std::end(kMovers)) return false;
    name = input_of(*maker, 0);
  }
  return false;
}

/// If a range of floats has no elements by the standard, the engine counts the other way instead.
Result<bool> float_range(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (elem != ::onnx::TensorProto::FLOAT && elem != ::onnx::TensorProto::DOUBLE) return false;
  const auto number = [&](int input) -> std::optional<double> {
    const auto values = r.constant_values(input_of(node, input));
    return values && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
  };
  const auto start = number(0);
  const auto limit = number(1);
  const auto step = number(2);
  if (start && limit && step && (*limit - *start) * *step > 0) return false;
  if (start && step && *start <= 0 && *step > 0 && is_size(r, input_of(node, 1))) return false;
  return r.unfit(node, "a range of floats may be without elements, which the engine gives some");
}

/// The engine gives the operand itself the name of the result: one that is an input of the network
/// is not found any more.
Result<bool> one_operand(Rewriter& r, const ::onnx::NodeProto& node) {
  if (node.input_size() != 1) return false;
  return r.instead(node, "Identity", {node.input(0)});
}

constexpr const char* kOneOperand = "of one operand: an Identity";

constexpr Rule kShapeRules[] = {
    {"Max", one_operand, kOneOperand},
    {"Mean", one_operand, kOneOperand},
    {"Min", one_operand, kOneOperand},
    {"Sum", one_operand, kOneOperand},
    {"Range", float_range, "of floats, possibly empty: for the other engine"},
    {"Squeeze", squeeze_known, "the axes are known from the shape"},
    {"Gather", no_places, "no places at all: for the other engine"},
    {"MaxPool", column_places, "indices by columns: for the other engine"},
    {"AveragePool", padded_mean, "means over padding, rounded up: for the other engine"},
    {"ConvTranspose", open_transposed_convolution,
     "sizes with open dimensions: for the other engine"},
    {"MaxPool", ceil_pool, "rounding up changes nothing: ceil_mode off"},
    {"Tile", tile_at_run_time, "repeats that come at run time: an Expand"},
    {"SpaceToDepth", space_to_depth_crd, "mode CRD: reshapes and a transpose"},
};

}  // namespace

std::span<const Rule> shape_rules() { return kShapeRules; }

}  // namespace corelane::onnx
