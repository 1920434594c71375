// Rules for single operators that the engine has no conversion for, or computes wrongly.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// The rest of a finite number divided by infinity is that number; the engine says NaN.
std::string rest_by_infinity(Rewriter& r, const ::onnx::NodeProto& node, const std::string& rest) {
  const std::string a = r.cast(node.input(0), T::FLOAT);
  const std::string b = r.cast(node.input(1), T::FLOAT);
  const std::string whole =
      r.add("And", {r.add("IsInf", {b}), r.add("Not", {r.add("IsInf", {a})})});
  return r.add("Where", {whole, node.input(0), rest});
}

/// numpy's mod: the sign of the divisor.
Result<bool> float_mod(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (!is_float(dtype_from_onnx(elem)) || int_attribute(node, "fmod", 0) != 0) return false;
  const std::string& b = node.input(1);
  const std::string zero = r.scalar(elem, 0);
  // fmod: the sign of the dividend. Where it differs from the divisor's, one divisor is added.
  std::string rest = r.add("Mod", {node.input(0), b}, {{"fmod", 1}});
  if (!r.is_fixed(b)) rest = rest_by_infinity(r, node, rest);
  const std::string other_sign =
      r.add("Less", {r.add("Mul", {r.add("Sign", {rest}), r.add("Sign", {b})}), zero});
  return r.instead(node, "Where", {other_sign, r.add("Add", {rest, b}), rest});
}

/// 7 / 2 is 4 for the engine, which divides bytes as floats and rounds.
Result<bool> byte_division(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (elem != T::INT8 && elem != T::UINT8) return false;
  return r.unfit(node, "bytes are divided as floats and rounded by the engine");
}

/// The engine's compiler divides constants as the processor does, which traps on the smallest
/// integer by -1.
Result<bool> constant_division(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (elem != T::INT32 && elem != T::INT64) return false;
  if (!r.is_fixed(node.input(0)) || !r.is_fixed(node.input(1))) return false;
  const ValueFacts& divisor = r.of(node.input(1));
  if (divisor.known_ints() && std::ranges::find(*divisor.ints, -1) == divisor.ints->end())
    return false;
  const ValueFacts& a = r.of(node.input(0));
  // The smallest of int64 counts as unknown.
  constexpr std::int64_t kSmallest = std::numeric_limits<std::int32_t>::min();
  if (a.known_ints() && std::ranges::find(*a.ints, kSmallest) == a.ints->end()) return false;
  return r.unfit(node, "the smallest integer by -1 ends the process in the engine");
}

/// Sizes up to which CumProd is written out: the doublings must not overflow.
constexpr std::int64_t kMostPrefixes = std::int64_t{1} << 40;

/// The product of each prefix, by doubling: log2(n) multiplications with shifted copies.
std::string prefix_products(Rewriter& r, const ::onnx::NodeProto& node, const ValueFacts& x,
                            std::size_t axis) {
  const auto at = static_cast<std::int64_t>(axis);
  const std::int64_t n = (*x.shape)[axis];
  const bool reverse = int_attribute(node, "reverse", 0) != 0;
  // The values moved on by `by` places, ones where none come from.
  const auto shifted = [&](const std::string& value, std::int64_t by) {
    Shape block = *x.shape;
    block[axis] = by;
    std::string ones = r.filled(x.elem, block.dims(), 1.0);
    if (by >= n) return ones;
    const std::string part = reverse ? r.slice(value, at, by, n) : r.slice(value, at, 0, n - by);
    return reverse ? r.concat({part, ones}, at) : r.concat({ones, part}, at);
  };
  std::string value = node.input(0);
  // Exclusive: each place has the product of those before it.
  if (int_attribute(node, "exclusive", 0) != 0) value = shifted(value, 1);
  for (std::int64_t by = 1; by < n; by *= 2) value = r.add("Mul", {value, shifted(value, by)});
  return value;
}

Result<bool> cum_prod(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto x = r.of(node.input(0));
  const auto usual = [](std::int64_t d) { return d <= kMostPrefixes; };
  if (!x.is_static() || x.rank() < 1 || x.rank() > 6 ||
      !std::all_of(x.shape->dims().begin(), x.shape->dims().end(), usual)) {
    return r.unfit(node, "the engine has no CumProd; it can be written out only for a fixed shape");
  }
  if (const auto given = r.of(node.input(1)).one_int()) {
    const auto axis = normal_axis(*given, x.shape->rank());
    if (!axis) return false;
    return r.instead(node, "Identity", {prefix_products(r, node, x, *axis)});
  }
  // The axis comes at run time: all of them, and the one is chosen.
  std::string value = prefix_products(r, node, x, 0);
  const std::string axis = r.cast(node.input(1), T::INT64);
  for (std::size_t a = 1; a < x.shape->rank(); ++a) {
    const auto at = static_cast<std::int64_t>(a);
    // Negative axes count from the end.
    const std::string chosen = r.add("Or", {r.add("Equal", {axis, r.scalar_int(at)}),
                                            r.add("Equal", {axis, r.scalar_int(at - x.rank())})});
    value = r.add("Where", {chosen, prefix_products(r, node, x, a), value});
  }
  return r.instead(node, "Identity", {value});
}

/// The engine's ReduceMax starts from the lowest float of the type, or of float32, so a row of -inf
/// does not compare as such.
Result<bool> equals_negative_infinity(Rewriter& r, const ::onnx::NodeProto& node) {
  for (const int i : {0, 1}) {
    const auto& bound = r.of(node.input(i));
    if (!bound.floats || bound.floats->size() != 1) continue;
    const bool negative = std::isinf(bound.floats->front()) && bound.floats->front() < 0;
    const std::string& x = node.input(1 - i);
    if (!negative || r.made_by(x) != "ReduceMax") continue;
    const double lowest =
        r.of(x).elem == T::BFLOAT16 ? -3.3895313892515355e38 : std::numeric_limits<float>::lowest();
    return r.instead(node, "LessOrEqual",
                     {r.cast(x, T::FLOAT), r.values(T::FLOAT, bound.shape->dims(), {lowest})});
  }
  return false;
}

/// Inference: the input itself, and a mask of ones.
Result<bool> dropout(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto x = r.of(node.input(0));
  const std::string& training = input_of(node, 2);
  // In training mode elements are dropped at random: left to the engine.
  if (!training.empty()) {
    if (r.of(training).one_int() != 0) return false;
  } else if (r.opset() < 7 && int_attribute(node, "is_test", 0) == 0) {
    return false;
  }
  r.define({node.output(0)}, "Identity", {node.input(0)});
  if (has_output(node, 1)) {
    const std::int32_t elem = r.opset() < 10 ? x.elem : static_cast<std::int32_t>(T::BOOL);
    const std::string one = r.scalar(elem, 1);
    r.define({node.output(1)}, "Expand", {one, r.add("Shape", {node.input(0)})});
  }
  return true;
}

/// Determinants of 2x2 and 3x3 matrices.
Result<bool> determinant(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto x = r.of(node.input(0));
  if (x.rank() < 2) return false;
  const std::int64_t n = (*x.shape)[x.shape->rank() - 1];
  if (n != 2 && n != 3) return false;
  // One element of each matrix, without its two dimensions.
  const auto cell = [&](std::int64_t i, std::int64_t j) {
    const std::string row = r.slice(node.input(0), x.rank() - 2, i, i + 1);
    return r.squeeze(r.slice(row, x.rank() - 1, j, j + 1), {-2, -1});
  };
  // The determinant of rows i, j and columns k, l.
  const auto minor = [&](std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l) {
    return r.add("Sub",
                 {r.add("Mul", {cell(i, k), cell(j, l)}), r.add("Mul", {cell(i, l), cell(j, k)})});
  };
  if (n == 2) return r.instead(node, "Identity", {minor(0, 1, 0, 1)});
  // Along the first row.
  const std::string a = r.add("Mul", {cell(0, 0), minor(1, 2, 1, 2)});
  const std::string b = r.add("Mul", {cell(0, 1), minor(1, 2, 0, 2)});
  const std::string c = r.add("Mul", {cell(0, 2), minor(1, 2, 0, 1)});
  return r.instead(node, "Add", {r.add("Sub", {a, b}), c});
}

/// max(x, 0) + min(a * (exp(x / a) - 1), 0). The engine's own is for f32.
Result<bool> celu(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (elem == T::FLOAT || !is_float(dtype_from_onnx(elem))) return false;
  const double alpha = float_attribute(node, "alpha", 1.0f);
  const std::string zero = r.scalar(elem, 0);
  const std::string a = r.scalar(elem, alpha);
  const std::string& x = node.input(0);
  const std::string grown =
      r.add("Mul", {a, r.add("Sub", {r.add("Exp", {r.add("Div", {x, a})}), r.scalar(elem, 1)})});
  return r.instead(node, "Add", {r.add("Max", {x, zero}), r.add("Min", {grown, zero})});
}

/// a * sigmoid(alpha * a) * b.
Result<bool> swiglu(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (elem == 0) return false;
  const std::string& a = node.input(0);
  const std::string gate =
      r.add("Sigmoid", {r.add("Mul", {a, r.scalar(elem, float_attribute(node, "alpha", 1.0f))})});
  return r.instead(node, "Mul", {r.add("Mul", {a, gate}), node.input(1)});
}

/// Without ignore_index the engine is right.
Result<bool> ignoring_loss(Rewriter& r, const ::onnx::NodeProto& node) {
  if (find_attribute(node, "ignore_index") == nullptr) return false;
  return r.unfit(node, "ignore_index is computed wrongly by the engine");
}

/// The engine suppresses boxes from the threshold on, ONNX those above it: the next float.
Result<bool> next_threshold(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::string& threshold = input_of(node, 3);
  // Without a number of boxes there are none.
  if (input_of(node, 2).empty() || r.is_new(threshold)) return false;
  float value = 0;
  if (!threshold.empty()) {
    const auto& given = r.of(threshold);
    if (!given.floats || given.floats->size() != 1)
      return r.unfit(node, "boxes that overlap by just the threshold are suppressed by the engine");
    value = static_cast<float>(given.floats->front());
  }
  // Not a subnormal, which the engine may take for 0.
  const float next = std::max(std::nextafter(value, 2.0f), std::numeric_limits<float>::min());
  ::onnx::NodeProto written = node;
  while (written.input_size() < 4) written.add_input("");
  written.set_input(3, r.values(T::FLOAT, {1}, {value < 0 ? value : next}));
  r.emit(std::move(written));
  return true;
}

/// The engine multiplies by the reciprocals of divisors, which puts some values a step off.
Result<bool> dynamic_quantization(Rewriter& r, const ::onnx::NodeProto& node) {
  return r.unfit(node, "values halfway between two steps are rounded wrongly by the engine");
}

/// Most operators of the engine do not hand NaN on, so a network that looks for it does not find
/// it.
Result<bool> looks_for_nan(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::string& x = node.input(0);
  if (r.is_fixed(x) || r.made_by(x).empty()) return false;
  return r.unfit(node, "the engine does not hand NaN on to it");
}

Result<bool> largest_samples(Rewriter& r, const ::onnx::NodeProto& node) {
  if (string_attribute(node, "mode", "avg") != "max") return false;
  return r.unfit(node, "mode max takes other samples in the engine");
}

constexpr Rule kMathRules[] = {
    {"Mod", float_mod, "floats with fmod=0: the sign of the divisor, written out"},
    {"Div", byte_division, "of bytes: for the other engine"},
    {"Div", constant_division, "of constants by -1: for the other engine"},
    {"Equal", equals_negative_infinity, "a maximum compared with -inf: with the lowest float"},
    {"Dropout", dropout, "inference: an Identity"},
    {"Det", determinant, "2x2 and 3x3: written out, 3 to 4 times as quick as elsewhere"},
    {"CumProd", cum_prod, "written out as products with shifted copies"},
    {"Celu", celu, "16-bit floats: written out"},
    {"SwiGLU", swiglu, "written out"},
    {"NonMaxSuppression", next_threshold, "the threshold's next float: equal overlaps are kept"},
    {"DynamicQuantizeLinear", dynamic_quantization, "for the other engine"},
    {"IsNaN", looks_for_nan, "of values that were computed: for the other engine"},
    {"RoiAlign", largest_samples, "mode max: for the other engine"},
    {"NegativeLogLikelihoodLoss", ignoring_loss, "with ignore_index: for the other engine"},
};

}  // namespace

std::span<const Rule> math_rules() { return kMathRules; }

}  // namespace corelane::onnx
