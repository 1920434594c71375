// Rules about element types and about nodes whose result is known without running them.
#include <cmath>

#include "onnx/graph/onnx_tensor.h"
#include "onnx/lowering/onnx_inline.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

Result<bool> cast_like(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t to = r.of(input_of(node, 1)).elem;
  if (to == 0) return false;
  Attrs attrs{{"to", to}};
  for (const char* name : {"saturate"})
    if (const auto* a = find_attribute(node, name)) attrs.emplace_back(name, a->i());
  if (const auto* a = find_attribute(node, "round_mode")) attrs.emplace_back("round_mode", a->s());
  r.define({node.output(0)}, "Cast", {node.input(0)}, attrs);
  return true;
}

/// Casts between integers of one width keep the bits, which is what Cast does with them.
Result<bool> bit_cast(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t from = r.of(node.input(0)).elem;
  const auto to = static_cast<std::int32_t>(int_attribute(node, "to", 0));
  const auto integer = [](std::int32_t t) {
    return is_integer(dtype_from_onnx(t)) || dtype_from_onnx(t) == DType::kBool;
  };
  if (!integer(from) || !integer(to) || onnx_type_bits(from) != onnx_type_bits(to) ||
      dtype_from_onnx(to) == DType::kBool) {
    return false;
  }
  r.define({node.output(0)}, "Cast", {node.input(0)}, {{"to", to}});
  return true;
}

Result<bool> constant_if(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto& condition = r.of(node.input(0));
  if (!condition.known_ints() || condition.ints->size() != 1) return false;
  const auto* branch =
      find_attribute(node, condition.ints->front() != 0 ? "then_branch" : "else_branch");
  if (branch == nullptr || !branch->has_g() || branch->g().input_size() != 0) return false;
  const Names outputs = inline_graph(r, branch->g(), {}, inline_constants(r, branch->g()));
  for (int i = 0; i < node.output_size() && i < branch->g().output_size(); ++i) {
    if (node.output(i).empty()) continue;
    r.define({node.output(i)}, "Identity", {outputs[static_cast<std::size_t>(i)]});
  }
  return true;
}

bool is_flex(const ::onnx::NodeProto& node) { return node.domain() == "ai.onnx.preview"; }

/// A modifier subgraph of FlexAttention on one value.
std::string apply_modifier(Rewriter& r, const ::onnx::NodeProto& node, const char* name,
                           const std::string& x) {
  const auto* a = find_attribute(node, name);
  if (a == nullptr || !a->has_g() || a->g().input_size() != 1 || a->g().output_size() != 1)
    return x;
  return inline_graph(r, a->g(), {x}, inline_constants(r, a->g())).front();
}

Result<bool> flex_attention(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto& q = r.of(node.input(0));
  const auto& k = r.of(node.input(1));
  const auto& v = r.of(node.input(2));
  if (!is_flex(node) || q.rank() != 4 || !k.is_static() || !v.is_static() || !q.is_static())
    return false;
  const auto serves = [&](const ValueFacts& x) {
    return x.rank() == 4 && (*x.shape)[1] > 0 && (*q.shape)[1] % (*x.shape)[1] == 0;
  };
  if (!serves(k) || !serves(v)) return false;
  const std::int32_t elem = q.elem;
  const auto precision = static_cast<std::int32_t>(
      int_attribute(node, "softmax_precision", elem == T::DOUBLE ? T::DOUBLE : T::FLOAT));
  const double head = static_cast<double>((*q.shape)[3]);
  const auto* scale_attr = find_attribute(node, "scale");
  const double scale = scale_attr != nullptr ? scale_attr->f() : 1.0 / std::sqrt(head);
  const auto repeat = [&](const std::string& x, const Shape& shape) {
    const std::int64_t group = (*q.shape)[1] / shape[1];
    if (group == 1) return x;
    const std::string wide = r.add(
        "Expand", {r.unsqueeze(x, {2}), r.ints({shape[0], shape[1], group, shape[2], shape[3]})});
    return r.reshape(wide, {shape[0], shape[1] * group, shape[2], shape[3]});
  };
  const std::string keys = repeat(node.input(1), *k.shape);
  const std::string values = repeat(node.input(2), *v.shape);
  std::string scores = r.add("MatMul", {r.cast(node.input(0), precision),
                                        r.transpose(r.cast(keys, precision), {0, 1, 3, 2})});
  scores = r.add("Mul", {scores, r.scalar(precision, scale)});
  scores = apply_modifier(r, node, "score_mod", scores);
  std::string probs = r.add("Softmax", {scores}, {{"axis", -1}});
  probs = apply_modifier(r, node, "prob_mod", probs);
  const std::string y = r.add("MatMul", {probs, r.cast(values, precision)});
  r.define({node.output(0)}, "Cast", {y}, {{"to", elem}});
  return true;
}

Result<bool> has_element(Rewriter& r, const ::onnx::NodeProto& node) {
  const bool has = !input_of(node, 0).empty();
  r.define({node.output(0)}, "Identity", {r.scalar(T::BOOL, has ? 1 : 0)});
  return true;
}

Result<bool> get_element(Rewriter& r, const ::onnx::NodeProto& node) {
  r.define({node.output(0)}, "Identity", {node.input(0)});
  return true;
}

constexpr Rule kRules[] = {
    {"CastLike", cast_like, "the type is known: a Cast"},
    {"BitCast", bit_cast, "between integers of one width: a Cast"},
    {"If", constant_if, "the condition is known: replaced by its branch"},
    {"FlexAttention", flex_attention, "written out as matrix products and a softmax"},
    {"OptionalHasElement", has_element, "known from the graph"},
    {"OptionalGetElement", get_element, "the tensor itself"},
};

}  // namespace

std::span<const Rule> cast_rules() { return kRules; }

}  // namespace corelane::onnx
