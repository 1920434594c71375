// Rules about integers that come from shapes, and about tensors without elements.
#include <algorithm>
#include <functional>
#include <limits>

#include "onnx/graph/onnx_checked.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// What is known of integers before a run.
struct Sizes {
  bool from_shapes = false;  ///< Of shapes and constants alone: the compiler computes them.
  bool negative = true;      ///< Some may be.
};

/// Follows integers back to the shapes that they come from.
class SizesWalk {
 public:
  explicit SizesWalk(const Rewriter& r) : r_(r) {}

  Sizes of(const std::string& name) {
    // Values are read by many nodes: a bound on the walk, not on the depth alone.
    constexpr int kMostSteps = 256;
    if (++steps_ > kMostSteps) return {};
    const bool fixed = r_.is_fixed(name);
    if (const ValueFacts& facts = r_.of(name); fixed && facts.known_ints())
      return {true, std::ranges::any_of(*facts.ints, [](std::int64_t n) { return n < 0; })};
    const ::onnx::NodeProto* const node = r_.maker(name);
    if (node == nullptr || node->input_size() == 0) return {fixed, true};
    if (node->op_type() == "Shape" || node->op_type() == "Size") return {true, false};
    return of_node(*node);
  }

 private:
  /// Results are no less than 0 where the inputs are, which inputs a bit each says.
  static unsigned sign_keeper(const ::onnx::NodeProto& node) {
    constexpr std::string_view kOfFirst[] = {"Cast",      "Expand",    "Gather",     "Identity",
                                             "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum",
                                             "Reshape",   "Slice",     "Split",      "Squeeze",
                                             "Tile",      "Transpose", "Unsqueeze"};
    constexpr std::string_view kOfAll[] = {"Add", "Concat", "Div", "Max", "Min", "Mul"};
    const std::string& op = node.op_type();
    if (std::ranges::find(kOfFirst, op) != std::end(kOfFirst)) return 0b1;
    if (std::ranges::find(kOfAll, op) != std::end(kOfAll)) return ~0U;
    // The rest has the sign of the divisor, or with fmod that of the dividend.
    if (op == "Mod") return int_attribute(node, "fmod", 0) == 0 ? 0b10 : 0b1;
    return op == "Where" ? 0b110 : 0;
  }

  Sizes of_node(const ::onnx::NodeProto& node) {
    const unsigned keeper = sign_keeper(node);
    Sizes result{true, keeper == 0};
    bool all_negative = true;
    for (int i = 0; i < node.input_size() && result.from_shapes; ++i) {
      if (node.input(i).empty()) continue;
      const Sizes in = of(node.input(i));
      result.from_shapes = in.from_shapes;
      if ((keeper >> std::min(i, 31) & 1U) == 0) continue;
      result.negative = result.negative || in.negative;
      all_negative = all_negative && in.negative;
    }
    if (node.op_type() == "Max") result.negative = all_negative;
    return result;
  }

  const Rewriter& r_;
  int steps_ = 0;
};

bool is_whole(std::int32_t elem) { return elem == T::INT32 || elem == T::INT64; }

bool is_narrow(std::int64_t n) {
  return n >= std::numeric_limits<std::int32_t>::min() &&
         n <= std::numeric_limits<std::int32_t>::max();
}

/// The result of a node whose integers are all known, for each element of `like`; false where one
/// does not fit into 32 bits.
bool fold(Rewriter& r, const ::onnx::NodeProto& node, const ValueFacts& like,
          const std::function<std::int64_t(std::size_t)>& result) {
  std::vector<double> numbers;  // Of 32 bits, so exact.
  for (std::size_t i = 0; i < like.ints->size(); ++i) {
    const std::int64_t n = result(i);
    if (!is_narrow(n)) return false;
    numbers.push_back(static_cast<double>(n));
  }
  return r.instead(node, "Identity", {r.values(like.elem, like.shape->dims(), numbers)});
}

/// Where both are known and one has the shape of the result, as nearly all of shapes have.
bool fold_quotient(Rewriter& r, const ::onnx::NodeProto& node) {
  const ValueFacts a = r.of(node.input(0));
  const ValueFacts b = r.of(node.input(1));
  if (!a.known_ints() || !b.known_ints() || !a.is_static() || !b.is_static()) return false;
  const bool same = *a.shape == *b.shape;
  const bool by_one = b.ints->size() == 1 && a.rank() >= b.rank();
  if ((!same && !by_one) || !std::ranges::all_of(*a.ints, is_narrow) ||
      std::ranges::count(*b.ints, 0) != 0)
    return false;
  return fold(r, node, a, [&](std::size_t i) { return (*a.ints)[i] / (*b.ints)[same ? i : 0]; });
}

constexpr const char* kRoundsDown = "a quotient of sizes below 0 is rounded down by the engine";

/// a / b of shapes, which the engine's compiler rounds down: the parts above and below 0 apart.
Result<bool> quotient_of_sizes(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (!is_whole(elem)) return false;
  SizesWalk walk(r);
  const Sizes a = walk.of(node.input(0));
  const Sizes b = walk.of(node.input(1));
  if (!a.from_shapes || !b.from_shapes || (!a.negative && !b.negative)) return false;
  if (fold_quotient(r, node)) return true;
  // Before set 8 the engine's Max does not broadcast.
  if (b.negative || r.is_fixed(node.input(0)) || r.opset() < 8) return r.unfit(node, kRoundsDown);
  const std::string zero = r.scalar(elem, 0);
  const std::string& x = node.input(0);
  const std::string above = r.add("Div", {r.add("Max", {x, zero}), node.input(1)});
  const std::string below = r.add("Div", {r.add("Max", {r.add("Neg", {x}), zero}), node.input(1)});
  return r.instead(node, "Sub", {above, below});
}

/// |a| of shapes, which the engine's compiler takes for a.
Result<bool> amount_of_sizes(Rewriter& r, const ::onnx::NodeProto& node) {
  if (!is_whole(r.of(node.input(0)).elem)) return false;
  const Sizes a = SizesWalk(r).of(node.input(0));
  if (!a.from_shapes || !a.negative) return false;
  const ValueFacts x = r.of(node.input(0));
  if (x.known_ints() && x.is_static() &&
      fold(r, node, x, [&](std::size_t i) { return std::max((*x.ints)[i], -(*x.ints)[i]); }))
    return true;
  return r.instead(node, "Max", {node.input(0), r.add("Neg", {node.input(0)})});
}

bool is_empty(const ValueFacts& facts) {
  return facts.shape && std::ranges::count(facts.shape->dims(), 0) != 0;
}

/// The engine takes a constant without elements for a scalar.
Result<bool> empty_operand(Rewriter& r, const ::onnx::NodeProto& node) {
  for (const std::string& name : node.input())
    if (!name.empty() && r.is_fixed(name) && is_empty(r.of(name)))
      return r.unfit(node, "a constant without elements counts as one number in the engine");
  return false;
}

Result<bool> expand_to_nothing(Rewriter& r, const ::onnx::NodeProto& node) {
  const ValueFacts& shape = r.of(input_of(node, 1));
  if (!shape.ints || std::ranges::count(*shape.ints, 0) == 0) return false;
  return r.unfit(node, "a dimension of 0 is ignored by the engine");
}

/// With an axis after dimension 1, the engine takes a first size of 0 for that of the input's
/// dimension 0, and once it knows a second one of 0, that for the input's dimension 1.
Result<bool> flat_nothing(Rewriter& r, const ::onnx::NodeProto& node) {
  const ValueFacts x = r.of(node.input(0));
  std::int64_t axis = int_attribute(node, "axis", 1);
  if (axis < 0) axis += x.rank();
  if (!x.shape || axis < 2 || axis > x.rank()) return false;
  const auto& dims = x.shape->dims();
  const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto is_some = [](std::int64_t d) { return d > 0; };
  const bool some_before = std::all_of(dims.begin(), middle, is_some);
  if (std::all_of(middle, dims.end(), is_some)) {
    const std::int64_t behind = checked_product({middle, dims.end()}).or_open();
    if (some_before || behind < 0) return false;
    return r.instead(node, "Reshape", {node.input(0), r.ints({-1, behind})});
  }
  if (some_before && std::count(middle, dims.end(), 0) == 0) return false;
  return r.unfit(node, "a tensor that may be without elements gets other sizes in the engine");
}

/// The engine has 32 bits of integers and of floats.
Result<bool> wide_filling(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto* const value = find_attribute(node, "value");
  if (value == nullptr || !value->has_t()) return false;
  const std::int32_t elem = value->t().data_type();
  if (elem == T::DOUBLE) return r.unfit(node, "float64 is computed in float32 by the engine");
  if (elem != T::INT64 && elem != T::UINT64 && elem != T::UINT32) return false;
  const auto filling = read_ints(value->t(), {});
  if (filling && std::ranges::all_of(*filling, is_narrow)) return false;
  return r.unfit(node, "the engine cuts a constant to 32 bits");
}

/// The size of input 0 along the node's axis; open where it is not known.
std::int64_t size_along(const Rewriter& r, const ::onnx::NodeProto& node, std::int64_t otherwise) {
  const ValueFacts& x = r.of(node.input(0));
  const auto axis =
      x.shape ? normal_axis(int_attribute(node, "axis", otherwise), x.shape->rank()) : std::nullopt;
  return axis ? (*x.shape)[*axis] : Shape::kOpen;
}

/// True where many elements are likely to be equal: integers, and floats that were made of some.
bool has_few_values(const Rewriter& r, std::string_view name) {
  constexpr std::string_view kFromIntegers[] = {"ArgMax", "ArgMin",  "Cast",   "DequantizeLinear",
                                                "Floor",  "NonZero", "OneHot", "Round"};
  constexpr int kMostNodes = 64;
  std::string at(name);
  for (int i = 0; i < kMostNodes; ++i) {
    const std::int32_t elem = r.of(at).elem;
    if (elem != 0 && !is_float(dtype_from_onnx(elem))) return true;
    const ::onnx::NodeProto* const node = r.maker(at);
    if (node == nullptr || node->input_size() == 0) return false;
    if (std::ranges::find(kFromIntegers, node->op_type()) != std::end(kFromIntegers) ||
        node->op_type().starts_with("QLinear"))
      return true;
    at = node->input(0);
  }
  return false;
}

/// If values are equal, the first ones count. The engine does so only if asked, and then compares
/// each value with each of the k, so it is asked for short lists only (kMostCompared in
/// drivers/virtual/engine/network.cpp). Floats of long lists are seldom equal.
Result<bool> equal_values(Rewriter& r, const ::onnx::NodeProto& node) {
  constexpr std::int64_t kMostCompared = 1 << 16;
  const std::string& count = input_of(node, 1);
  const auto given =
      r.opset() < 10 ? std::optional(int_attribute(node, "k", 0)) : r.of(count).one_int();
  if (given == 1) return false;
  if (given.value_or(1) < 1 || (!given && !SizesWalk(r).of(count).from_shapes))
    return r.unfit(node,
                   "the engine refuses 0 values, which a number that comes with the run may be");
  if (!has_output(node, 1)) return false;
  const std::int64_t along = size_along(r, node, -1);
  if (given && along >= 0 && (Checked(along) * *given).is_within(0, kMostCompared)) return false;
  constexpr const char* kText = "of equal values among many the engine takes others";
  if (has_few_values(r, node.input(0))) return r.unfit(node, kText);
  r.warn(node, kText);
  return false;
}

/// Parts whose sizes the network does not give: the last one has the rest.
Result<bool> uneven_parts(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int64_t parts = int_attribute(node, "num_outputs", 0);
  if (r.opset() < 18 || parts < 2 || !input_of(node, 1).empty()) return false;
  const std::int64_t along = size_along(r, node, 0);
  if (along >= 0 && along % parts == 0) return false;
  return r.unfit(node,
                 "parts of different sizes, or of an open dimension, are empty in the engine");
}

/// The engine finds a place for each.
Result<bool> places_in_fractions(Rewriter& r, const ::onnx::NodeProto& node) {
  if (!is_float(dtype_from_onnx(r.of(node.input(0)).elem))) return false;
  return r.unfit(node, "places that are fractions are rounded by the engine");
}

constexpr std::string_view kEmptyText = "a constant without elements: for the other engine";

constexpr Rule kSizesRules[] = {
    {"Div", quotient_of_sizes, "of shapes: the parts above and below 0 apart"},
    {"Abs", amount_of_sizes, "of shapes: the larger of the value and its negative"},
    {"Expand", expand_to_nothing, "to a dimension of 0: for the other engine"},
    {"Flatten", flat_nothing, "of a tensor that may be without elements: a Reshape"},
    {"ConstantOfShape", wide_filling, "beyond 32 bits: for the other engine"},
    {"TopK", equal_values, "many values with their places: for the other engine"},
    {"Split", uneven_parts, "parts of different sizes: for the other engine"},
    {"OneHot", places_in_fractions, "places that are floats: for the other engine"},
    {"Add", empty_operand, kEmptyText},
    {"And", empty_operand, kEmptyText},
    {"BitwiseAnd", empty_operand, kEmptyText},
    {"BitwiseOr", empty_operand, kEmptyText},
    {"BitwiseXor", empty_operand, kEmptyText},
    {"Div", empty_operand, kEmptyText},
    {"Equal", empty_operand, kEmptyText},
    {"Gemm", empty_operand, kEmptyText},
    {"Greater", empty_operand, kEmptyText},
    {"GreaterOrEqual", empty_operand, kEmptyText},
    {"Less", empty_operand, kEmptyText},
    {"LessOrEqual", empty_operand, kEmptyText},
    {"MatMul", empty_operand, kEmptyText},
    {"Max", empty_operand, kEmptyText},
    {"Mean", empty_operand, kEmptyText},
    {"Min", empty_operand, kEmptyText},
    {"Mod", empty_operand, kEmptyText},
    {"Mul", empty_operand, kEmptyText},
    {"Or", empty_operand, kEmptyText},
    {"PRelu", empty_operand, kEmptyText},
    {"Pow", empty_operand, kEmptyText},
    {"Sub", empty_operand, kEmptyText},
    {"Sum", empty_operand, kEmptyText},
    {"Where", empty_operand, kEmptyText},
    {"Xor", empty_operand, kEmptyText},
};

}  // namespace

std::span<const Rule> sizes_rules() { return kSizesRules; }

}  // namespace corelane::onnx
