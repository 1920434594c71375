// Inference of the operators that compute: convolutions, pools, products, reductions, recurrences.
#include <algorithm>
#include <cmath>

#include "base/leaked.h"
#include "onnx/graph/onnx_checked.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/infer/onnx_infer.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kOpen = Shape::kOpen;

/// The list of an attribute; `n` times `otherwise` where it is missing or has another length.
Ints ints_or(const ::onnx::NodeProto& node, std::string_view name, std::size_t n,
             std::int64_t otherwise) {
  Ints values = ints_attribute(node, name);
  if (values.size() != n) values.assign(n, otherwise);
  return values;
}

/// Sizes of windows up to this one are computed; larger ones stay open.
constexpr std::int64_t kMostWindow = std::int64_t{1} << 40;

/// Output size of a window sliding over one padded dimension.
std::int64_t window_size(std::int64_t in, std::int64_t kernel, std::int64_t stride,
                         std::int64_t dilation, Checked pads, const std::string& auto_pad,
                         bool ceil_mode, std::int64_t pad_begin) {
  const auto usual = [](Checked v) { return v.is_within(-kMostWindow, kMostWindow); };
  // A size that is not known, or that no operator allows, leaves the output open.
  if (in < 0 || kernel < 1 || stride < 1 || dilation < 1) return kOpen;
  if (!usual(in) || !usual(stride) || !usual(pads) || !usual(pad_begin)) return kOpen;
  // ONNX: SAME pads so that the output is the input by the stride, rounded up.
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") return (in + stride - 1) / stride;
  const Checked span = (Checked(kernel) - 1) * dilation + 1;
  const std::int64_t room = (Checked(in) + (auto_pad == "VALID" ? 0 : pads) - span).or_open();
  if (room < 0) return kOpen;
  std::int64_t out = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  // A window that would start in the right padding does not count.
  if (ceil_mode && (out - 1) * stride >= in + pad_begin) --out;
  return out;
}

/// `channels` 0: as many as the input has. Pads are all beginnings, then all ends.
void infer_window(const InferContext& c, std::int64_t channels, const Ints& kernel,
                  std::int32_t elem) {
  const auto& x = c.in(0).shape;
  Shape shape = *x;
  if (channels != 0) shape[1] = channels;
  const std::size_t n = x->rank() - 2;
  const Ints strides = ints_or(c.node, "strides", n, 1);
  const Ints dilations = ints_or(c.node, "dilations", n, 1);
  const Ints pads = ints_or(c.node, "pads", 2 * n, 0);
  const std::string auto_pad = string_attribute(c.node, "auto_pad", "NOTSET");
  const bool ceil_mode = int_attribute(c.node, "ceil_mode", 0) != 0;
  for (std::size_t i = 0; i < n; ++i) {
    shape[2 + i] = window_size((*x)[2 + i], kernel[i], strides[i], dilations[i],
                               Checked(pads[i]) + pads[i + n], auto_pad, ceil_mode, pads[i]);
  }
  c.set(0, elem, shape);
  if (c.node.op_type() == "MaxPool") c.set(1, T::INT64, shape);
}

/// Weights are [output channels, input channels / group, kernel...].
void infer_conv(const InferContext& c) {
  const auto& x = c.in(0).shape;
  const int weight_input = c.node.op_type() == "QLinearConv" ? 3 : 1;
  const auto& w = c.in(weight_input).shape;
  std::int32_t elem = c.in(0).elem;
  // ONNX: sums of 8-bit products are i32; QLinearConv gives the type of its output zero point.
  if (c.node.op_type() == "ConvInteger") elem = T::INT32;
  if (c.node.op_type() == "QLinearConv") elem = c.in(7).elem;
  if (!x || !w || x->rank() < 3 || w->rank() != x->rank()) return c.set(0, elem, std::nullopt);
  infer_window(c, (*w)[0], Ints(w->dims().begin() + 2, w->dims().end()), elem);
}

void infer_pool(const InferContext& c) {
  const auto& x = c.in(0).shape;
  const Ints kernel = ints_attribute(c.node, "kernel_shape");
  if (!x || x->rank() < 3 || kernel.size() != x->rank() - 2)
    return c.set(0, c.in(0).elem, std::nullopt);
  infer_window(c, 0, kernel, c.in(0).elem);
}

/// Weights are [input channels, output channels / group, kernel...].
void infer_conv_transpose(const InferContext& c) {
  const auto& x = c.in(0).shape;
  const auto& w = c.in(1).shape;
  if (!x || !w || x->rank() < 3 || w->rank() != x->rank())
    return c.set(0, c.in(0).elem, std::nullopt);
  const std::size_t n = x->rank() - 2;
  const Ints strides = ints_or(c.node, "strides", n, 1);
  const Ints dilations = ints_or(c.node, "dilations", n, 1);
  const Ints pads = ints_or(c.node, "pads", 2 * n, 0);
  const Ints extra = ints_or(c.node, "output_padding", n, 0);
  const Ints wanted = ints_attribute(c.node, "output_shape");
  const std::string auto_pad = string_attribute(c.node, "auto_pad", "NOTSET");
  Shape shape = *x;
  shape[1] = (*w)[1] < 0 ? kOpen : (Checked((*w)[1]) * int_attribute(c.node, "group", 1)).or_open();
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t in = (*x)[2 + i];
    auto& out = shape[2 + i];
    out = kOpen;
    // output_shape decides, and the pads follow from it.
    if (wanted.size() == n) {
      out = wanted[i];
    } else if (in >= 0 && (*w)[2 + i] > 0) {
      const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
      const Checked full =
          (Checked(in) - 1) * strides[i] + extra[i] + (Checked((*w)[2 + i]) - 1) * dilations[i] + 1;
      const Checked cut = auto_pad == "VALID" ? Checked(0) : Checked(pads[i]) + pads[i + n];
      out = (same ? Checked(in) * strides[i] : full - cut).or_open();
    }
  }
  c.set(0, c.in(0).elem, shape);
}

void infer_global_pool(const InferContext& c) {
  auto shape = c.in(0).shape;
  if (shape)
    for (std::size_t i = 2; i < shape->rank(); ++i) (*shape)[i] = 1;
  c.set(0, c.in(0).elem, shape);
}

/// A is M x K or, turned, K x M; B is K x N or N x K.
void infer_gemm(const InferContext& c) {
  const auto& a = c.in(0).shape;
  const auto& b = c.in(1).shape;
  if (!a || !b || a->rank() != 2 || b->rank() != 2) return c.set(0, c.in(0).elem, std::nullopt);
  const std::int64_t m = (*a)[int_attribute(c.node, "transA", 0) != 0 ? 1 : 0];
  const std::int64_t n = (*b)[int_attribute(c.node, "transB", 0) != 0 ? 0 : 1];
  c.set(0, c.in(0).elem, Shape{m, n});
}

/// numpy's matmul: a vector is a row on the left, a column on the right, and its 1 is dropped
/// again.
std::optional<Shape> product_shape(const std::optional<Shape>& a, const std::optional<Shape>& b) {
  if (!a || !b || a->rank() == 0 || b->rank() == 0) return std::nullopt;
  Ints left = a->dims();
  Ints right = b->dims();
  const bool row = left.size() == 1;
  const bool column = right.size() == 1;
  if (row) left.insert(left.begin(), 1);
  if (column) right.push_back(1);
  auto batch = broadcast(Shape(Ints(left.begin(), left.end() - 2)),
                         Shape(Ints(right.begin(), right.end() - 2)));
  if (!batch) return std::nullopt;
  Ints dims = batch->dims();
  if (!row) dims.push_back(left[left.size() - 2]);
  if (!column) dims.push_back(right.back());
  return Shape(std::move(dims));
}

/// QLinearMatMul: a, its scale and zero point, b, its two, then those of the output.
void infer_matmul(const InferContext& c) {
  const std::string& op = c.node.op_type();
  if (op == "QLinearMatMul")
    return c.set(0, c.in(7).elem, product_shape(c.in(0).shape, c.in(3).shape));
  c.set(0, op == "MatMulInteger" ? static_cast<std::int32_t>(T::INT32) : c.in(0).elem,
        product_shape(c.in(0).shape, c.in(1).shape));
}

void infer_reduce(const InferContext& c) {
  const auto& from = c.in(0).shape;
  const bool arg = c.node.op_type().starts_with("Arg");
  const std::int32_t elem = arg ? static_cast<std::int32_t>(T::INT64) : c.in(0).elem;
  // ONNX: keepdims is 1 unless given.
  const bool keep = int_attribute(c.node, "keepdims", 1) != 0;
  if (!from) return c.set(0, elem, std::nullopt);
  std::vector<bool> reduced(from->rank(), false);
  if (arg) {
    const auto axis = normal_axis(int_attribute(c.node, "axis", 0), from->rank());
    if (!axis) return;
    reduced[*axis] = true;
  } else {
    const auto axes = c.ints_of(1, "axes");
    // Axes that come at run time: with keepdims the rank stands at least.
    if (!axes && !input_of(c.node, 1).empty()) {
      if (keep) c.set(0, elem, Shape(Ints(from->rank(), kOpen)));
      return;
    }
    if (!axes || axes->empty()) {
      // No axes: all of them, or none by this attribute.
      if (int_attribute(c.node, "noop_with_empty_axes", 0) != 0) return c.set(0, elem, from);
      reduced.assign(from->rank(), true);
    } else {
      for (const auto a : *axes) {
        const auto axis = normal_axis(a, from->rank());
        if (!axis) return;
        reduced[*axis] = true;
      }
    }
  }
  Ints dims;
  for (std::size_t i = 0; i < from->rank(); ++i)
    if (!reduced[i])
      dims.push_back((*from)[i]);
    else if (keep)
      dims.push_back(1);
  c.set(0, elem, Shape(std::move(dims)));
}

/// LayerNormalization also gives mean and inverse deviation, f32, with 1 for what it reduces.
void infer_normalization(const InferContext& c) {
  const auto& x = c.in(0).shape;
  c.set(0, c.in(0).elem, x);
  if (c.node.op_type() != "LayerNormalization" || !x) return;
  const auto axis = normal_axis(int_attribute(c.node, "axis", -1), x->rank());
  if (!axis) return;
  Shape stats = *x;
  for (std::size_t i = *axis; i < stats.rank(); ++i) stats[i] = 1;
  c.set(1, T::FLOAT, stats);
  c.set(2, T::FLOAT, stats);
}

/// The zero point's type decides, then output_dtype, then ONNX's default. Reals take the scale's
/// type.
void infer_quantize(const InferContext& c) {
  std::int32_t elem = c.in(2).elem;
  const auto asked = static_cast<std::int32_t>(int_attribute(c.node, "output_dtype", 0));
  if (c.node.op_type() == "QuantizeLinear") {
    if (elem == 0) elem = asked != 0 ? asked : (input_of(c.node, 2).empty() ? T::UINT8 : 0);
  } else {
    elem = asked != 0 ? asked : c.in(1).elem;
  }
  c.set(0, elem, c.in(0).shape);
}

void infer_resize(const InferContext& c) {
  const auto& x = c.in(0).shape;
  if (!x) return c.set(0, c.in(0).elem, std::nullopt);
  Shape shape(Ints(x->rank(), kOpen));
  // Before operator set 11 input 1 holds the scales; since then roi, scales, sizes.
  const bool old = c.node.op_type() == "Upsample" || c.opset < 11;
  const auto& scales = c.in(old ? 1 : 2).floats;
  const auto& sizes = c.in(3).ints;
  // Other forms decide the size from a region or a ratio: left open here.
  const bool plain =
      ints_attribute(c.node, "axes").empty() &&
      string_attribute(c.node, "keep_aspect_ratio_policy", "stretch") == "stretch" &&
      string_attribute(c.node, "coordinate_transformation_mode", "") != "tf_crop_and_resize";
  for (std::size_t i = 0; plain && i < x->rank(); ++i)
    if (!old && sizes && sizes->size() == x->rank())
      shape[i] = (*sizes)[i] == kUnknownInt ? kOpen : (*sizes)[i];
    else if (scales && scales->size() == x->rank() && (*x)[i] >= 0)
      // In floats, as ONNX Runtime does: 10 times 0.7 is 7 there, and 6 in doubles.
      shape[i] =
          size_from(std::floor(static_cast<float>((*x)[i]) * static_cast<float>((*scales)[i])));
  c.set(0, c.in(0).elem, shape);
}

/// Blocks of b x b move between the channels and the plane.
void infer_space_depth(const InferContext& c) {
  const auto& x = c.in(0).shape;
  const std::int64_t b = int_attribute(c.node, "blocksize", 0);
  if (!x || x->rank() != 4 || b < 1) return c.set(0, c.in(0).elem, std::nullopt);
  Shape shape = *x;
  const bool to_space = c.node.op_type() == "DepthToSpace";
  for (std::size_t i = 1; i < 4; ++i) {
    if (shape[i] < 0) continue;
    const bool grows = (i == 1) != to_space;
    const std::int64_t factor = (i == 1 ? Checked(b) * b : Checked(b)).or_open();
    if (factor < 1)
      shape[i] = kOpen;
    else
      shape[i] = grows ? (Checked(shape[i]) * factor).or_open() : shape[i] / factor;
  }
  c.set(0, c.in(0).elem, shape);
}

/// X is [steps, batch, input], R [directions, gates, hidden]; layout 1 puts the batch first.
void infer_recurrent(const InferContext& c) {
  const auto& x = c.in(0).shape;
  const auto& r = c.in(2).shape;
  if (!x || x->rank() != 3 || !r || r->rank() != 3) return;
  const bool batch_first = int_attribute(c.node, "layout", 0) != 0;
  const std::int64_t directions =
      string_attribute(c.node, "direction", "forward") == "bidirectional" ? 2 : 1;
  const std::int64_t hidden = (*r)[2];
  const std::int64_t seq = (*x)[batch_first ? 1 : 0];
  const std::int64_t batch = (*x)[batch_first ? 0 : 1];
  const Shape all =
      batch_first ? Shape{batch, seq, directions, hidden} : Shape{seq, directions, batch, hidden};
  const Shape last =
      batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  c.set(0, c.in(0).elem, all);
  c.set(1, c.in(0).elem, last);
  if (c.node.op_type() == "LSTM") c.set(2, c.in(0).elem, last);
}

/// Values and their indices. `k` is an attribute before operator set 10.
void infer_topk(const InferContext& c) {
  auto shape = c.in(0).shape;
  if (shape) {
    const auto axis = normal_axis(int_attribute(c.node, "axis", -1), shape->rank());
    if (!axis) return;
    (*shape)[*axis] =
        c.opset < 10 ? int_attribute(c.node, "k", kOpen) : c.in(1).one_int().value_or(kOpen);
  }
  c.set(0, c.in(0).elem, shape);
  c.set(1, T::INT64, shape);
}

/// Operators whose output follows from an index, or from how many elements there are.
void infer_indexed(const InferContext& c) {
  const std::string& op = c.node.op_type();
  if (op == "GatherElements") return c.set(0, c.in(0).elem, c.in(1).shape);
  if (op == "Size") {
    ValueFacts size{T::INT64, Shape{}, std::nullopt, std::nullopt};
    const auto n = c.in(0).shape ? c.in(0).shape->elements() : std::nullopt;
    if (n) size.ints = Ints{static_cast<std::int64_t>(*n)};
    return c.set(0, std::move(size));
  }
  if (op == "NonZero") {
    // One column per hit: how many comes out of the run. A scalar counts as a vector.
    if (c.in(0).shape) c.set(0, T::INT64, Shape{std::max<std::int64_t>(c.in(0).rank(), 1), kOpen});
    return;
  }
  // Rows of batch, class and box.
  if (op == "NonMaxSuppression") return c.set(0, T::INT64, Shape{kOpen, 3});
  const auto& data = c.in(0).shape;
  const auto& index = c.in(1).shape;
  if (op == "OneHot") {
    if (!data) return c.set(0, c.in(2).elem, std::nullopt);
    const auto axis = normal_axis(int_attribute(c.node, "axis", -1), data->rank() + 1);
    if (!axis) return;
    // The new dimension is put in at `axis`; its size is a value.
    Ints dims = data->dims();
    const std::int64_t depth = c.in(1).one_int().value_or(kOpen);
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(*axis), std::max(depth, kOpen));
    return c.set(0, c.in(2).elem, Shape(std::move(dims)));
  }
  // GatherND
  const auto batch =
      static_cast<std::size_t>(std::max<std::int64_t>(0, int_attribute(c.node, "batch_dims", 0)));
  if (!data || !index || index->rank() == 0) return c.set(0, c.in(0).elem, std::nullopt);
  const std::int64_t last = (*index)[index->rank() - 1];
  if (last < 0 || batch + static_cast<std::size_t>(last) > data->rank())
    return c.set(0, c.in(0).elem, std::nullopt);
  // The index's dimensions but the last, then what that one does not reach of the data.
  Ints dims(index->dims().begin(), index->dims().end() - 1);
  dims.insert(dims.end(), data->dims().begin() + static_cast<std::ptrdiff_t>(batch) + last,
              data->dims().end());
  c.set(0, c.in(0).elem, Shape(std::move(dims)));
}

}  // namespace

const InferTable& layer_inference() {
  static Leaked<const InferTable> kTable([] {
    InferTable table;
    const auto add = [&](auto* rule, std::initializer_list<std::string_view> operators) {
      for (const auto op : operators) table.emplace(op, rule);
    };
    add(infer_conv, {"Conv", "ConvInteger", "QLinearConv"});
    add(infer_conv_transpose, {"ConvTranspose"});
    add(infer_pool, {"MaxPool", "AveragePool", "LpPool"});
    add(infer_global_pool, {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"});
    add(infer_gemm, {"Gemm"});
    add(infer_matmul, {"MatMul", "MatMulInteger", "QLinearMatMul"});
    add(infer_reduce,
        {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
         "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin"});
    add(infer_normalization, {"BatchNormalization", "LayerNormalization"});
    add(infer_quantize, {"QuantizeLinear", "DequantizeLinear"});
    add(infer_resize, {"Resize", "Upsample"});
    add(infer_space_depth, {"DepthToSpace", "SpaceToDepth"});
    add(infer_recurrent, {"LSTM", "GRU", "RNN"});
    add(infer_topk, {"TopK"});
    add(infer_indexed,
        {"GatherElements", "GatherND", "Size", "NonZero", "NonMaxSuppression", "OneHot"});
    return table;
  }());
  return *kTable;
}

}  // namespace corelane::onnx
