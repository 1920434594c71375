// Resize where the engine refuses it or computes it wrongly: antialiasing, exclude_outside,
// half_pixel_symmetric, tf_crop_and_resize, aspect ratio policies, align_corners down-scaling.
//
// Along each axis a Resize is a gather (nearest) or a product with a matrix of weights that depends
// on scale and region only. Both are written as nodes, so that scales may come at run time; the
// engine folds them where they are constant.
#include <algorithm>
#include <cmath>

#include "onnx/graph/onnx_checked.h"
#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

struct ResizeParts {
  std::int32_t elem = 0;
  std::string mode, transformation, policy, nearest;
  bool antialias = false;
  bool exclude = false;
  float cubic_a = -0.75f;
  float extrapolation = 0;
  std::vector<std::size_t> axes;  ///< Of the entries of roi, scales and sizes.
  Shape in, out;
  std::string roi, scales, sizes;
};

/// One axis of the resize.
struct AxisParts {
  std::size_t axis = 0;
  std::int64_t in = 0, out = 0;
  std::string scale;       ///< Scalar.
  std::string begin, end;  ///< Region of interest, scalars; "" without.
};

constexpr std::int32_t kFloat = T::FLOAT;
/// Sizes up to which a Resize is written out.
constexpr std::int64_t kMostOfAnAxis = std::int64_t{1} << 31;

std::string number(Rewriter& r, double v) { return r.scalar(kFloat, v); }

std::string pick(Rewriter& r, const std::string& list, std::size_t i) {
  return r.squeeze(r.slice(r.cast(list, kFloat), 0, static_cast<std::int64_t>(i),
                           static_cast<std::int64_t>(i) + 1),
                   {0});
}

bool is_wrong_in_engine(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::string transformation =
      string_attribute(node, "coordinate_transformation_mode", "half_pixel");
  if (int_attribute(node, "antialias", 0) != 0 || int_attribute(node, "exclude_outside", 0) != 0 ||
      transformation == "half_pixel_symmetric" || transformation == "tf_crop_and_resize" ||
      string_attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch") {
    return true;
  }
  if (transformation != "align_corners" || input_of(node, 2).empty() ||
      string_attribute(node, "mode", "nearest") == "nearest") {
    return false;
  }
  // Shrinking by scales that do not give a whole size.
  const auto& x = r.of(node.input(0));
  const auto& y = r.of(node.output(0));
  if (!x.is_static() || !y.is_static() || x.rank() != y.rank()) return false;
  const auto& scales = r.of(node.input(2)).floats;
  for (std::size_t i = 0; i < x.shape->rank(); ++i) {
    if ((*y.shape)[i] >= (*x.shape)[i]) continue;
    // Scales that come at run time may be of that kind.
    if (!scales || i >= scales->size()) return true;
    const double exact = (*scales)[i] * static_cast<double>((*x.shape)[i]);
    if (std::abs(exact - static_cast<double>((*y.shape)[i])) > 1e-6) return true;
  }
  return false;
}

/// The output's shape where sizes are constant, else what is declared.
std::optional<Shape> output_shape(Rewriter& r, const ::onnx::NodeProto& node,
                                  const ResizeParts& p) {
  const auto& sizes = r.of(p.sizes);
  if (!p.sizes.empty() && sizes.known_ints() && sizes.ints->size() == p.axes.size()) {
    double ratio = 0;
    for (std::size_t i = 0; i < p.axes.size(); ++i) {
      const double q = static_cast<double>((*sizes.ints)[i]) / static_cast<double>(p.in[p.axes[i]]);
      // not_larger takes the least ratio of all axes, not_smaller the greatest.
      const bool larger = p.policy == "not_smaller";
      if (i == 0 || (larger ? q > ratio : q < ratio)) ratio = q;
    }
    Shape out = p.in;
    for (std::size_t i = 0; i < p.axes.size(); ++i) {
      auto& d = out[p.axes[i]];
      d = p.policy == "stretch" ? (*sizes.ints)[i]
                                : size_from(std::floor(ratio * static_cast<double>(d) + 0.5));
    }
    return out;
  }
  const auto& scales = r.of(p.scales).floats;
  if (!p.scales.empty() && scales && scales->size() == p.axes.size() &&
      p.transformation != "tf_crop_and_resize") {
    Shape out = p.in;
    for (std::size_t i = 0; i < p.axes.size(); ++i) {
      auto& d = out[p.axes[i]];
      d = size_from(std::floor(static_cast<float>(d) * static_cast<float>((*scales)[i])));
    }
    return out;
  }
  const auto& declared = r.of(node.output(0));
  return declared.is_static() ? declared.shape : std::nullopt;
}

std::optional<ResizeParts> resize_parts(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto x = r.of(node.input(0));
  if (!x.is_static() || x.rank() < 1 || r.opset() < 11) return std::nullopt;
  ResizeParts p;
  p.elem = x.elem;
  p.in = *x.shape;
  p.mode = string_attribute(node, "mode", "nearest");
  p.transformation = string_attribute(node, "coordinate_transformation_mode", "half_pixel");
  p.policy = string_attribute(node, "keep_aspect_ratio_policy", "stretch");
  p.nearest = string_attribute(node, "nearest_mode", "round_prefer_floor");
  p.antialias = int_attribute(node, "antialias", 0) != 0;
  p.exclude = int_attribute(node, "exclude_outside", 0) != 0;
  p.cubic_a = float_attribute(node, "cubic_coeff_a", -0.75f);
  p.extrapolation = float_attribute(node, "extrapolation_value", 0.0f);
  p.roi = input_of(node, 1);
  p.scales = input_of(node, 2);
  p.sizes = input_of(node, 3);
  // ONNX: one of the two is given; sizes decide.
  if (!p.sizes.empty()) p.scales.clear();
  Ints axes = ints_attribute(node, "axes");
  if (axes.empty()) axes = counted(p.in.rank());
  for (const auto a : axes) {
    const auto axis = normal_axis(a, p.in.rank());
    if (!axis) return std::nullopt;
    p.axes.push_back(*axis);
  }
  const auto out = output_shape(r, node, p);
  if (!out || out->rank() != p.in.rank()) return std::nullopt;
  p.out = *out;
  for (const std::size_t axis : p.axes) {
    const auto usual = [](std::int64_t d) { return d >= 1 && d <= kMostOfAnAxis; };
    if (!usual(p.in[axis]) || !usual(p.out[axis])) return std::nullopt;
  }
  return p;
}

/// The scale of an axis as a scalar.
std::string axis_scale(Rewriter& r, const ResizeParts& p, std::size_t entry) {
  if (!p.scales.empty()) return pick(r, p.scales, entry);
  const std::size_t axis = p.axes[entry];
  // Each axis has its own ratio; with another policy all have one.
  if (p.policy == "stretch")
    return number(r, static_cast<double>(p.out[axis]) / static_cast<double>(p.in[axis]));
  std::string ratio;
  for (std::size_t i = 0; i < p.axes.size(); ++i) {
    const std::string q =
        r.add("Div", {pick(r, p.sizes, i), number(r, static_cast<double>(p.in[p.axes[i]]))});
    ratio = ratio.empty() ? q : r.add(p.policy == "not_smaller" ? "Max" : "Min", {ratio, q});
  }
  return ratio;
}

/// Where each output position lies in the input, [out].
std::string coordinates(Rewriter& r, const ResizeParts& p, const AxisParts& a) {
  const std::string y = r.counting(kFloat, {a.out});
  const auto n = static_cast<double>(a.in);
  const std::string one = number(r, 1);
  const std::string half = number(r, 0.5);
  // The formulas are those of ONNX's Resize, for output positions y.
  if (p.transformation == "asymmetric") return r.add("Div", {y, a.scale});
  if (p.transformation == "align_corners") {
    const std::string rest = r.add("Sub", {r.add("Mul", {a.scale, number(r, n)}), one});
    // One element has no distance to the next: the division is by 1.
    const std::string step = r.add("Where", {r.add("Equal", {rest, number(r, 0)}), one, rest});
    return r.add("Div", {r.add("Mul", {y, number(r, n - 1)}), step});
  }
  if (p.transformation == "tf_crop_and_resize") {
    const std::string first = r.add("Mul", {a.begin, number(r, n - 1)});
    const std::string span = r.add("Mul", {r.add("Sub", {a.end, a.begin}), number(r, n - 1)});
    const double parts = a.out > 1 ? static_cast<double>(a.out - 1) : 2.0;
    const std::string at = a.out > 1 ? y : r.values(kFloat, {1}, {1.0});
    return r.add("Add", {first, r.add("Div", {r.add("Mul", {at, span}), number(r, parts)})});
  }
  if (p.transformation == "pytorch_half_pixel" && a.out == 1) return r.values(kFloat, {1}, {0.0});
  std::string x = r.add("Sub", {r.add("Div", {r.add("Add", {y, half}), a.scale}), half});
  if (p.transformation != "half_pixel_symmetric") return x;
  const std::string exact = r.add("Mul", {a.scale, number(r, n)});
  const std::string adjustment = r.add("Div", {number(r, static_cast<double>(a.out)), exact});
  return r.add("Add", {x, r.add("Mul", {r.add("Sub", {one, adjustment}), number(r, n / 2)})});
}

std::string nearest_indices(Rewriter& r, const ResizeParts& p, const AxisParts& a,
                            const std::string& x) {
  // Positions on the border between two pixels come out of a division that rounds.
  constexpr double kSlack = 1e-5;
  std::string index;
  if (p.nearest == "floor" || p.nearest == "round_prefer_ceil") {
    const double up = p.nearest == "floor" ? 0.0 : 0.5;
    index = r.add("Floor", {r.add("Add", {x, number(r, up + kSlack)})});
  } else {
    const double down = p.nearest == "ceil" ? 0.0 : 0.5;
    index = r.add("Ceil", {r.add("Sub", {x, number(r, down + kSlack)})});
  }
  // Positions outside take the nearest pixel.
  index = r.add("Max", {index, number(r, 0)});
  index = r.add("Min", {index, number(r, static_cast<double>(a.in - 1))});
  return r.cast(index, T::INT64);
}

/// The interpolation kernel at distances t >= 0.
std::string kernel(Rewriter& r, const ResizeParts& p, const std::string& t) {
  const std::string zero = number(r, 0);
  const std::string one = number(r, 1);
  if (p.mode == "linear") return r.add("Max", {r.add("Sub", {one, t}), zero});
  // Keys' cubic convolution, one polynomial up to distance 1, another up to 2.
  const double c = static_cast<double>(p.cubic_a);
  const auto polynomial = [&](double a3, double a2, double a1, double a0) {
    std::string v = r.add("Add", {r.add("Mul", {t, number(r, a3)}), number(r, a2)});
    v = r.add("Add", {r.add("Mul", {t, v}), number(r, a1)});
    return r.add("Add", {r.add("Mul", {t, v}), number(r, a0)});
  };
  const std::string inner = polynomial(c + 2, -(c + 3), 0, 1);
  const std::string outer = polynomial(c, -5 * c, 8 * c, -4 * c);
  const std::string far = r.add("Where", {r.add("Less", {t, number(r, 2)}), outer, zero});
  return r.add("Where", {r.add("LessOrEqual", {t, one}), inner, far});
}

/// The matrix [out, in] of weights. Positions outside of the input fold onto its edges, or are left
/// out and the rest scaled up.
std::string weights(Rewriter& r, const ResizeParts& p, const AxisParts& a, std::string x) {
  const double shrink = std::max(1.0, static_cast<double>(a.in) / static_cast<double>(a.out));
  // Pixels beyond each edge that a kernel may touch.
  const auto reach = static_cast<std::int64_t>(
      std::ceil((p.mode == "cubic" ? 2.0 : 1.0) * (p.antialias ? 2 * shrink : 1.0)) + 1);
  // Far outside all positions look alike: the edge.
  x = r.add("Max", {x, number(r, -1)});
  x = r.add("Min", {x, number(r, static_cast<double>(a.in))});
  const std::int64_t wide = a.in + 2 * reach;
  const auto position = [&](std::int64_t i) { return static_cast<double>(i - reach); };
  const auto fold = [&](std::int64_t i) {
    const std::int64_t at = i / a.in - reach;
    if (p.exclude && (at < 0 || at >= a.in)) return 0.0;
    return i % a.in == std::clamp<std::int64_t>(at, 0, a.in - 1) ? 1.0 : 0.0;
  };
  std::string distance = r.add(
      "Abs", {r.add("Sub", {r.reshape(x, {a.out, 1}), r.sequence(kFloat, {1, wide}, position)})});
  if (p.antialias) distance = r.add("Mul", {distance, r.add("Min", {a.scale, number(r, 1)})});
  std::string w = r.add("MatMul", {kernel(r, p, distance), r.sequence(kFloat, {wide, a.in}, fold)});
  // What was left out or stretched no longer sums to 1.
  if (p.antialias || p.exclude) w = r.add("Div", {w, r.reduce("ReduceSum", w, {1}, true)});
  return w;
}

/// y[..., k, ...] = sum over i of w[k, i] * x[..., i, ...].
std::string apply_weights(Rewriter& r, const std::string& x, const std::string& w, std::size_t axis,
                          std::size_t rank) {
  if (rank >= 2 && axis == rank - 2) return r.add("MatMul", {w, x});
  const std::string columns = r.transpose(w, {1, 0});
  if (axis == rank - 1) return r.add("MatMul", {x, columns});
  Ints swap = counted(rank);
  std::swap(swap[axis], swap[rank - 1]);
  return r.transpose(r.add("MatMul", {r.transpose(x, swap), columns}), swap);
}

/// A region of interest known to be all of its axis. Another one gives other values even where it
/// keeps the size.
bool takes_all(Rewriter& r, const ResizeParts& p, std::size_t entry) {
  const auto roi = r.constant_values(p.roi);
  const std::size_t n = p.axes.size();
  return roi && roi->size() == 2 * n && (*roi)[entry] == 0 && (*roi)[entry + n] == 1;
}

Result<bool> resize(Rewriter& r, const ::onnx::NodeProto& node) {
  if (!is_wrong_in_engine(r, node)) return false;
  const auto parts = resize_parts(r, node);
  if (!parts) {
    return r.unfit(node,
                   "this form of Resize (antialias, exclude_outside, half_pixel_symmetric, "
                   "tf_crop_and_resize, keep_aspect_ratio_policy, or shrinking with "
                   "align_corners) is computed wrongly by the engine and can be written out "
                   "only for fixed shapes; fix the input shape");
  }
  const ResizeParts& p = *parts;
  const std::size_t rank = p.in.rank();
  const bool crop = p.transformation == "tf_crop_and_resize";
  std::string value = r.cast(node.input(0), kFloat);
  std::string outside;
  for (std::size_t entry = 0; entry < p.axes.size(); ++entry) {
    AxisParts a{p.axes[entry], p.in[p.axes[entry]], p.out[p.axes[entry]], {}, {}, {}};
    // An axis that keeps its size is left as it is; beyond N and C only one of one element is.
    if (a.in == a.out && (a.axis < 2 || a.in == 1) && rank > 2 && (!crop || takes_all(r, p, entry)))
      continue;
    a.scale = axis_scale(r, p, entry);
    if (crop) {
      a.begin = pick(r, p.roi, entry);
      a.end = pick(r, p.roi, entry + p.axes.size());
    }
    const std::string x = coordinates(r, p, a);
    if (p.mode == "nearest") {
      value = r.add("Gather", {value, nearest_indices(r, p, a, x)},
                    {{"axis", static_cast<std::int64_t>(a.axis)}});
    } else {
      value = apply_weights(r, value, weights(r, p, a, x), a.axis, rank);
    }
    if (!crop) continue;
    // Broadcast over all other axes.
    Ints along(rank, 1);
    along[a.axis] = a.out;
    const std::string low = r.add("Less", {x, number(r, 0)});
    const std::string high = r.add("Greater", {x, number(r, static_cast<double>(a.in - 1))});
    const std::string out = r.reshape(r.add("Or", {low, high}), along);
    outside = outside.empty() ? out : r.add("Or", {outside, out});
  }
  if (!outside.empty()) value = r.add("Where", {outside, number(r, p.extrapolation), value});
  return r.instead(node, "Cast", {value}, {{"to", p.elem}});
}

constexpr Rule kResizeRules[] = {
    {"Resize", resize, "a form that the engine gets wrong: gathers or products with weights"},
};

}  // namespace

std::span<const Rule> resize_rules() { return kResizeRules; }

}  // namespace corelane::onnx
