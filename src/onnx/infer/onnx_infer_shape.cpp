// Inference of the operators that compute or change shapes.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/leaked.h"
#include "onnx/graph/onnx_checked.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/infer/onnx_infer.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;
using Ints = std::vector<std::int64_t>;

/// Open when a dimension is, or when the product overflows.
std::int64_t product(const Ints& dims, std::size_t from, std::size_t to) {
  std::int64_t n = 1;
  for (std::size_t i = from; i < to; ++i)
    if (dims[i] < 0 || __builtin_mul_overflow(n, dims[i], &n)) return Shape::kOpen;
  return n;
}

/// Where values of shapes begin: dimensions as integers, unknown where they are open.
void infer_shape(const InferContext& c) {
  const auto& shape = c.in(0).shape;
  if (!shape) return c.set(0, T::INT64, std::nullopt);
  const auto rank = static_cast<std::int64_t>(shape->rank());
  // ONNX: start and end may be negative and are clamped to the rank.
  const auto clamp = [&](std::int64_t v) {
    return std::clamp<std::int64_t>(v < 0 ? v + rank : v, 0, rank);
  };
  const std::int64_t start = clamp(int_attribute(c.node, "start", 0));
  const std::int64_t end = std::max(start, clamp(int_attribute(c.node, "end", rank)));
  Ints dims(shape->dims().begin() + start, shape->dims().begin() + end);
  std::replace(dims.begin(), dims.end(), Shape::kOpen, kUnknownInt);
  const auto n = static_cast<std::int64_t>(dims.size());
  c.set(0, {T::INT64, Shape{n}, std::move(dims), std::nullopt});
}

/// The dimensions that a list of integers describes, unknown ones open.
std::optional<Shape> shape_from(const std::optional<Ints>& ints) {
  if (!ints) return std::nullopt;
  Ints dims = *ints;
  for (auto& d : dims) {
    if (d == kUnknownInt) d = Shape::kOpen;
    if (d < Shape::kOpen) return std::nullopt;
  }
  return Shape(std::move(dims));
}

/// A list of known length with unknown values: the rank is known. 64 as in kMostDims.
std::optional<Shape> open_shape_of_length(const ValueFacts& list) {
  if (!list.shape || list.shape->rank() != 1 || (*list.shape)[0] < 0 || (*list.shape)[0] > 64)
    return std::nullopt;
  return Shape(Ints(static_cast<std::size_t>((*list.shape)[0]), Shape::kOpen));
}

void infer_reshape(const InferContext& c) {
  auto wanted = c.ints_of(1, "shape");
  ValueFacts result{c.in(0).elem, std::nullopt, std::nullopt, std::nullopt};
  // The shape comes at run time: its length is the rank.
  if (!wanted) {
    result.shape = open_shape_of_length(c.in(1));
    return c.set(0, std::move(result));
  }
  const auto& from = c.in(0).shape;
  const bool allow_zero = int_attribute(c.node, "allowzero", 0) != 0;
  Ints dims = *wanted;
  std::optional<std::size_t> free_at;
  bool unknown = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    // 0 takes the input's size at this place, one -1 what is left of all elements.
    if (dims[i] == kUnknownInt) {
      dims[i] = Shape::kOpen;
      unknown = true;
    } else if (dims[i] == 0 && !allow_zero) {
      dims[i] = from && i < from->rank() ? (*from)[i] : Shape::kOpen;
      unknown = unknown || dims[i] == Shape::kOpen;
    } else if (dims[i] == -1) {
      // Two free dimensions are not allowed; the file's declaration stands.
      if (free_at) return;
      free_at = i;
    } else if (dims[i] < -1) {
      return;
    }
  }
  // What is left for the -1 follows only where all others are known.
  if (free_at && !unknown && from) {
    const std::int64_t total = product(from->dims(), 0, from->rank());
    dims[*free_at] = 1;
    const std::int64_t rest = product(dims, 0, dims.size());
    dims[*free_at] = total >= 0 && rest > 0 && total % rest == 0 ? total / rest : Shape::kOpen;
  }
  result.shape = Shape(std::move(dims));
  // Order and number of elements stay: so do the values.
  result.ints = c.in(0).ints;
  c.set(0, std::move(result));
}

void infer_squeeze(const InferContext& c) {
  ValueFacts result{c.in(0).elem, std::nullopt, c.in(0).ints, std::nullopt};
  const auto& from = c.in(0).shape;
  const auto axes = c.ints_of(1, "axes");
  // Axes that are given but not known differ from none, which drops every 1.
  const bool given = !input_of(c.node, 1).empty() || find_attribute(c.node, "axes") != nullptr;
  if (!from || (given && !axes)) return c.set(0, std::move(result));
  std::vector<bool> drop(from->rank(), false);
  if (axes) {
    for (const auto a : *axes) {
      const auto axis = normal_axis(a, from->rank());
      if (!axis) return c.set(0, {result.elem, std::nullopt, std::nullopt, std::nullopt});
      drop[*axis] = true;
    }
  } else {
    // An open dimension may turn out to be 1.
    if (!from->is_static()) return c.set(0, std::move(result));
    for (std::size_t i = 0; i < from->rank(); ++i) drop[i] = (*from)[i] == 1;
  }
  Ints dims;
  for (std::size_t i = 0; i < from->rank(); ++i)
    if (!drop[i]) dims.push_back((*from)[i]);
  result.shape = Shape(std::move(dims));
  c.set(0, std::move(result));
}

void infer_unsqueeze(const InferContext& c) {
  ValueFacts result{c.in(0).elem, std::nullopt, std::nullopt, std::nullopt};
  const auto& from = c.in(0).shape;
  const auto axes = c.ints_of(1, "axes");
  if (!from || !axes) return c.set(0, std::move(result));
  // Axes count in the output.
  const std::size_t rank = from->rank() + axes->size();
  std::vector<bool> fresh(rank, false);
  for (const auto a : *axes) {
    const auto axis = normal_axis(a, rank);
    if (!axis || fresh[*axis]) return c.set(0, std::move(result));
    fresh[*axis] = true;
  }
  Ints dims;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) dims.push_back(fresh[i] ? 1 : (*from)[next++]);
  result.shape = Shape(std::move(dims));
  result.ints = c.in(0).ints;
  c.set(0, std::move(result));
}

void infer_transpose(const InferContext& c) {
  const auto& from = c.in(0).shape;
  if (!from) return c.set(0, c.in(0).elem, std::nullopt);
  Ints perm = ints_attribute(c.node, "perm");
  if (perm.empty()) {
    perm.resize(from->rank());
    // ONNX: without perm the order is reversed.
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  if (perm.size() != from->rank()) return;
  Ints dims;
  for (const auto p : perm) {
    if (p < 0 || p >= static_cast<std::int64_t>(from->rank())) return;
    dims.push_back((*from)[static_cast<std::size_t>(p)]);
  }
  ValueFacts result{c.in(0).elem, Shape(std::move(dims)), std::nullopt, std::nullopt};
  // Values are followed for matrices only: pairs of pads come as those.
  if (c.in(0).ints && !c.in(0).ints->empty() && from->rank() == 2 && from->is_static()) {
    const bool turned = perm[0] == 1;
    const auto rows = static_cast<std::size_t>((*from)[0]);
    const auto columns = static_cast<std::size_t>((*from)[1]);
    Ints values;
    for (std::size_t j = 0; turned && j < columns; ++j)
      for (std::size_t i = 0; i < rows; ++i) values.push_back((*c.in(0).ints)[i * columns + j]);
    result.ints = turned ? values : *c.in(0).ints;
  }
  c.set(0, std::move(result));
}

void infer_concat(const InferContext& c) {
  ValueFacts result{c.in(0).elem, c.in(0).shape, c.in(0).ints, std::nullopt};
  for (int i = 1; i < c.node.input_size(); ++i) {
    const auto& next = c.in(i);
    if (!next.shape || !result.shape || next.shape->rank() != result.shape->rank())
      return c.set(0, result.elem, std::nullopt);
    const auto axis = normal_axis(int_attribute(c.node, "axis", 1), next.shape->rank());
    if (!axis) return;
    for (std::size_t d = 0; d < next.shape->rank(); ++d) {
      auto& dim = (*result.shape)[d];
      const std::int64_t other = (*next.shape)[d];
      // Sizes add up along the axis; along the others a known one fills an open one.
      if (d == *axis)
        dim = dim < 0 || other < 0 ? Shape::kOpen : (Checked(dim) + other).or_open();
      else if (dim == Shape::kOpen)
        dim = other;
    }
    // Along axis 0 row-major values follow each other.
    if (result.ints && next.ints && *axis == 0 &&
        result.ints->size() + next.ints->size() <= kMostKept) {
      result.ints->insert(result.ints->end(), next.ints->begin(), next.ints->end());
    } else {
      result.ints.reset();
    }
  }
  c.set(0, std::move(result));
}

/// Number of elements of begin:end:step over a dimension; open when something is unknown.
std::int64_t slice_size(std::int64_t dim, std::int64_t& begin, std::int64_t end,
                        std::int64_t step) {
  // The values below are all known, and the step is not 0.
  if (dim < 0 || begin == kUnknownInt || end == kUnknownInt || step == kUnknownInt || step == 0)
    return Shape::kOpen;
  // ONNX clamps both ends; going backwards, -1 is the end before element 0.
  const auto bound = [&](std::int64_t v) {
    v = v < -dim ? -dim - 1 : std::min(v, dim);
    if (v < 0) v += dim;
    return step > 0 ? std::clamp<std::int64_t>(v, 0, dim)
                    : std::clamp<std::int64_t>(v, -1, dim - 1);
  };
  // Also handed back: the caller follows values from there.
  begin = bound(begin);
  const std::int64_t stop = bound(end);
  const std::int64_t distance = step > 0 ? stop - begin : begin - stop;
  const std::int64_t width = std::abs(step);
  return distance <= 0 ? 0 : 1 + (distance - 1) / width;
}

void infer_slice(const InferContext& c) {
  const auto& from = c.in(0).shape;
  if (!from) return c.set(0, c.in(0).elem, std::nullopt);
  const auto starts = c.ints_of(1, "starts");
  const auto ends = c.ints_of(2, "ends");
  auto axes = c.ints_of(3, "axes");
  auto steps = c.ints_of(4, "steps");
  ValueFacts result{c.in(0).elem, Shape(Ints(from->rank(), Shape::kOpen)), std::nullopt,
                    std::nullopt};
  const bool axes_given = !input_of(c.node, 3).empty();
  if (!starts || !ends || (axes_given && !axes)) return c.set(0, std::move(result));
  // Without axes: the first dimensions, in order.
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  // Without steps: 1 each.
  if (!steps && input_of(c.node, 4).empty()) steps = Ints(starts->size(), 1);
  if (!steps || ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size()) {
    return c.set(0, std::move(result));
  }
  result.shape = from;
  Ints begins = *starts;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const auto axis = normal_axis((*axes)[i], from->rank());
    if (!axis) return;
    auto& dim = (*result.shape)[*axis];
    dim = slice_size((*from)[*axis], begins[i], (*ends)[i], (*steps)[i]);
  }
  // Values are followed along the first axis only: lists that describe shapes have one.
  const bool first_axis = axes->size() == 1 && normal_axis(axes->front(), from->rank()) == 0u;
  if (c.in(0).ints && first_axis && from->is_static() && (*from)[0] > 0) {
    // Elements of one index of the first axis. All sizes are static, and the list has them all.
    const std::int64_t row = product(from->dims(), 1, from->rank());
    Ints values;
    for (std::int64_t k = 0; k < (*result.shape)[0] * row; ++k) {
      const std::int64_t at = (begins[0] + k / row * (*steps)[0]) * row + k % row;
      values.push_back((*c.in(0).ints)[static_cast<std::size_t>(at)]);
    }
    result.ints = std::move(values);
  }
  c.set(0, std::move(result));
}

void infer_gather(const InferContext& c) {
  const auto& data = c.in(0).shape;
  const auto& index = c.in(1).shape;
  if (!data || !index) return c.set(0, c.in(0).elem, std::nullopt);
  const auto axis = normal_axis(int_attribute(c.node, "axis", 0), data->rank());
  if (!axis) return;
  // The index's dimensions take the place of the axis.
  Ints dims(data->dims().begin(), data->dims().begin() + static_cast<std::ptrdiff_t>(*axis));
  dims.insert(dims.end(), index->dims().begin(), index->dims().end());
  dims.insert(dims.end(), data->dims().begin() + static_cast<std::ptrdiff_t>(*axis) + 1,
              data->dims().end());
  ValueFacts result{c.in(0).elem, Shape(std::move(dims)), std::nullopt, std::nullopt};
  // Picking a dimension out of a shape: the most common thing done with one.
  if (c.in(0).ints && c.in(1).known_ints() && data->rank() == 1 && index->rank() <= 1) {
    const auto n = static_cast<std::int64_t>(c.in(0).ints->size());
    Ints values;
    for (const auto i : *c.in(1).ints) {
      if (i < -n || i >= n) return;
      values.push_back((*c.in(0).ints)[static_cast<std::size_t>(i < 0 ? i + n : i)]);
    }
    result.ints = std::move(values);
  }
  c.set(0, std::move(result));
}

/// Sizes from the list, or equal parts of what num_outputs or the node's outputs say.
void infer_split(const InferContext& c) {
  const auto& from = c.in(0).shape;
  const auto axis =
      from ? normal_axis(int_attribute(c.node, "axis", 0), from->rank()) : std::nullopt;
  const auto parts = c.ints_of(1, "split");
  const bool given = !input_of(c.node, 1).empty();
  const auto outputs = c.node.output_size();
  for (int i = 0; i < outputs; ++i) {
    if (!axis) {
      c.set(i, c.in(0).elem, std::nullopt);
      continue;
    }
    Shape shape = *from;
    const std::int64_t total = shape[*axis];
    shape[*axis] = Shape::kOpen;
    if (parts && static_cast<int>(parts->size()) == outputs) {
      const std::int64_t part = (*parts)[static_cast<std::size_t>(i)];
      shape[*axis] = part == kUnknownInt ? Shape::kOpen : part;
    } else if (!given && total >= 0) {
      const std::int64_t n = int_attribute(c.node, "num_outputs", outputs);
      // Rounded up, so that the last parts may be shorter, or empty.
      const std::int64_t part = n > 0 ? total / n + (total % n != 0 ? 1 : 0) : 0;
      const Checked before = Checked(part) * i;
      shape[*axis] = before.is_within(0, total) ? std::min(total - before.or_open(), part) : 0;
    }
    c.set(i, c.in(0).elem, shape);
  }
}

void infer_expand_tile(const InferContext& c) {
  const auto& from = c.in(0).shape;
  if (c.node.op_type() == "Expand") {
    // Open against a known size may still be 1 on either side.
    return c.set(0, c.in(0).elem, broadcast(from, shape_from(c.in(1).ints)));
  }
  if (!from) return c.set(0, c.in(0).elem, std::nullopt);
  Shape shape(Ints(from->rank(), Shape::kOpen));
  const auto& repeats = c.in(1).ints;
  if (repeats && repeats->size() == from->rank()) {
    for (std::size_t i = 0; i < from->rank(); ++i) {
      const std::int64_t r = (*repeats)[i];
      if (r != kUnknownInt && (*from)[i] >= 0) shape[i] = (Checked(r) * (*from)[i]).or_open();
    }
  }
  c.set(0, c.in(0).elem, shape);
}

void infer_pad(const InferContext& c) {
  const auto& from = c.in(0).shape;
  if (!from) return c.set(0, c.in(0).elem, std::nullopt);
  auto pads = c.ints_of(1, "pads");
  // "paddings" is the name of operator set 1.
  if (!pads && c.opset < 11) pads = ints_attribute(c.node, "paddings");
  Shape shape(Ints(from->rank(), Shape::kOpen));
  if (pads && input_of(c.node, 3).empty() && pads->size() == 2 * from->rank()) {
    for (std::size_t i = 0; i < from->rank(); ++i) {
      const std::int64_t a = (*pads)[i];
      const std::int64_t b = (*pads)[i + from->rank()];
      if (a != kUnknownInt && b != kUnknownInt && (*from)[i] >= 0)
        shape[i] = (Checked((*from)[i]) + a + b).or_open();
    }
  }
  c.set(0, c.in(0).elem, shape);
}

void infer_range(const InferContext& c) {
  ValueFacts result{c.in(0).elem, Shape{Shape::kOpen}, std::nullopt, std::nullopt};
  const auto begin = c.in(0).one_int();
  const auto end = c.in(1).one_int();
  const auto by = c.in(2).one_int();
  if (begin && end && by) {
    const auto [a, b, step] = std::array{*begin, *end, *by};
    // Far from any overflow in the sums below.
    const bool small =
        std::max({std::abs(a), std::abs(b), std::abs(step)}) < (std::int64_t{1} << 40);
    if (step == 0 || !small) return c.set(0, std::move(result));
    // Rounded up; the end does not belong to the range.
    const std::int64_t n = (b - a + step + (step > 0 ? -1 : 1)) / step;
    result.shape = Shape{std::max<std::int64_t>(n, 0)};
    if (n <= static_cast<std::int64_t>(kMostKept)) {
      result.ints.emplace();
      for (std::int64_t i = 0; i < n; ++i) result.ints->push_back(a + i * step);
    }
  }
  c.set(0, std::move(result));
}

void infer_constant_of_shape(const InferContext& c) {
  const auto* value = find_attribute(c.node, "value");
  // ONNX: zeros of f32 unless a value says otherwise.
  const std::int32_t elem = value != nullptr ? value->t().data_type() : T::FLOAT;
  auto shape = shape_from(c.in(0).ints);
  ValueFacts result{elem, shape ? shape : open_shape_of_length(c.in(0)), std::nullopt,
                    std::nullopt};
  const auto elements = result.shape ? result.shape->elements() : std::nullopt;
  if (value != nullptr && elements && *elements <= kMostKept) {
    const auto filled = read_ints(value->t(), c.constants);
    if (filled && filled->size() == 1) result.ints = Ints(*elements, filled->front());
  }
  c.set(0, std::move(result));
}

void infer_flatten(const InferContext& c) {
  const auto& from = c.in(0).shape;
  if (!from) return c.set(0, c.in(0).elem, Shape{Shape::kOpen, Shape::kOpen});
  // ONNX: dimensions before the axis become rows, the rest columns; the rank itself is allowed.
  std::int64_t axis = int_attribute(c.node, "axis", 1);
  const auto rank = static_cast<std::int64_t>(from->rank());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return;
  const auto at = static_cast<std::size_t>(axis);
  c.set(0, c.in(0).elem,
        Shape{product(from->dims(), 0, at), product(from->dims(), at, from->rank())});
}

}  // namespace

const InferTable& shape_inference() {
  static Leaked<const InferTable> kTable({
      {"Shape", infer_shape},
      {"Reshape", infer_reshape},
      {"Squeeze", infer_squeeze},
      {"Unsqueeze", infer_unsqueeze},
      {"Transpose", infer_transpose},
      {"Concat", infer_concat},
      {"Slice", infer_slice},
      {"Gather", infer_gather},
      {"Split", infer_split},
      {"Expand", infer_expand_tile},
      {"Tile", infer_expand_tile},
      {"Pad", infer_pad},
      {"Range", infer_range},
      {"ConstantOfShape", infer_constant_of_shape},
      {"Flatten", infer_flatten},
  });
  return *kTable;
}

}  // namespace corelane::onnx
