#include "onnx/infer/onnx_infer.h"

#include <algorithm>
#include <unordered_set>

#include "base/leaked.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_unary.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// Their output has the shape of input 0.
Leaked<const std::unordered_set<std::string_view>> kSameAsInput({// clang-format off
    "CumSum", "CumProd", "Hardmax", "LogSoftmax", "LRN", "LpNormalization",
    "MeanVarianceNormalization", "Softmax", "Trilu", "BitwiseNot", "ScatterElements",
    "ScatterND", "Scatter", "InstanceNormalization", "GroupNormalization", "RMSNormalization",
    "ImageScaler", "ReverseSequence", "RotaryEmbedding", "EyeLike", "Bernoulli"});
// clang-format on
Leaked<const std::unordered_set<std::string_view>> kArithmetic(
    {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Mean", "Sum", "PRelu", "BitShift",
     "BitwiseAnd", "BitwiseOr", "BitwiseXor", "And", "Or", "Xor"});
Leaked<const std::unordered_set<std::string_view>> kCompare({"Equal", "Less", "Greater",
                                                             "LessOrEqual", "GreaterOrEqual"});

/// An overflow is unknown, not a value: engines differ in what they compute there.
std::int64_t fold_one(std::string_view op, std::int64_t a, std::int64_t b) {
  if (a == kUnknownInt || b == kUnknownInt) return kUnknownInt;
  std::int64_t r = 0;
  if (op == "Add" && !__builtin_add_overflow(a, b, &r)) return r;
  if (op == "Sub" && !__builtin_sub_overflow(a, b, &r)) return r;
  if (op == "Mul" && !__builtin_mul_overflow(a, b, &r)) return r;
  // ONNX divides integers towards zero, as C++ does. INT64_MIN stands for an unknown value, so the
  // value above it is the least.
  if (op == "Div" && b != 0 && !(a == kUnknownInt + 1 && b == -1)) return a / b;
  if (op == "Equal") return a == b ? 1 : 0;
  if (op == "Less") return a < b ? 1 : 0;
  if (op == "Greater") return a > b ? 1 : 0;
  if (op == "LessOrEqual") return a <= b ? 1 : 0;
  if (op == "GreaterOrEqual") return a >= b ? 1 : 0;
  if (op == "And") return a != 0 && b != 0 ? 1 : 0;
  if (op == "Or") return a != 0 || b != 0 ? 1 : 0;
  if (op == "Max") return std::max(a, b);
  if (op == "Min") return std::min(a, b);
  return kUnknownInt;
}

/// Integer arithmetic on shape-like values.
void fold(const InferContext& c, ValueFacts& result) {
  if (c.node.input_size() != 2 || !c.in(0).ints || !c.in(1).ints || !result.shape) return;
  const auto wide = [](std::int32_t t) { return t == T::INT64 || t == T::INT32 || t == T::BOOL; };
  // Shapes are i64. Narrow integers wrap around in ways that are not followed here.
  if (!wide(result.elem) || !wide(c.in(0).elem)) return;
  const auto& a = *c.in(0).ints;
  const auto& b = *c.in(1).ints;
  // A list against a list of its length, or against one value: what exporters make of shapes.
  const std::size_t n = std::max(a.size(), b.size());
  if (a.empty() || b.empty() || (a.size() != n && a.size() != 1) ||
      (b.size() != n && b.size() != 1) || result.shape->elements() != n) {
    return;
  }
  std::vector<std::int64_t> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = fold_one(c.node.op_type(), a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
  result.ints = std::move(values);
}

/// Inputs from `first` on; their dimensions meet from the last one on, as in numpy.
void infer_broadcast(const InferContext& c, std::int32_t elem, int first) {
  std::optional<Shape> shape = c.in(first).shape;
  for (int i = first + 1; i < c.node.input_size(); ++i) shape = broadcast(shape, c.in(i).shape);
  ValueFacts result{elem, shape, std::nullopt, std::nullopt};
  fold(c, result);
  c.set(0, std::move(result));
}

/// nullopt: sizes that do not go together.
std::optional<std::int64_t> broadcast_dim(std::int64_t a, std::int64_t b) {
  if (a == b) return a;
  if (a == 1) return b;
  if (b == 1) return a;
  // Open against n > 1: only n can come out. 0 against open: 0.
  if (a == Shape::kOpen) return b;
  if (b == Shape::kOpen) return a;
  return std::nullopt;
}

void infer_constant(const InferContext& c) {
  // Exactly one of these is set. Strings and sparse tensors are of no use here.
  if (const auto* value = find_attribute(c.node, "value"); value != nullptr && value->has_t()) {
    c.facts.learn(c.node.output(0), value->t(), c.constants);
  } else if (const auto* i = find_attribute(c.node, "value_int"); i != nullptr) {
    c.set(0, {T::INT64, Shape{}, std::vector<std::int64_t>{i->i()}, std::nullopt});
  } else if (const auto* is = find_attribute(c.node, "value_ints"); is != nullptr) {
    c.set(0, {T::INT64, Shape{is->ints_size()},
              std::vector<std::int64_t>(is->ints().begin(), is->ints().end()), std::nullopt});
  } else if (const auto* one = find_attribute(c.node, "value_float"); one != nullptr) {
    c.set(0, {T::FLOAT, Shape{}, std::nullopt, std::vector<double>{one->f()}});
  } else if (const auto* f = find_attribute(c.node, "value_floats"); f != nullptr) {
    c.set(0, {T::FLOAT, Shape{f->floats_size()}, std::nullopt,
              std::vector<double>(f->floats().begin(), f->floats().end())});
  }
}

/// False when the operator is not one of those here, whose outputs follow element by element.
bool infer_elementwise(const InferContext& c) {
  const std::string& op = c.node.op_type();
  if (is_unary(op) || kSameAsInput->contains(op)) {
    // Values survive where they are handed on: Identity, and Not of booleans.
    ValueFacts same = c.in(0);
    if (op == "Not" && same.ints) {
      for (auto& v : *same.ints) v = v == kUnknownInt ? v : (v == 0 ? 1 : 0);
    } else if (op != "Identity") {
      same.ints.reset();
      same.floats.reset();
    }
    // Both take a type of their own.
    if (op == "EyeLike" || op == "Bernoulli")
      same.elem = static_cast<std::int32_t>(int_attribute(c.node, "dtype", same.elem));
    c.set(0, std::move(same));
  } else if (kArithmetic->contains(op)) {
    infer_broadcast(c, c.in(0).elem, 0);
  } else if (kCompare->contains(op)) {
    infer_broadcast(c, T::BOOL, 0);
  } else if (op == "IsNaN" || op == "IsInf") {
    c.set(0, T::BOOL, c.in(0).shape);
  } else if (op == "Where") {
    const auto shape = broadcast(c.in(0).shape, broadcast(c.in(1).shape, c.in(2).shape));
    c.set(0, c.in(1).elem, shape);
  } else if (op == "Cast") {
    ValueFacts cast = c.in(0);
    cast.elem = static_cast<std::int32_t>(int_attribute(c.node, "to", 0));
    const DType to = dtype_from_onnx(cast.elem);
    // Shape arithmetic goes through casts between i64 and i32; other integers may wrap around.
    if (to == DType::kBool && cast.ints)
      for (auto& v : *cast.ints) v = v == kUnknownInt ? v : (v == 0 ? 0 : 1);
    else if (to != DType::kI64 && to != DType::kI32)
      cast.ints.reset();
    if (!is_float(to)) cast.floats.reset();
    c.set(0, std::move(cast));
  } else if (op == "CastLike") {
    ValueFacts cast = c.in(0);
    cast.elem = c.in(1).elem;
    cast.ints.reset();
    if (!is_float(dtype_from_onnx(cast.elem))) cast.floats.reset();
    c.set(0, std::move(cast));
  } else if (op == "Dropout") {
    c.set(0, c.in(0).elem, c.in(0).shape);
    // The mask is of booleans since operator set 10.
    c.set(1, c.opset >= 10 ? T::BOOL : c.in(0).elem, c.in(0).shape);
  } else if (op == "Constant") {
    infer_constant(c);
  } else {
    return false;
  }
  return true;
}

}  // namespace

const ValueFacts& sound(const ValueFacts& facts) {
  static Leaked<const ValueFacts> nothing;
  // Rules index dimensions and multiply them: they must not meet a size below -1.
  if (!facts.shape) return facts;
  const auto& dims = facts.shape->dims();
  const bool possible =
      dims.size() <= kMostDims &&
      std::all_of(dims.begin(), dims.end(), [](std::int64_t d) { return d >= Shape::kOpen; });
  return possible ? facts : *nothing;
}

void InferContext::set(int output, std::int32_t elem, std::optional<Shape> shape) const {
  set(output, ValueFacts{elem, std::move(shape), std::nullopt, std::nullopt});
}

void InferContext::set(int output, ValueFacts known) const {
  if (!has_output(node, output)) return;
  const std::string& name = node.output(output);
  const ValueFacts& declared = facts.of(name);
  // What a rule does not find out, the file may say.
  if (known.elem == 0) known.elem = declared.elem;
  if (!known.shape) known.shape = declared.shape;
  // What the file declares fills dimensions that stay open here.
  if (declared.shape && known.shape && declared.shape->rank() == known.shape->rank()) {
    for (std::size_t i = 0; i < known.shape->rank(); ++i)
      if ((*known.shape)[i] == Shape::kOpen) (*known.shape)[i] = (*declared.shape)[i];
  }
  // A chain of Unsqueezes may ask for any rank.
  if (known.shape && known.shape->rank() > kMostDims) known.shape.reset();
  for (std::size_t i = 0; known.shape && i < known.shape->rank(); ++i)
    if ((*known.shape)[i] < 0) (*known.shape)[i] = Shape::kOpen;
  const auto elements = known.shape ? known.shape->elements() : std::nullopt;
  // A list that is shorter or longer than its tensor would be read past its end.
  const auto fits = [&](const auto& list) {
    return elements == list->size() && list->size() <= kMostKept;
  };
  if (known.ints && !fits(known.ints)) known.ints.reset();
  if (known.floats && !fits(known.floats)) known.floats.reset();
  facts.set(name, std::move(known));
}

std::optional<std::vector<std::int64_t>> InferContext::ints_of(int i,
                                                               std::string_view attribute) const {
  // Attributes became inputs with operator sets 10 to 18; an input that is there but not known must
  // not be taken for a missing one.
  if (!input_of(node, i).empty()) return in(i).ints;
  if (const auto* a = find_attribute(node, attribute); a != nullptr)
    return std::vector<std::int64_t>(a->ints().begin(), a->ints().end());
  return std::nullopt;
}

std::optional<std::size_t> normal_axis(std::int64_t axis, std::size_t rank) {
  const auto n = static_cast<std::int64_t>(rank);
  if (axis < -n || axis >= n) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + n : axis);
}

std::optional<Shape> broadcast(const std::optional<Shape>& a, const std::optional<Shape>& b) {
  if (!a || !b) return std::nullopt;
  const std::size_t rank = std::max(a->rank(), b->rank());
  std::vector<std::int64_t> dims(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t x = i + a->rank() < rank ? 1 : (*a)[i + a->rank() - rank];
    const std::int64_t y = i + b->rank() < rank ? 1 : (*b)[i + b->rank() - rank];
    const auto d = broadcast_dim(x, y);
    if (!d) return std::nullopt;
    dims[i] = *d;
  }
  return Shape(std::move(dims));
}

void infer_node(const ::onnx::NodeProto& node, std::int64_t opset, ByteSpan constants,
                FactsTable& facts) {
  const InferContext c{node, opset, constants, facts};
  // The two of com.microsoft are those of the standard for more types.
  const bool contrib = node.domain() == "com.microsoft" &&
                       (node.op_type() == "QuantizeLinear" || node.op_type() == "DequantizeLinear");
  // Of an operator that is not known here nothing is claimed but what the file declares.
  if (!is_standard_domain(node.domain()) && !contrib) return;
  if (node.output_size() == 0) return;
  if (infer_elementwise(c)) return;
  for (const auto* table : {&shape_inference(), &layer_inference()})
    if (const auto it = table->find(node.op_type()); it != table->end()) return it->second(c);
}

}  // namespace corelane::onnx
