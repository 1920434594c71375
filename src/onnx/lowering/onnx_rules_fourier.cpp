// Rules for DFT and STFT: products with matrices of sines and cosines. The engine gets axes and
// ranks of DFT wrong, and refuses an STFT whose step comes at run time.
#include <cmath>
#include <numbers>

#include "onnx/graph/onnx_checked.h"
#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// Elements of a matrix up to which a transform is written out.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22;

struct Transform {
  bool inverse = false;
  bool onesided = false;
  std::int64_t length = 0;  ///< Of the transform.
  std::int64_t in = 0;      ///< Elements along the axis.
  std::int64_t parts = 1;   ///< 1 real, 2 complex.
  std::int64_t out = 0;
  std::int64_t out_parts = 2;
  bool operator==(const Transform&) const = default;
};

/// The matrix [in * parts, out * out_parts] of a transform.
std::vector<double> transform_matrix(const Transform& t) {
  std::vector<double> m(static_cast<std::size_t>(t.in * t.parts * t.out * t.out_parts), 0.0);
  const auto at = [&](std::int64_t n, std::int64_t p, std::int64_t k, std::int64_t q) -> double& {
    return m[static_cast<std::size_t>(((n * t.parts + p) * t.out + k) * t.out_parts + q)];
  };
  const double scale = t.inverse ? 1.0 / static_cast<double>(t.length) : 1.0;
  const double sign = t.inverse ? 1.0 : -1.0;
  // A shorter length cuts the input, a longer one pads it with zeros.
  const std::int64_t used = std::min(t.in, t.length);
  for (std::int64_t n = 0; n < used; ++n) {
    // A one-sided inverse has each inner frequency twice: itself and its conjugate.
    const bool twice = t.inverse && t.onesided && n != 0 && 2 * n != t.length;
    const double weight = scale * (twice ? 2.0 : 1.0);
    for (std::int64_t k = 0; k < t.out; ++k) {
      const double turn = static_cast<double>((n * k) % t.length) / static_cast<double>(t.length);
      // Exact zeros stay zeros.
      const auto exact = [](double v) { return std::abs(v) < 1e-15 ? 0.0 : v; };
      const double c = weight * exact(std::cos(2 * std::numbers::pi * turn));
      const double s = weight * sign * exact(std::sin(2 * std::numbers::pi * turn));
      at(n, 0, k, 0) = c;
      if (t.out_parts == 2) at(n, 0, k, 1) = s;
      if (t.parts == 2) at(n, 1, k, 0) = -s;
      if (t.parts == 2 && t.out_parts == 2) at(n, 1, k, 1) = c;
    }
  }
  return m;
}

/// Applies a transform along `axis` of x, whose last dimension holds the parts.
std::string apply(Rewriter& r, const std::string& x, const ValueFacts& facts, std::size_t axis,
                  const Transform& t) {
  const std::size_t rank = facts.shape->rank();
  // The axis goes to the back, beside the parts: then rows times a matrix.
  Ints perm;
  for (std::size_t i = 0; i + 1 < rank; ++i)
    if (i != axis) perm.push_back(static_cast<std::int64_t>(i));
  perm.push_back(static_cast<std::int64_t>(axis));
  perm.push_back(static_cast<std::int64_t>(rank) - 1);
  Ints back(rank);
  for (std::size_t i = 0; i < rank; ++i)
    back[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  Ints flat(rank - 1, 0);
  flat.back() = t.in * t.parts;
  Ints wide(rank, 0);
  wide[rank - 2] = t.out;
  wide[rank - 1] = t.out_parts;
  const std::string matrix =
      r.values(facts.elem, {t.in * t.parts, t.out * t.out_parts}, transform_matrix(t));
  const std::string rows = r.reshape(r.transpose(x, perm), flat);
  return r.transpose(r.reshape(r.add("MatMul", {rows, matrix}), wide), back);
}

std::optional<Transform> transform_along(const ::onnx::NodeProto& node, const ValueFacts& x,
                                         std::size_t axis, std::optional<std::int64_t> length) {
  Transform t;
  t.inverse = int_attribute(node, "inverse", 0) != 0;
  t.onesided = int_attribute(node, "onesided", 0) != 0;
  t.in = (*x.shape)[axis];
  t.parts = (*x.shape)[x.shape->rank() - 1];
  if (t.in < 1 || t.in > kMostElements || (t.parts != 1 && t.parts != 2)) return std::nullopt;
  // A one-sided inverse gives reals: the other half is the conjugate.
  const bool to_real = t.inverse && t.onesided;
  // ONNX: n frequencies of a one-sided transform are of 2 * (n - 1) elements.
  t.length = length.value_or(to_real ? 2 * (t.in - 1) : t.in);
  if (t.length < 1 || t.length > kMostElements) return std::nullopt;
  t.out = t.onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  t.out_parts = to_real ? 1 : 2;
  // Each factor is at most 2^22 here, so two of them and the parts do not overflow.
  if (t.in * t.parts * t.out * t.out_parts > kMostElements) return std::nullopt;
  return t;
}

/// Axes that the node may mean: the given one, or those that lead to the declared output shape.
std::vector<std::size_t> candidate_axes(Rewriter& r, const ::onnx::NodeProto& node,
                                        const ValueFacts& x, std::optional<std::int64_t> length) {
  const std::size_t rank = x.shape->rank();
  // An attribute before operator set 20, input 2 since.
  std::int64_t axis = r.opset() < 20 ? int_attribute(node, "axis", 1) : -2;
  const bool at_run_time = r.opset() >= 20 && !input_of(node, 2).empty();
  const auto given = r.of(input_of(node, 2)).one_int();
  if (at_run_time && given) {
    axis = *given;
  } else if (at_run_time) {
    std::vector<std::size_t> axes;
    const auto declared = r.of(node.output(0)).shape;
    for (std::size_t a = 0; a + 1 < rank; ++a) {
      const auto t = transform_along(node, x, a, length);
      if (!t) continue;
      Shape shape = *x.shape;
      shape[a] = t->out;
      shape[rank - 1] = t->out_parts;
      if (!declared || *declared == shape) axes.push_back(a);
    }
    return axes;
  }
  const auto normal = normal_axis(axis, rank);
  return normal && *normal + 1 < rank ? std::vector{*normal} : std::vector<std::size_t>{};
}

constexpr const char* kNoLength = "a length below 1 ends the process in the engine";

Result<bool> dft(Rewriter& r, const ::onnx::NodeProto& node) {
  const ValueFacts x = r.of(node.input(0));
  const auto length = r.of(input_of(node, 1)).one_int();
  if (length.value_or(1) < 1) return r.unfit(node, kNoLength);
  const bool known = x.shape && x.shape->rank() >= 2 && (length || input_of(node, 1).empty());
  const auto axes = known ? candidate_axes(r, node, x, length) : std::vector<std::size_t>{};
  std::vector<Transform> transforms;
  for (const std::size_t a : axes)
    if (const auto t = transform_along(node, x, a, length)) transforms.push_back(*t);
  if (axes.empty() || transforms.size() != axes.size()) {
    // The engine's own transform is right for two sides.
    if (int_attribute(node, "onesided", 0) == 0) return false;
    return r.unfit(node,
                   "a one-sided transform of unknown or large size has a wrong rank in the "
                   "engine; fix the input shape (at most 1024 elements are written out)");
  }
  // One transform per axis that may be meant; the run chooses.
  std::string y = apply(r, node.input(0), x, axes[0], transforms[0]);
  for (std::size_t i = 1; i < axes.size(); ++i) {
    const auto a = static_cast<std::int64_t>(axes[i]);
    const std::string chosen =
        r.add("Or", {r.add("Equal", {node.input(2), r.scalar_int(a)}),
                     r.add("Equal", {node.input(2), r.scalar_int(a - x.rank())})});
    y = r.add("Where", {chosen, apply(r, node.input(0), x, axes[i], transforms[i]), y});
  }
  return r.instead(node, "Identity", {y});
}

/// sin(2 pi t) for t in 0..1.25, exactly 0 at whole and half turns.
std::string sine_of_turns(Rewriter& r, const std::string& t, std::int32_t elem) {
  const std::string one = r.scalar(elem, 1);
  const std::string two = r.scalar(elem, 2);
  const std::string halves = r.add("Round", {r.add("Mul", {t, two})});
  const std::string rest = r.add("Sub", {t, r.add("Div", {halves, two})});
  const std::string sine =
      r.add("Sin", {r.add("Mul", {rest, r.scalar(elem, 2 * std::numbers::pi)})});
  // Odd halves turn the sign: 0, 1, 2 to 1, -1, 1.
  const std::string from_one = r.add("Sub", {halves, one});
  const std::string square = r.add("Mul", {from_one, from_one});
  return r.add("Mul", {sine, r.add("Sub", {r.add("Mul", {square, two}), one})});
}

/// Frames are gathered at positions computed at run time; their count comes from the declared
/// output.
Result<bool> stft(Rewriter& r, const ::onnx::NodeProto& node) {
  const ValueFacts signal = r.of(node.input(0));
  const ValueFacts out = r.of(node.output(0));
  const auto& step = r.of(node.input(1));
  if (r.of(input_of(node, 3)).one_int().value_or(1) < 1) return r.unfit(node, kNoLength);
  if (step.known_ints() || !signal.is_static() || !out.is_static() || out.rank() != 4 ||
      signal.rank() != 3 || (*signal.shape)[2] != 1) {
    return false;
  }
  const std::int32_t elem = signal.elem;
  const std::int64_t frames = (*out.shape)[1];
  const std::int64_t bins = (*out.shape)[2];
  const bool onesided = int_attribute(node, "onesided", 1) != 0;
  const std::string& window = input_of(node, 2);
  const bool by_window = !window.empty() && r.of(window).is_static();
  // The longest frame that has this many bins; shorter ones are masked.
  const auto& window_facts = r.of(window);
  if (bins < 1 || bins > kMostElements || (by_window && window_facts.rank() != 1)) return false;
  const std::int64_t most =
      by_window ? (*window_facts.shape)[0] : (onesided ? 2 * (bins - 1) + 1 : bins);
  const std::string length = by_window ? r.scalar_int(most) : input_of(node, 3);
  const Checked all = Checked(frames) * most * bins;
  if (length.empty() || !all.is_within(1, kMostElements)) return false;
  const auto product = [&](std::int64_t i) {
    const std::int64_t whole = (i / bins) * (i % bins);
    return static_cast<double>(whole);
  };
  const std::string offsets = r.counting(T::INT64, {1, most});
  const std::string first =
      r.add("Mul", {r.counting(T::INT64, {frames, 1}), r.reshape(node.input(1), {1})});
  const std::string last = r.scalar_int((*signal.shape)[1] - 1);
  const std::string indices = r.add("Min", {r.add("Add", {first, offsets}), last});
  // [B, frames, most]
  std::string cut = r.add("Gather", {r.squeeze(node.input(0), {2}), indices}, {{"axis", 1}});
  const std::string used = r.cast(r.add("Less", {offsets, length}), elem);
  cut = r.add("Mul", {cut, used});
  if (!window.empty()) cut = r.add("Mul", {cut, window});
  // The angle's whole turns are dropped before the division, in integers.
  const std::string turns = r.add("Mod", {r.sequence(T::INT64, {most, bins}, product), length});
  const std::string turn = r.add("Div", {r.cast(turns, elem), r.cast(length, elem)});
  const std::string quarter = r.add("Add", {turn, r.scalar(elem, 0.25)});
  const std::string real = r.add("MatMul", {cut, sine_of_turns(r, quarter, elem)});
  const std::string imaginary =
      r.add("Neg", {r.add("MatMul", {cut, sine_of_turns(r, turn, elem)})});
  return r.instead(node, "Concat", {r.unsqueeze(real, {3}), r.unsqueeze(imaginary, {3})},
                   {{"axis", 3}});
}

constexpr Rule kFourierRules[] = {
    {"DFT", dft, "a product with the transform's matrix"},
    {"STFT", stft, "the step comes at run time: frames gathered, then a matrix product"},
};

}  // namespace

std::span<const Rule> fourier_rules() { return kFourierRules; }

}  // namespace corelane::onnx
