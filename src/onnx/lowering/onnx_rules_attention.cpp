// Rules for attention and its relatives, written out where the engine has no conversion, or a
// wrong one: windows, causal masks beside a cache, linear attention, causal convolution.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/lowering/onnx_inline.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

constexpr double kNegInf = -std::numeric_limits<double>::infinity();
constexpr double kLowest = std::numeric_limits<float>::lowest();
/// Sizes up to which attention is written out: sums and products of two do not overflow.
constexpr std::int64_t kMostAlong = std::int64_t{1} << 31;

/// A shape of `rank` known dimensions, none of them beyond what is written out.
bool is_usual(const ValueFacts& facts, std::int64_t rank) {
  return facts.is_static() && facts.rank() == rank &&
         std::all_of(facts.shape->dims().begin(), facts.shape->dims().end(),
                     [](std::int64_t d) { return d <= kMostAlong; });
}

/// What Attention computes, with all shapes known.
struct AttentionParts {
  std::int32_t elem = 0;
  std::int64_t batch = 0, heads = 0, kv_heads = 0, rows = 0, columns = 0, head_size = 0;
  bool packed = false;  ///< Inputs of rank 3.
  std::string q, k, v;  ///< [batch, heads, length, size]
};

/// [B, L, H * D] to [B, H, L, D].
std::string unpack_heads(Rewriter& r, const std::string& x, std::int64_t heads) {
  return r.transpose(r.reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3});
}

std::optional<AttentionParts> attention_parts(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int64_t rank = r.of(node.input(0)).rank();
  if (rank != 3 && rank != 4) return std::nullopt;
  for (int i = 0; i < 3; ++i)
    if (!is_usual(r.of(node.input(i)), rank)) return std::nullopt;
  const Shape q = *r.of(node.input(0)).shape;
  const Shape k = *r.of(node.input(1)).shape;
  AttentionParts p;
  p.elem = r.of(node.input(0)).elem;
  p.packed = rank == 3;
  p.batch = q[0];
  p.heads = p.packed ? int_attribute(node, "q_num_heads", 0) : q[1];
  p.kv_heads = p.packed ? int_attribute(node, "kv_num_heads", 0) : k[1];
  // Query heads are shared out evenly among those of keys and values.
  if (p.heads < 1 || p.kv_heads < 1 || p.heads % p.kv_heads != 0) return std::nullopt;
  p.rows = p.packed ? q[1] : q[2];
  p.columns = p.packed ? k[1] : k[2];
  p.head_size = p.packed ? q[2] / p.heads : q[3];
  p.q = p.packed ? unpack_heads(r, node.input(0), p.heads) : node.input(0);
  p.k = p.packed ? unpack_heads(r, node.input(1), p.kv_heads) : node.input(1);
  p.v = p.packed ? unpack_heads(r, node.input(2), p.kv_heads) : node.input(2);
  return p;
}

/// Each key and value head serves a group of query heads.
std::string repeat_heads(Rewriter& r, const std::string& x, std::int64_t groups) {
  if (groups == 1) return x;
  const Shape s = r.of(x).shape.value_or(Shape{});
  if (s.rank() != 4) return x;  // Only after an error, which stands already.
  const std::string wide =
      r.add("Expand", {r.unsqueeze(x, {2}), r.ints({s[0], s[1], groups, s[2], s[3]})});
  return r.reshape(wide, {s[0], s[1] * groups, s[2], s[3]});
}

/// The caller's mask as something to add, as long as the keys; "" when there is none.
std::string mask_bias(Rewriter& r, const ::onnx::NodeProto& node, const AttentionParts& p) {
  std::string mask = input_of(node, 3);
  if (mask.empty()) return "";
  const ValueFacts facts = r.of(mask);
  // True is "may be seen".
  if (facts.elem == T::BOOL)
    mask = r.add("Where", {mask, r.scalar(p.elem, 0), r.scalar(p.elem, kNegInf)});
  const std::int64_t have = (*facts.shape)[facts.shape->rank() - 1];
  // ONNX: a mask that is shorter than the keys is continued with what may not be seen.
  if (have < p.columns) {
    Shape missing = *facts.shape;
    missing[missing.rank() - 1] = p.columns - have;
    mask = r.concat({mask, r.filled(p.elem, missing.dims(), kNegInf)},
                    static_cast<std::int64_t>(facts.shape->rank()) - 1);
  }
  return mask;
}

struct Window {
  bool causal = false;
  std::int64_t left = -1;
  std::int64_t right = -1;
};

/// 0 where query i may see key j, -inf elsewhere. `valid`: how many keys each batch entry has,
/// [batch, 1, 1, 1], "" where all of them count. Query i is at `first` + i; the positions are
/// compared as nodes, for a stored mask would grow with the square of the sequence.
std::string window_bias(Rewriter& r, const AttentionParts& p, const Window& w,
                        const std::string& valid, std::int64_t first) {
  const auto row = [&](std::int64_t i) { return static_cast<double>(i + first); };
  std::string at = r.sequence(T::INT64, {p.rows, 1}, row);
  if (!valid.empty()) at = r.add("Add", {valid, at});
  const std::string key = r.counting(T::INT64, {1, p.columns});
  const std::string distance = r.add("Sub", {at, key});
  std::string allowed = valid.empty() ? "" : r.add("Less", {key, valid});
  const auto and_not = [&](const std::string& forbidden) {
    const std::string free = r.add("Not", {forbidden});
    allowed = allowed.empty() ? free : r.add("And", {allowed, free});
  };
  if (w.causal) and_not(r.add("Less", {distance, r.scalar_int(0)}));
  // A window of -1 has no bound on that side.
  if (w.left >= 0) and_not(r.add("Greater", {distance, r.scalar_int(w.left)}));
  if (w.right >= 0) and_not(r.add("Less", {distance, r.scalar_int(-w.right)}));
  return r.add("Where", {allowed, r.scalar(p.elem, 0), r.scalar(p.elem, kNegInf)});
}

/// Softmax over the keys; a row that may see none becomes zeros.
std::string guarded_softmax(Rewriter& r, const ::onnx::NodeProto& node, const std::string& scores,
                            const std::string& bias, std::int32_t elem) {
  const auto precision = static_cast<std::int32_t>(int_attribute(node, "softmax_precision", elem));
  const std::string soft =
      r.cast(r.add("Softmax", {r.cast(scores, precision)}, {{"axis", -1}}), elem);
  const std::string most = r.reduce("ReduceMax", r.cast(bias, T::FLOAT), {-1}, true);
  const std::string none = r.add("LessOrEqual", {most, r.scalar(T::FLOAT, kLowest)});
  return r.add("Where", {none, r.scalar(elem, 0), soft});
}

/// Every form but two is left to the engine. The scale's root goes on both factors, as ONNX
/// computes it: large products stay in range. qk_matmul_output_mode: 0 products, 1 after softcap, 2
/// after the mask, 3 after the softmax.
Result<bool> attention(Rewriter& r, const ::onnx::NodeProto& node) {
  const Window window{int_attribute(node, "is_causal", 0) != 0,
                      int_attribute(node, "left_window_size", -1),
                      int_attribute(node, "right_window_size", -1)};
  const bool cache = !input_of(node, 4).empty();
  const bool mask = !input_of(node, 3).empty();
  const bool windowed = window.left >= 0 || window.right >= 0;
  // In bfloat16 some CPUs give rows of padding a share (seen with AVX2 alone).
  const bool padded = !input_of(node, 6).empty() && r.of(node.input(0)).elem == T::BFLOAT16;
  if (!windowed && !(window.causal && mask && (cache || padded))) return false;
  const bool known = !mask || (r.of(node.input(3)).is_static() && r.of(node.input(3)).rank() > 0);
  const bool cached = !cache || (is_usual(r.of(node.input(4)), 4) && !input_of(node, 5).empty());
  auto parts = known && cached ? attention_parts(r, node) : std::nullopt;
  if (!parts) {
    return r.unfit(node,
                   "a sliding window, or a causal mask beside a mask and a cache, is "
                   "computed wrongly by the engine and can be written out only for fixed "
                   "shapes; fix the input shapes");
  }
  AttentionParts& p = *parts;
  // Keys of the cache come before those of this call.
  const std::int64_t past = cache ? (*r.of(node.input(4)).shape)[2] : 0;
  if (cache) {
    p.k = r.concat({node.input(4), p.k}, 2);
    p.v = r.concat({node.input(5), p.v}, 2);
    p.columns += past;
  }
  if (has_output(node, 1)) r.define({node.output(1)}, "Identity", {p.k});
  if (has_output(node, 2)) r.define({node.output(2)}, "Identity", {p.v});

  // With counts the cache is padded: the last query stands at the last valid key.
  const std::string counts = input_of(node, 6);
  std::string bias =
      counts.empty()
          ? window_bias(r, p, window, "", past)
          : window_bias(r, p, window, r.reshape(r.cast(counts, T::INT64), {-1, 1, 1, 1}), -p.rows);
  if (mask) bias = r.add("Add", {bias, mask_bias(r, node, p)});
  const double scale = std::sqrt(float_attribute(
      node, "scale", static_cast<float>(1.0 / std::sqrt(static_cast<double>(p.head_size)))));
  const std::string factor = r.scalar(p.elem, scale);
  const std::string keys = repeat_heads(r, p.k, p.heads / p.kv_heads);
  const std::string values = repeat_heads(r, p.v, p.heads / p.kv_heads);
  std::string scores = r.add("MatMul", {r.add("Mul", {p.q, factor}),
                                        r.add("Mul", {r.transpose(keys, {0, 1, 3, 2}), factor})});
  const std::int64_t mode = int_attribute(node, "qk_matmul_output_mode", 0);
  std::string shown = scores;
  if (const float cap = float_attribute(node, "softcap", 0.0f); cap > 0) {
    const std::string limit = r.scalar(p.elem, cap);
    scores = r.add("Mul", {r.add("Tanh", {r.add("Div", {scores, limit})}), limit});
    if (mode == 1) shown = scores;
  }
  scores = r.add("Add", {scores, bias});
  if (mode == 2) shown = scores;
  const std::string probabilities = guarded_softmax(r, node, scores, bias, p.elem);
  if (mode == 3) shown = probabilities;
  if (has_output(node, 3)) r.define({node.output(3)}, "Identity", {shown});
  const std::string y = r.add("MatMul", {probabilities, values});
  if (!p.packed) return r.instead(node, "Identity", {y});
  return r.instead(node, "Reshape", {r.transpose(y, {0, 2, 1, 3}), r.ints({0, 0, -1})});
}

/// A convolution per channel over the last kernel - 1 steps before this input, then the input.
Result<bool> causal_conv(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto& x = r.of(node.input(0));
  const auto& w = r.of(node.input(1));
  if (!is_usual(x, 3) || !is_usual(w, 3)) return false;
  const Shape in = *x.shape;
  const std::int64_t kernel = (*w.shape)[2];
  if (kernel < 1) return false;
  const std::int32_t elem = x.elem;
  std::string padded = node.input(0);
  if (kernel > 1) {
    const Ints state{in[0], in[1], kernel - 1};
    const std::string past =
        !input_of(node, 3).empty() ? node.input(3) : r.filled(elem, state, 0.0);
    padded = r.concat({past, padded}, 2);
  }
  Names inputs{padded, node.input(1)};
  if (!input_of(node, 2).empty()) inputs.push_back(node.input(2));
  std::string y = r.add("Conv", inputs, {{"group", in[1]}, {"kernel_shape", Ints{kernel}}});
  const std::string activation = string_attribute(node, "activation", "none");
  // silu and swish are the same: x * sigmoid(x).
  if (activation != "none") y = r.add("Mul", {y, r.add("Sigmoid", {y})});
  r.define({node.output(0)}, "Identity", {y});
  if (has_output(node, 1)) {
    // The state for the next call: the last kernel - 1 steps.
    const std::int64_t total = in[2] + kernel - 1;
    r.define({node.output(1)}, "Identity", {r.slice(padded, 2, total - kernel + 1, total)});
  }
  return true;
}

/// What the steps of LinearAttention read: f32, [B, H, steps, D].
struct LinearInputs {
  std::string queries, keys, values;
  std::string decay;  ///< "" where the update rule has no gate.
  std::string beta;   ///< "" where it has no delta.
  std::int64_t steps = 0;
  std::int64_t group = 1;  ///< Query heads for each head of the state.
};

/// The outputs of all steps; `state`, [B, H, key size, value size], goes from step to step.
Names linear_steps(Rewriter& r, const LinearInputs& in, std::string& state) {
  Names outputs;
  for (std::int64_t t = 0; t < in.steps; ++t) {
    const auto step = [&](const std::string& x) { return r.slice(x, 2, t, t + 1); };
    // Rows are [B, H, 1, D]; columns [B, H, D, 1].
    const auto column = [&](const std::string& row) { return r.transpose(row, {0, 1, 3, 2}); };
    if (!in.decay.empty()) state = r.add("Mul", {state, column(r.add("Exp", {step(in.decay)}))});
    const std::string key = step(in.keys);
    std::string value = step(in.values);
    if (!in.beta.empty()) {
      const std::string known = r.add("MatMul", {key, state});
      value = r.add("Mul", {step(in.beta), r.add("Sub", {value, known})});
    }
    state = r.add("Add", {state, r.add("MatMul", {column(key), value})});
    outputs.push_back(r.add("MatMul", {step(in.queries), repeat_heads(r, state, in.group)}));
  }
  return outputs;
}

/// One step per token, in f32.
Result<bool> linear_attention(Rewriter& r, const ::onnx::NodeProto& node) {
  constexpr std::int64_t kMostSteps = 512;
  const ValueFacts q = r.of(node.input(0));
  const ValueFacts k = r.of(node.input(1));
  const ValueFacts v = r.of(node.input(2));
  const std::int64_t heads = int_attribute(node, "q_num_heads", 0);
  const std::int64_t kv_heads = int_attribute(node, "kv_num_heads", 0);
  const std::string rule = string_attribute(node, "update_rule", "gated_delta");
  // update_rule: linear, gated, delta or gated_delta.
  const bool gated = rule.starts_with("gated");
  const bool delta = rule.ends_with("delta");
  const bool past = !input_of(node, 3).empty();
  if (!is_usual(q, 3) || !is_usual(k, 3) || !is_usual(v, 3) || heads < 1 || heads > kMostAlong ||
      kv_heads < 1 || heads % kv_heads != 0 || (*q.shape)[1] < 1 || (*q.shape)[1] > kMostSteps ||
      (gated && input_of(node, 4).empty()) || (delta && input_of(node, 5).empty()) ||
      (past && !is_usual(r.of(node.input(3)), 4))) {
    return r.unfit(node,
                   "the engine has no LinearAttention; it can be written out only for "
                   "fixed shapes of 1 to 512 tokens, heads that divide, and all inputs of its "
                   "update_rule");
  }
  const std::int64_t batch = (*q.shape)[0];
  const std::int64_t steps = (*q.shape)[1];
  const std::int64_t key_size = (*q.shape)[2] / heads;
  const std::int64_t value_size = (*v.shape)[2] / kv_heads;
  const auto unpack = [&](const std::string& x, std::int64_t n) {
    return unpack_heads(r, r.cast(x, T::FLOAT), n);
  };
  // beta has one number per head, or one for all.
  const auto last_of = [&](int i) {
    const auto& f = r.of(node.input(i));
    return f.shape && f.shape->rank() == 3 ? (*f.shape)[2] : -1;
  };
  const std::string queries = unpack(node.input(0), heads);
  const std::string keys = unpack(node.input(1), kv_heads);
  const std::string values = unpack(node.input(2), kv_heads);
  const std::string decay = gated ? unpack(node.input(4), kv_heads) : "";
  const std::string beta =
      delta ? unpack(node.input(5), last_of(5) == 1 ? 1 : kv_heads) : std::string();
  const Shape state_shape{batch, kv_heads, key_size, value_size};
  std::string state =
      past ? r.cast(node.input(3), T::FLOAT) : r.filled(T::FLOAT, state_shape.dims(), 0.0);
  const float given = float_attribute(node, "scale", 0.0f);
  // ONNX: one over the root of the key's size unless given.
  const double scale = given != 0.0f ? given : 1.0 / std::sqrt(static_cast<double>(key_size));
  const Names outputs =
      linear_steps(r, {queries, keys, values, decay, beta, steps, heads / kv_heads}, state);
  const std::string all = r.add("Mul", {r.concat(outputs, 2), r.scalar(T::FLOAT, scale)});
  const std::string packed =
      r.reshape(r.transpose(all, {0, 2, 1, 3}), {batch, steps, heads * value_size});
  r.define({node.output(0)}, "Cast", {packed}, {{"to", q.elem}});
  if (has_output(node, 1)) {
    const std::int32_t state_elem = past ? r.of(node.input(3)).elem : q.elem;
    r.define({node.output(1)}, "Cast", {state}, {{"to", state_elem}});
  }
  return true;
}

/// A modifier subgraph of FlexAttention on one value.
std::string apply_modifier(Rewriter& r, const ::onnx::NodeProto& node, const char* name,
                           const std::string& x) {
  const auto* a = find_attribute(node, name);
  if (a == nullptr || !a->has_g() || a->g().input_size() != 1 || a->g().output_size() != 1)
    return x;
  return inline_graph(r, a->g(), {x}, inline_constants(r, a->g())).front();
}

/// Attention with subgraphs that change scores and probabilities (ai.onnx.preview).
Result<bool> flex_attention(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto& q = r.of(node.input(0));
  const auto& k = r.of(node.input(1));
  const auto& v = r.of(node.input(2));
  if (node.domain() != "ai.onnx.preview" || q.rank() != 4 || !k.is_static() || !v.is_static() ||
      !q.is_static())
    return false;
  // Each head of keys and values serves as many query heads.
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
  const std::int64_t heads = (*q.shape)[1];
  const std::string keys = repeat_heads(r, node.input(1), heads / (*k.shape)[1]);
  const std::string values = repeat_heads(r, node.input(2), heads / (*v.shape)[1]);
  std::string scores = r.add("MatMul", {r.cast(node.input(0), precision),
                                        r.transpose(r.cast(keys, precision), {0, 1, 3, 2})});
  scores = r.add("Mul", {scores, r.scalar(precision, scale)});
  scores = apply_modifier(r, node, "score_mod", scores);
  std::string probs = r.add("Softmax", {scores}, {{"axis", -1}});
  probs = apply_modifier(r, node, "prob_mod", probs);
  const std::string y = r.add("MatMul", {probs, r.cast(values, precision)});
  return r.instead(node, "Cast", {y}, {{"to", elem}});
}

constexpr Rule kAttentionRules[] = {
    {"Attention", attention, "window or causal mask beside a cache: written out"},
    {"CausalConvWithState", causal_conv, "a depthwise convolution over state and input"},
    {"LinearAttention", linear_attention, "written out, one step per token"},
    {"FlexAttention", flex_attention, "written out as matrix products and a softmax"},
};

}  // namespace

std::span<const Rule> attention_rules() { return kAttentionRules; }

}  // namespace corelane::onnx
