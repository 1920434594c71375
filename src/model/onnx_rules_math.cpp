// Rules for single operators that the engine has no conversion for, or computes wrongly.
#include <algorithm>
#include <cmath>

#include "model/onnx_infer.h"
#include "model/onnx_rules.h"

namespace corelane::onnx_import {
namespace {

using T = onnx::TensorProto;

/// numpy's mod: the sign of the divisor.
Result<bool> float_mod(Rewriter& r, const onnx::NodeProto& node) {
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (!is_float(dtype_of(elem)) || int_attribute(node, "fmod", 0) != 0) return false;
  const std::string& b = node.input(1);
  const std::string zero = r.scalar(elem, 0);
  const std::string rest = r.add("Mod", {node.input(0), b}, {{"fmod", 1}});
  const std::string other_sign =
      r.add("Less", {r.add("Mul", {r.add("Sign", {rest}), r.add("Sign", {b})}), zero});
  r.define({node.output(0)}, "Where", {other_sign, r.add("Add", {rest, b}), rest});
  return true;
}

/// The product of each prefix, by doubling: log2(n) multiplications with shifted copies.
Result<bool> cum_prod(Rewriter& r, const onnx::NodeProto& node) {
  const auto x = r.of(node.input(0));
  const auto& axis_fact = r.of(node.input(1));
  if (!x.is_static() || !axis_fact.known_ints() || axis_fact.ints->size() != 1) {
    return r.refuse(node,
                    "the engine has no CumProd; it can be written out only for a fixed "
                    "shape and a constant axis");
  }
  const auto axis = normal_axis(axis_fact.ints->front(), x.shape->rank());
  if (!axis) return false;
  const auto at = static_cast<std::int64_t>(*axis);
  const std::int64_t n = (*x.shape)[*axis];
  const bool reverse = int_attribute(node, "reverse", 0) != 0;
  const auto shifted = [&](const std::string& value, std::int64_t by) {
    Shape block = *x.shape;
    block[*axis] = by;
    const std::string ones =
        r.values(x.elem, block.dims(), std::vector<double>(block.elements().value_or(0), 1.0));
    if (by >= n) return ones;
    const std::string part = reverse ? r.slice(value, at, by, n) : r.slice(value, at, 0, n - by);
    return reverse ? r.concat({part, ones}, at) : r.concat({ones, part}, at);
  };
  std::string value = node.input(0);
  if (int_attribute(node, "exclusive", 0) != 0) value = shifted(value, 1);
  for (std::int64_t by = 1; by < n; by *= 2) value = r.add("Mul", {value, shifted(value, by)});
  r.define({node.output(0)}, "Identity", {value});
  return true;
}

Result<bool> celu(Rewriter& r, const onnx::NodeProto& node) {
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (elem == T::FLOAT || !is_float(dtype_of(elem))) return false;
  const double alpha = float_attribute(node, "alpha", 1.0f);
  const std::string zero = r.scalar(elem, 0);
  const std::string a = r.scalar(elem, alpha);
  const std::string& x = node.input(0);
  const std::string grown =
      r.add("Mul", {a, r.add("Sub", {r.add("Exp", {r.add("Div", {x, a})}), r.scalar(elem, 1)})});
  r.define({node.output(0)}, "Add", {r.add("Max", {x, zero}), r.add("Min", {grown, zero})});
  return true;
}

Result<bool> swiglu(Rewriter& r, const onnx::NodeProto& node) {
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (elem == 0) return false;
  const std::string& a = node.input(0);
  const std::string gate =
      r.add("Sigmoid", {r.add("Mul", {a, r.scalar(elem, float_attribute(node, "alpha", 1.0f))})});
  r.define({node.output(0)}, "Mul", {r.add("Mul", {a, gate}), node.input(1)});
  return true;
}

/// With ignore_index: gather the target's score, weigh it, reduce.
Result<bool> nll_loss(Rewriter& r, const onnx::NodeProto& node) {
  const auto* ignore = find_attribute(node, "ignore_index");
  const auto x = r.of(node.input(0));
  const auto target = r.of(node.input(1));
  if (ignore == nullptr || x.elem == 0 || target.elem == 0) return false;
  const std::string& weight = input_of(node, 2);
  const std::string reduction = string_attribute(node, "reduction", "mean");
  const std::string zero_int = r.values(target.elem, {}, {0});
  const std::string ignored = r.add(
      "Equal", {node.input(1), r.values(target.elem, {}, {static_cast<double>(ignore->i())})});
  const std::string chosen = r.add("Where", {ignored, zero_int, node.input(1)});
  const std::string score = r.squeeze(
      r.add("GatherElements", {node.input(0), r.unsqueeze(chosen, {1})}, {{"axis", 1}}), {1});
  const std::string each =
      weight.empty() ? r.scalar(x.elem, 1) : r.add("Gather", {weight, chosen}, {{"axis", 0}});
  const std::string weights = r.add("Where", {ignored, r.scalar(x.elem, 0), each});
  const std::string loss = r.add("Neg", {r.add("Mul", {score, weights})});
  if (reduction == "none") {
    r.define({node.output(0)}, "Identity", {loss});
    return true;
  }
  Ints all;
  for (std::int64_t i = 0; i < std::max<std::int64_t>(target.rank(), 1); ++i) all.push_back(i);
  const std::string sum = r.reduce("ReduceSum", loss, all, false);
  if (reduction == "sum") {
    r.define({node.output(0)}, "Identity", {sum});
  } else {
    r.define({node.output(0)}, "Div", {sum, r.reduce("ReduceSum", weights, all, false)});
  }
  return true;
}

constexpr Rule kRules[] = {
    {"Mod", float_mod, "floats with fmod=0: the sign of the divisor, written out"},
    {"CumProd", cum_prod, "written out as products with shifted copies"},
    {"Celu", celu, "16-bit floats: written out"},
    {"SwiGLU", swiglu, "written out"},
    {"NegativeLogLikelihoodLoss", nll_loss, "with ignore_index: gathers and sums"},
};

}  // namespace

std::span<const Rule> math_rules() { return kRules; }

}  // namespace corelane::onnx_import
