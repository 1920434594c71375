// Rules about shapes: axes and repeats that come at run time, layouts, padding.
#include <algorithm>

#include "onnx/graph/onnx_checked.h"
#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

constexpr std::int64_t kOpen = Shape::kOpen;
/// Sizes and paddings up to which wrap padding is written out.
constexpr std::int64_t kMostAlong = std::int64_t{1} << 40;

/// The length of a rank-1 value, or -1.
std::int64_t length_of(const ValueFacts& list) {
  return list.shape && list.shape->rank() == 1 ? (*list.shape)[0] : kOpen;
}

/// 1 at the positions that a list of run-time axes names, 0 elsewhere; `rank` elements.
std::string axis_mask(Rewriter& r, const std::string& axes, std::int64_t rank) {
  // Negative axes count from the end.
  const std::string count = r.ints({rank});
  const std::string normal =
      r.add("Where", {r.add("Less", {axes, r.ints({0})}), r.add("Add", {axes, count}), axes});
  const std::string column = r.reshape(r.ints(counted(static_cast<std::size_t>(rank))), {rank, 1});
  const std::string hits = r.cast(r.add("Equal", {column, r.reshape(normal, {1, -1})}), T::INT64);
  return r.reduce("ReduceMax", hits, {1}, false);
}

/// x reshaped to 1 at the positions of `mask` and its own dimensions, in order, elsewhere.
std::string spread_dims(Rewriter& r, const std::string& x, const std::string& mask) {
  const std::string one = r.ints({1});
  const std::string kept = r.add("Sub", {one, mask});
  // The running count of kept positions: which dimension of x stands there.
  const std::string order = r.add("Sub", {r.add("CumSum", {kept, r.scalar_int(0)}), one});
  // Before the first kept position the count is -1; those places take the 1 anyway.
  const std::string clamped = r.add("Max", {order, r.ints({0})});
  const std::string dims = r.add("Gather", {r.add("Shape", {x}), clamped});
  return r.add("Where", {r.cast(mask, T::BOOL), one, dims});
}

Result<bool> unsqueeze_at_run_time(Rewriter& r, const ::onnx::NodeProto& node) {
  // Axes are an input since operator set 13.
  if (r.opset() < 13 || r.of(node.input(1)).known_ints()) return false;
  const std::int64_t n = length_of(r.of(node.input(1)));
  const std::int64_t from = r.of(node.input(0)).rank();
  if (n < 0 || from < 0 || !(Checked(n) + from).is_within(0, kMostDims)) return false;
  // A scalar becomes as many 1s as there are axes.
  if (from == 0) {
    return r.instead(node, "Reshape",
                     {node.input(0), r.ints(Ints(static_cast<std::size_t>(n), 1))});
  }
  const std::string mask = axis_mask(r, node.input(1), from + n);
  return r.instead(node, "Reshape", {node.input(0), spread_dims(r, node.input(0), mask)});
}

/// Without its reduced dimensions only the count of them is known: reduce with them, then reshape.
Result<bool> reduce_at_run_time(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto& axes = r.of(input_of(node, 1));
  const std::int64_t rank = r.of(node.input(0)).rank();
  const std::int64_t n = length_of(axes);
  const bool keep = int_attribute(node, "keepdims", 1) != 0;
  if (input_of(node, 1).empty() || axes.known_ints() || keep || n <= 0 || rank < n) return false;
  ::onnx::NodeProto kept = node;
  set_attribute(kept, "keepdims", std::int64_t{1});
  kept.set_output(0, r.fresh_name("kept"));
  r.emit(kept);
  // All of them: a scalar.
  if (rank == n) return r.instead(node, "Reshape", {kept.output(0), r.ints({})});
  // The positions that stay, in order: those of the smallest mask * rank + position.
  const Ints positions = counted(static_cast<std::size_t>(rank));
  const std::string mask = axis_mask(r, node.input(1), rank);
  const std::string keys = r.add("Add", {r.add("Mul", {mask, r.ints({rank})}), r.ints(positions)});
  const Names top = r.add_many("TopK", 2, {keys, r.ints({rank - n})},
                               {{"largest", 0}, {"sorted", 1}, {"axis", 0}});
  const std::string dims = r.add("Gather", {r.add("Shape", {node.input(0)}), top[1]});
  return r.instead(node, "Reshape", {kept.output(0), dims});
}

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
  // CRD: channel, row, column; the blocks' place goes behind the channel.
  const std::int64_t channels = (Checked(s[1]) * b * b).or_open();
  if (channels < 0) return false;
  const std::string split = r.reshape(node.input(0), {s[0], s[1], s[2] / b, b, s[3] / b, b});
  const std::string moved = r.transpose(split, {0, 1, 3, 5, 2, 4});
  return r.instead(node, "Reshape", {moved, r.ints({s[0], channels, s[2] / b, s[3] / b})});
}

/// The sizes come from the declared output, the beginnings at run time.
bool wrap_pad_at_run_time(Rewriter& r, const ::onnx::NodeProto& node, const ValueFacts& x) {
  const auto out = r.of(node.output(0));
  if (!out.is_static() || out.rank() != x.rank() || x.shape->elements() == 0u) return false;
  std::string value = node.input(0);
  for (std::int64_t axis = 0; axis < x.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const std::string positions = r.counting(T::INT64, {(*out.shape)[a]});
    const std::string before = r.slice(node.input(1), 0, axis, axis + 1);
    const std::string indices =
        r.add("Mod", {r.add("Sub", {positions, before}), r.ints({(*x.shape)[a]})});
    value = r.add("Gather", {value, indices}, {{"axis", axis}});
  }
  return r.instead(node, "Identity", {value});
}

/// Wrap padding: indices of each padded axis, modulo its size.
Result<bool> wrap_pad(Rewriter& r, const ::onnx::NodeProto& node) {
  if (string_attribute(node, "mode", "constant") != "wrap") return false;
  const auto x = r.of(node.input(0));
  const auto pads = r.of(input_of(node, 1));
  if (x.is_static() && !pads.known_ints() && input_of(node, 3).empty())
    return wrap_pad_at_run_time(r, node, x);
  if (!x.is_static() || !pads.known_ints() || x.rank() < 1) return false;
  Ints axes;
  if (!input_of(node, 3).empty()) {
    if (!r.of(node.input(3)).known_ints()) return false;
    axes = *r.of(node.input(3)).ints;
  } else {
    axes = counted(x.shape->rank());
  }
  // All beginnings, then all ends.
  if (pads.ints->size() != 2 * axes.size()) return false;
  std::string value = node.input(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = normal_axis(axes[i], x.shape->rank());
    if (!axis || (*x.shape)[*axis] < 1) return false;
    const std::int64_t size = (*x.shape)[*axis];
    const std::int64_t before = (*pads.ints)[i];
    const std::int64_t after = (*pads.ints)[i + axes.size()];
    const std::int64_t total = (Checked(size) + before + after).or_open();
    if (size > kMostAlong || std::abs(before) > kMostAlong || total < 0) return false;
    const std::string indices = r.sequence(T::INT64, {total}, [&](std::int64_t k) {
      // C++'s % keeps the sign of the dividend.
      return static_cast<double>((((k - before) % size) + size) % size);
    });
    value = r.add("Gather", {value, indices}, {{"axis", static_cast<std::int64_t>(*axis)}});
  }
  return r.instead(node, "Identity", {value});
}

/// The engine counts a window that begins in the padding; where both roundings give the right
/// size, rounding down is right.
Result<bool> ceil_pool(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto x = r.of(node.input(0));
  if (int_attribute(node, "ceil_mode", 0) == 0 || !x.is_static()) return false;
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

constexpr std::string_view kReduceText = "axes that come at run time: reduced, then reshaped";

constexpr Rule kRules[] = {
    {"Unsqueeze", unsqueeze_at_run_time, "axes that come at run time: a Reshape"},
    {"Squeeze", squeeze_known, "the axes are known from the shape"},
    {"ReduceSum", reduce_at_run_time, kReduceText},
    {"ReduceMean", reduce_at_run_time, kReduceText},
    {"ReduceMax", reduce_at_run_time, kReduceText},
    {"ReduceMin", reduce_at_run_time, kReduceText},
    {"ReduceProd", reduce_at_run_time, kReduceText},
    {"ReduceL1", reduce_at_run_time, kReduceText},
    {"ReduceL2", reduce_at_run_time, kReduceText},
    {"ReduceLogSum", reduce_at_run_time, kReduceText},
    {"ReduceLogSumExp", reduce_at_run_time, kReduceText},
    {"ReduceSumSquare", reduce_at_run_time, kReduceText},
    {"MaxPool", ceil_pool, "rounding up changes nothing: ceil_mode off"},
    {"Tile", tile_at_run_time, "repeats that come at run time: an Expand"},
    {"SpaceToDepth", space_to_depth_crd, "mode CRD: reshapes and a transpose"},
    {"Pad", wrap_pad, "wrap padding: gathers"},
};

}  // namespace

std::span<const Rule> shape_rules() { return kRules; }

}  // namespace corelane::onnx
