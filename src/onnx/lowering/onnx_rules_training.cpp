// The optimizers of ai.onnx.preview.training, written out: R and T (rate, step count), then
// tensors, gradients and states, one of each per optimised tensor.
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// Arithmetic on one element type.
struct Arithmetic {
  Rewriter& r;
  std::int32_t elem;
  std::string add(const std::string& a, const std::string& b) const { return r.add("Add", {a, b}); }
  std::string sub(const std::string& a, const std::string& b) const { return r.add("Sub", {a, b}); }
  std::string mul(const std::string& a, const std::string& b) const { return r.add("Mul", {a, b}); }
  std::string div(const std::string& a, const std::string& b) const { return r.add("Div", {a, b}); }
  std::string number(double v) const { return r.scalar(elem, v); }
  std::string scaled(const std::string& a, double by) const { return mul(a, number(by)); }
};

struct Optimizer {
  const ::onnx::NodeProto& node;
  Arithmetic math;
  int count;  ///< Of optimised tensors.
  const std::string& rate() const { return node.input(0); }
  std::string steps() const { return math.r.cast(node.input(1), math.elem); }
  std::string started() const {
    return math.r.add("Greater", {node.input(1), math.r.scalar_int(0)});
  }
  const std::string& in(int group, int i) const { return node.input(2 + group * count + i); }
  /// The gradient with its regularisation.
  std::string gradient(int i) const {
    const double norm = float_attribute(node, "norm_coefficient", 0.0f);
    return math.add(math.scaled(in(0, i), norm), in(1, i));
  }
  void out(int group, int i, const std::string& value) const {
    math.r.define({node.output(group * count + i)}, "Identity", {value});
  }
};

std::optional<Optimizer> optimizer(Rewriter& r, const ::onnx::NodeProto& node, int groups) {
  const int tensors = node.input_size() - 2;
  const bool fits = tensors > 0 && tensors % groups == 0;
  // Outputs are the tensors and the states, not the gradients.
  if (!fits || node.output_size() != tensors / groups * (groups - 1)) return std::nullopt;
  const std::int32_t elem = r.of(node.input(2)).elem;
  if (elem == 0) return std::nullopt;
  return Optimizer{node, {r, elem}, tensors / groups};
}

/// The rate falls with the steps; each element's with the sum of its squared gradients.
Result<bool> adagrad(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto o = optimizer(r, node, 3);
  if (!o) return false;
  const auto& m = o->math;
  const double decay = float_attribute(node, "decay_factor", 0.0f);
  const double epsilon = float_attribute(node, "epsilon", 1e-6f);
  const std::string rate = m.div(o->rate(), m.add(m.number(1), m.scaled(o->steps(), decay)));
  for (int i = 0; i < o->count; ++i) {
    const std::string g = o->gradient(i);
    const std::string h = m.add(o->in(2, i), m.mul(g, g));
    const std::string root = m.add(r.add("Sqrt", {h}), m.number(epsilon));
    o->out(0, i, m.sub(o->in(0, i), m.div(m.mul(rate, g), root)));
    o->out(1, i, h);
  }
  return true;
}

/// Running means of the gradients and of their squares.
Result<bool> adam(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto o = optimizer(r, node, 4);
  if (!o) return false;
  const auto& m = o->math;
  const double alpha = float_attribute(node, "alpha", 0.9f);
  const double beta = float_attribute(node, "beta", 0.999f);
  const double epsilon = float_attribute(node, "epsilon", 1e-6f);
  const double post = float_attribute(node, "norm_coefficient_post", 0.0f);
  const auto rest = [&](double base) {
    return m.sub(m.number(1), r.add("Pow", {m.number(base), o->steps()}));
  };
  // The means begin at 0: divided by how much of the weight they have.
  const std::string bias = m.div(r.add("Sqrt", {rest(beta)}), rest(alpha));
  const std::string rate = r.add("Where", {o->started(), m.mul(o->rate(), bias), o->rate()});
  for (int i = 0; i < o->count; ++i) {
    const std::string g = o->gradient(i);
    const std::string v = m.add(m.scaled(o->in(2, i), alpha), m.scaled(g, 1 - alpha));
    const std::string h = m.add(m.scaled(o->in(3, i), beta), m.scaled(m.mul(g, g), 1 - beta));
    const std::string root = m.add(r.add("Sqrt", {h}), m.number(epsilon));
    const std::string x = m.sub(o->in(0, i), m.div(m.mul(rate, v), root));
    o->out(0, i, m.scaled(x, 1 - post));
    o->out(1, i, v);
    o->out(2, i, h);
  }
  return true;
}

/// A running sum of gradients; nesterov looks one step ahead.
Result<bool> momentum(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto o = optimizer(r, node, 3);
  if (!o) return false;
  const auto& m = o->math;
  const double alpha = float_attribute(node, "alpha", 0.0f);
  const double beta = float_attribute(node, "beta", 0.0f);
  const bool nesterov = string_attribute(node, "mode", "standard") == "nesterov";
  // The first gradient goes in whole.
  const std::string weight = r.add("Where", {o->started(), m.number(beta), m.number(1)});
  for (int i = 0; i < o->count; ++i) {
    const std::string g = o->gradient(i);
    const std::string v = m.add(m.scaled(o->in(2, i), alpha), m.mul(weight, g));
    const std::string step = nesterov ? m.add(g, m.scaled(v, alpha)) : v;
    o->out(0, i, m.sub(o->in(0, i), m.mul(o->rate(), step)));
    o->out(1, i, v);
  }
  return true;
}

constexpr Rule kTrainingRules[] = {
    {"Adagrad", adagrad, "written out"},
    {"Adam", adam, "written out"},
    {"Momentum", momentum, "written out"},
};

}  // namespace

std::span<const Rule> training_rules() { return kTrainingRules; }

}  // namespace corelane::onnx
