// Rules about reductions, and about what follows them.
#include <algorithm>
#include <optional>

#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

/// An open list where the axes are known at run time only; an empty one for all dimensions.
std::optional<Ints> axes_of(const Rewriter& r, const ::onnx::NodeProto& node) {
  const std::string& input = input_of(node, 1);
  if (input.empty()) return ints_attribute(node, "axes");
  const auto& axes = r.of(input);
  return axes.known_ints() ? axes.ints : std::nullopt;
}

/// In operator sets 13 to 17 the engine looks for the axes of three reductions among the inputs,
/// where they are from 18 on, and reduces along all dimensions.
Result<bool> axes_as_attribute(Rewriter& r, const ::onnx::NodeProto& node) {
  if (r.opset() < 13 || r.opset() > 17 || ints_attribute(node, "axes").empty()) return false;
  return r.unfit(node, "axes given as an attribute are not read by the engine");
}

/// Along no dimension: the logarithm remains. The engine gives the input.
Result<bool> log_of_each(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto axes = axes_of(r, node);
  const bool none = int_attribute(node, "noop_with_empty_axes", 0) != 0 && axes && axes->empty();
  if (r.opset() < 18 || !none) return false;
  return r.instead(node, "Log", {node.input(0)});
}

/// Along no dimension: what is reduced is each element's absolute value. The engine gives the
/// input.
Result<bool> norm_of_each(Rewriter& r, const ::onnx::NodeProto& node) {
  if (r.opset() < 18 || int_attribute(node, "noop_with_empty_axes", 0) == 0) return false;
  const auto axes = axes_of(r, node);
  if (!axes) return r.unfit(node, "axes of a run may be none, which the engine gets wrong");
  return axes->empty() ? r.instead(node, "Abs", {node.input(0)}) : Result<bool>(false);
}

/// The engine says the lowest float.
Result<bool> largest_of_nothing(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto& x = r.of(node.input(0));
  if (!x.shape || !is_float(dtype_from_onnx(x.elem)) || std::ranges::count(x.shape->dims(), 0) == 0)
    return false;
  return r.unfit(node, "the maximum of nothing is not -inf in the engine");
}

/// The engine fuses what follows a reduction into it. Where one dimension of three is reduced, and
/// not the middle one, it takes the fused constants of other channels (seen with OpenVINO
/// 2026.4.1).
bool takes_other_channels(const Rewriter& r, const ::onnx::NodeProto& head) {
  const auto& x = r.of(input_of(head, 0));
  if (x.shape && x.rank() != 3) return false;
  if (head.op_type().starts_with("Global")) return true;  // Dimension 2 is the only one left.
  if (!head.op_type().starts_with("Reduce")) return false;
  const auto axes = axes_of(r, head);
  if (!axes) return true;
  return axes->size() == 1 && axes->front() != 1 && axes->front() != -2;
}

/// True unless the constant is one value, or has several in more than one dimension, which the
/// engine does not fuse.
bool may_be_fused(const ValueFacts& constant) {
  if (!constant.shape) return true;
  const auto& dims = constant.shape->dims();
  return std::ranges::count_if(dims, [](std::int64_t d) { return d != 1; }) == 1;
}

/// The only input that is computed at run time; -1 when there are none or several.
int varying_input(const Rewriter& r, const ::onnx::NodeProto& node) {
  int found = -1;
  for (int i = 0; i < node.input_size(); ++i) {
    if (node.input(i).empty() || r.is_fixed(node.input(i))) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/// Two more dimensions of size 1 at the end. The engine makes one of them the reduction's own, two
/// it cannot, and fuses no further.
class Apart {
 public:
  /// `rank`: of the widest value; -1 unknown.
  Apart(Rewriter& r, std::int64_t rank) : r_(r), rank_(rank) {}
  bool possible() const { return r_.opset() >= 11 || rank_ >= 0; }
  std::string widened(const std::string& x) const { return r_.unsqueeze(x, axes(r_.of(x).rank())); }
  void narrow(const std::string& y, const std::string& x) const {
    if (r_.opset() < 13)
      r_.define({y}, "Squeeze", {x}, {{"axes", axes(rank_)}});
    else
      r_.define({y}, "Squeeze", {x, r_.ints(axes(rank_))});
  }

 private:
  /// Counted from the end where the operator set allows it.
  Ints axes(std::int64_t rank) const {
    return r_.opset() >= 11 ? Ints{-2, -1} : Ints{rank, rank + 1};
  }
  Rewriter& r_;
  std::int64_t rank_;
};

/// More dimensions than the reduction's: rewritten already.
bool is_apart(const Rewriter& r, const std::string& x) {
  const std::int64_t rank = r.of(x).rank();
  return rank > 3 || (rank < 0 && r.made_by(x) == "Unsqueeze");
}

/// A constant for each channel after such a reduction, directly or after other such operators.
Result<bool> apart_from_reduction(Rewriter& r, const ::onnx::NodeProto& node) {
  const int data = varying_input(r, node);
  const auto* head = data < 0 ? nullptr : r.chain_head(node.input(data));
  if (head == nullptr || node.output_size() != 1 || !takes_other_channels(r, *head)) return false;
  if (is_apart(r, node.input(data))) return false;
  // Vectors along dimension 1, which stays where it is.
  const bool vectors = node.op_type() == "BatchNormalization";
  if (vectors && data != 0) return false;
  std::int64_t rank = 0;
  bool fused = false;
  for (int i = 0; i < node.input_size(); ++i) {
    const auto& in = r.of(node.input(i));
    if (i != data) fused = fused || may_be_fused(in);
    if (i != data && vectors) continue;
    rank = in.shape && rank >= 0 ? std::max(rank, in.rank()) : -1;
  }
  const Apart apart(r, rank);
  if (!fused || !apart.possible()) return false;
  ::onnx::NodeProto wide = node;
  for (int i = 0; i < node.input_size(); ++i)
    if (i == data || !vectors) wide.set_input(i, apart.widened(node.input(i)));
  const std::string y = r.fresh_name(node.op_type());
  wide.set_output(0, y);
  r.emit(std::move(wide));
  apart.narrow(node.output(0), y);
  return true;
}

/// The engine fuses a quantization too. A maximum or minimum is then kept in 8 bits before it is
/// quantized; and of scales for each channel it takes others, here for any reduction.
Result<bool> quantized_reduction(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::string& x = node.input(0);
  const auto* head = r.chain_head(x);
  if (head == nullptr) return false;
  const std::string& op = head->op_type();
  const bool extreme = op == "ReduceMax" || op == "ReduceMin" || op == "GlobalMaxPool";
  const bool reduction = op.starts_with("Reduce") || op.starts_with("Global");
  const bool channels = reduction && may_be_fused(r.of(node.input(1)));
  const Apart apart(r, r.of(x).rank());
  const std::int32_t elem = r.of(x).elem;
  if (!(extreme || channels) || !apart.possible() || !is_float(dtype_from_onnx(elem))) return false;
  // An operator between the reshapes, which would cancel each other; rewritten already where it is
  // there.
  const double lowest = elem == ::onnx::TensorProto::FLOAT16 ? -65504 : -3.3895e38;  // bfloat16's.
  const auto* before = r.maker(x);
  if (before->op_type() == "Squeeze" && r.made_by(before->input(0)) == "Max") return false;
  const std::string wide = r.add("Max", {apart.widened(x), r.scalar(elem, lowest)});
  const std::string narrow = r.fresh_name("Squeeze");
  apart.narrow(narrow, wide);
  ::onnx::NodeProto quantize = node;
  quantize.set_input(0, narrow);
  r.emit(std::move(quantize));
  return true;
}

constexpr std::string_view kAxesAttribute = "operator set 13 to 17: for the other engine";
constexpr std::string_view kApart = "constants for each channel: kept apart from the reduction";

constexpr Rule kReductionRules[] = {
    {"ReduceL1", axes_as_attribute, kAxesAttribute},
    {"ReduceLogSum", axes_as_attribute, kAxesAttribute},
    {"ReduceLogSumExp", axes_as_attribute, kAxesAttribute},
    {"ReduceMax", largest_of_nothing, "of no elements: for the other engine"},
    {"ReduceL1", norm_of_each, "along no dimension: an Abs"},
    {"ReduceL2", norm_of_each, "along no dimension: an Abs"},
    {"ReduceLogSum", log_of_each, "along no dimension: a Log"},
    {"Add", apart_from_reduction, kApart},
    {"BatchNormalization", apart_from_reduction, kApart},
    {"Div", apart_from_reduction, kApart},
    {"Mean", apart_from_reduction, kApart},
    {"Mul", apart_from_reduction, kApart},
    {"PRelu", apart_from_reduction, kApart},
    {"QuantizeLinear", quantized_reduction, "after a reduction: kept apart from it"},
    {"Sub", apart_from_reduction, kApart},
    {"Sum", apart_from_reduction, kApart},
};

}  // namespace

std::span<const Rule> reduction_rules() { return kReductionRules; }

}  // namespace corelane::onnx
