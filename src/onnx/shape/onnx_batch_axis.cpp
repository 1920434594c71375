#include "onnx/shape/onnx_batch_axis.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "base/leaked.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_unary.h"
#include "onnx/infer/onnx_infer.h"

namespace corelane::onnx {
namespace {

using Ints = std::vector<std::int64_t>;

/// One node, with all that is known around it.
struct Follower {
  const ::onnx::NodeProto& node;
  std::int64_t opset;
  std::int64_t batch;
  const FactsTable& facts;
  const BatchAxes& axes;
  const FixedValues& fixed;

  std::optional<std::size_t> axis(int i) const {
    const auto it = axes.find(input_of(node, i));
    return it == axes.end() ? std::nullopt : std::optional(it->second);
  }
  const std::optional<Shape>& shape(int i) const { return facts.of(input_of(node, i)).shape; }
  std::size_t rank(int i) const { return shape(i) ? shape(i)->rank() : 0; }
  std::size_t output_rank() const {
    const auto& s = facts.of(node.output(0)).shape;
    return s ? s->rank() : 0;
  }
  std::optional<Ints> ints(int i, std::string_view attribute) const {
    if (!input_of(node, i).empty()) return facts.of(input_of(node, i)).ints;
    if (const auto* a = find_attribute(node, attribute))
      return Ints(a->ints().begin(), a->ints().end());
    return std::nullopt;
  }
};

/// `text` goes on after "node X (Op)".
BatchStep refuse(std::string text) { return {true, std::move(text), {}}; }
/// Not an error: the caller warns, and the output keeps what the file says.
BatchStep unknown() { return {false, {}, {}}; }
/// All outputs have the copies there.
BatchStep at(const Follower& f, std::size_t axis) {
  return {true,
          {},
          std::vector<std::optional<std::size_t>>(static_cast<std::size_t>(f.node.output_size()),
                                                  axis)};
}

/// All outputs have the copies there, in as many rows as the first input.
BatchStep keeps(const Follower& f, std::size_t axis) {
  const auto& in = f.shape(0);
  const auto& out = f.facts.of(f.node.output(0)).shape;
  if (in && out && axis < in->rank() && axis < out->rank() && (*in)[axis] != Shape::kOpen &&
      (*out)[axis] != Shape::kOpen && (*in)[axis] != (*out)[axis]) {
    return refuse(fmt::format("makes {} rows from {} in the dimension that holds the copies",
                              (*out)[axis], (*in)[axis]));
  }
  return at(f, axis);
}

/// A constant of several rows meets the copies there: each copy would get another row of it.
bool meets_rows(const Follower& f, std::size_t axis, std::size_t out_rank) {
  for (int i = 0; i < f.node.input_size(); ++i) {
    const auto& s = f.shape(i);
    if (!s || !f.fixed.contains(input_of(f.node, i)) || axis + s->rank() < out_rank) continue;
    const std::size_t k = axis + s->rank() - out_rank;
    if (k < s->rank() && (*s)[k] != 1) return true;
  }
  return false;
}

constexpr const char* kMeetsRows =
    "joins the copies with a constant that has several rows in their dimension";
constexpr const char* kAlong = "works along the dimension that holds the copies";

BatchStep same(const Follower& f) {
  const auto axis = f.axis(0);
  return axis ? keeps(f, *axis) : unknown();
}

/// Operators of images: N is dimension 0.
BatchStep images(const Follower& f) {
  if (f.axis(0) == 0u) return keeps(f, 0);
  return f.axis(0) ? refuse("has the copies in another dimension than 0") : unknown();
}

/// Operators that compute along one axis; `otherwise` is where it is not given.
BatchStep along_axis(const Follower& f, std::int64_t otherwise) {
  const auto axis = f.axis(0);
  if (!axis || f.rank(0) == 0) return unknown();
  const auto works = normal_axis(int_attribute(f.node, "axis", otherwise), f.rank(0));
  if (!works) return unknown();
  // Before operator set 13 the softmaxes take everything from their axis on as one row.
  const bool rows = f.opset < 13 && f.node.op_type().find("max") != std::string::npos &&
                    !f.node.op_type().starts_with("Arg");
  const bool normalises = f.node.op_type() == "LayerNormalization";
  if (*works == *axis || ((rows || normalises) && *works <= *axis)) return refuse(kAlong);
  return at(f, *axis);
}

BatchStep broadcasting(const Follower& f) {
  std::optional<std::size_t> result;
  const std::size_t out = f.output_rank();
  for (int i = 0; i < f.node.input_size(); ++i) {
    const auto axis = f.axis(i);
    if (!axis) continue;
    if (out == 0 || f.rank(i) == 0) return unknown();
    // Dimensions meet from the last one on, so a shorter shape's axis moves up.
    const std::size_t moved = *axis + out - f.rank(i);
    if (result && *result != moved) return refuse("joins copies of different dimensions");
    result = moved;
  }
  // The second input of Expand is a shape.
  const bool expand = f.node.op_type() == "Expand";
  if (result && !expand && meets_rows(f, *result, out)) return refuse(kMeetsRows);
  return result ? at(f, *result) : unknown();
}

BatchStep matmul(const Follower& f) {
  const std::size_t out = f.output_rank();
  std::optional<std::size_t> result;
  for (const int i : {0, 1}) {
    const auto axis = f.axis(i);
    if (!axis) continue;
    const std::size_t n = f.rank(i);
    if (n < 2 || out < 2) return unknown();
    if (*axis == (i == 0 ? n - 1 : n - 2)) return refuse(kAlong);
    const std::size_t moved = *axis + out - n;
    if (result && *result != moved) return refuse("joins copies of different dimensions");
    result = moved;
  }
  // Only the batch dimensions broadcast; rows and columns multiply.
  if (result && *result + 2 < out && meets_rows(f, *result, out)) return refuse(kMeetsRows);
  return result ? at(f, *result) : unknown();
}

/// Rows of A are rows of the result; C is added to each row.
BatchStep gemm(const Follower& f) {
  if (f.axis(1)) return refuse("has the copies in its second factor");
  const std::size_t row = int_attribute(f.node, "transA", 0) != 0 ? 1 : 0;
  if (!f.axis(0)) return unknown();
  return *f.axis(0) == row ? at(f, 0) : refuse(kAlong);
}

/// Without perm the dimensions are reversed.
BatchStep transpose(const Follower& f) {
  const auto axis = f.axis(0);
  if (!axis) return unknown();
  const Ints perm = ints_attribute(f.node, "perm");
  if (perm.empty()) return f.rank(0) > 0 ? at(f, f.rank(0) - 1 - *axis) : unknown();
  const auto it = std::find(perm.begin(), perm.end(), static_cast<std::int64_t>(*axis));
  return it == perm.end() ? unknown() : at(f, static_cast<std::size_t>(it - perm.begin()));
}

/// The product of the first `to` dimensions; nullopt when one is open.
std::optional<std::int64_t> product(const Shape& shape, std::size_t to) {
  std::int64_t n = 1;
  for (std::size_t i = 0; i < to; ++i) {
    if (shape[i] < 0) return std::nullopt;
    n *= shape[i];
  }
  return n;
}

BatchStep reshape(const Follower& f) {
  const auto axis = f.axis(0);
  if (!axis) return unknown();
  const auto& from = f.shape(0);
  const auto& to = f.facts.of(f.node.output(0)).shape;
  if (!from || !to) return unknown();
  const auto in_total = from->elements();
  const auto out_total = to->elements();
  if (in_total && out_total && *in_total != *out_total)
    return refuse("reshapes to " + to->to_string() + ", which fixes the number of copies");
  // Elements before the copies' dimension: it begins where the output has as many before it.
  const auto before = product(*from, *axis);
  if (!before) return unknown();
  for (std::size_t j = 0; j < to->rank(); ++j) {
    const auto here = product(*to, j);
    if (!here || *here > *before) break;
    if (*here != *before) continue;
    // The copies may be merged with what follows them, as the slower part.
    if ((*to)[j] == Shape::kOpen || ((*to)[j] % f.batch == 0 && (*to)[j] > 0)) return at(f, j);
  }
  return unknown();
}

BatchStep squeeze(const Follower& f) {
  const auto axis = f.axis(0);
  const auto list = f.ints(1, "axes");
  if (!axis || f.rank(0) == 0) return unknown();
  std::size_t before = 0;
  // No axes: every 1 is dropped. The batch is more than 1, so the copies stay.
  if (!list) {
    if (!f.shape(0)->is_static()) return unknown();
    for (std::size_t i = 0; i < *axis; ++i) before += (*f.shape(0))[i] == 1 ? 1 : 0;
    return at(f, *axis - before);
  }
  for (const auto a : *list) {
    const auto dropped = normal_axis(a, f.rank(0));
    if (!dropped) return unknown();
    if (*dropped == *axis) return refuse("removes the dimension that holds the copies");
    before += *dropped < *axis ? 1 : 0;
  }
  return at(f, *axis - before);
}

BatchStep unsqueeze(const Follower& f) {
  const auto axis = f.axis(0);
  const auto list = f.ints(1, "axes");
  if (!axis || !list || f.rank(0) == 0) return unknown();
  const std::size_t rank = f.rank(0) + list->size();
  std::set<std::size_t> fresh;
  for (const auto a : *list) {
    // Axes count in the output.
    const auto added = normal_axis(a, rank);
    if (!added) return unknown();
    fresh.insert(*added);
  }
  std::size_t seen = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (fresh.contains(i)) continue;
    if (seen++ == *axis) return at(f, i);
  }
  return unknown();
}

BatchStep concat(const Follower& f) {
  std::optional<std::size_t> result;
  for (int i = 0; i < f.node.input_size(); ++i) {
    const auto axis = f.axis(i);
    if (!axis) continue;
    if (f.rank(i) == 0 || (result && *result != *axis)) return unknown();
    result = axis;
    if (normal_axis(int_attribute(f.node, "axis", 1), f.rank(i)) == axis) return refuse(kAlong);
  }
  if (!result) return unknown();
  for (int i = 0; i < f.node.input_size(); ++i)
    if (!f.axis(i)) return refuse("joins the copies with a value that has none");
  return at(f, *result);
}

BatchStep gather(const Follower& f) {
  if (f.rank(0) == 0) return unknown();
  const auto works = normal_axis(int_attribute(f.node, "axis", 0), f.rank(0));
  if (!works) return unknown();
  if (const auto data = f.axis(0)) {
    if (*data == *works) return refuse(kAlong);
    if (f.axis(1)) return unknown();
    // The index's dimensions stand where the axis was.
    const std::size_t index_rank = f.shape(1) ? f.rank(1) : 1;
    return at(f, *data < *works ? *data : *data + index_rank - 1);
  }
  const auto index = f.axis(1);
  return index ? at(f, *works + *index) : unknown();
}

BatchStep slice(const Follower& f) {
  const auto axis = f.axis(0);
  const auto starts = f.ints(1, "starts");
  const auto ends = f.ints(2, "ends");
  auto list = f.ints(3, "axes");
  if (!axis || !starts || !ends || f.rank(0) == 0) return unknown();
  if (!list) {
    list.emplace();
    for (std::size_t i = 0; i < starts->size(); ++i) list->push_back(static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < list->size() && i < starts->size() && i < ends->size(); ++i) {
    if (normal_axis((*list)[i], f.rank(0)) != axis) continue;
    // Exporters write INT32_MAX or INT64_MAX for "to the end".
    const bool whole = (*starts)[i] == 0 && (*ends)[i] >= std::numeric_limits<std::int32_t>::max();
    if (!whole) return refuse(kAlong);
  }
  return at(f, *axis);
}

BatchStep reduce(const Follower& f) {
  const auto axis = f.axis(0);
  if (!axis || f.rank(0) == 0) return unknown();
  Ints list;
  // ArgMax and ArgMin have one axis, and an attribute for it in all versions.
  if (f.node.op_type().starts_with("Arg"))
    list = {int_attribute(f.node, "axis", 0)};
  else if (const auto given = f.ints(1, "axes"); given && !given->empty())
    list = *given;
  else if (int_attribute(f.node, "noop_with_empty_axes", 0) == 0)
    return refuse("reduces over all dimensions, the copies included");
  std::size_t before = 0;
  for (const auto a : list) {
    const auto reduced = normal_axis(a, f.rank(0));
    if (!reduced) return unknown();
    if (*reduced == *axis) return refuse(kAlong);
    before += *reduced < *axis ? 1 : 0;
  }
  return at(f, int_attribute(f.node, "keepdims", 1) != 0 ? *axis : *axis - before);
}

BatchStep flatten(const Follower& f) {
  const auto axis = f.axis(0);
  const std::int64_t from = int_attribute(f.node, "axis", 1);
  // Dimension 0 stays the slowest part of the first one.
  if (!axis || *axis != 0) return unknown();
  return from == 0 ? refuse("flattens the copies into one row") : at(f, 0);
}

BatchStep recurrent(const Follower& f) {
  const bool first = int_attribute(f.node, "layout", 0) != 0;
  const auto axis = f.axis(0);
  if (!axis || *axis != (first ? 0u : 1u)) return refuse("steps along the copies");
  for (const int i : {5, 6})
    if (!input_of(f.node, i).empty() && !f.axis(i))
      return refuse("has a constant initial state, which fixes the number of copies");
  BatchStep step;
  // Y is [steps, directions, batch, hidden]; the last states are [directions, batch, hidden].
  step.axes = {first ? 0 : 2, first ? 0 : 1, first ? 0 : 1};
  return step;
}

/// The shape of copies is a value like any other: it has none itself.
BatchStep without_copies(const Follower&) { return {}; }

using Handler = BatchStep (*)(const Follower&);

const std::unordered_map<std::string_view, Handler>& handlers() {
  static Leaked<const std::unordered_map<std::string_view, Handler>> kTable({
      {"Shape", without_copies},
      {"Size", without_copies},
      {"ConstantOfShape", without_copies},
      {"MatMul", matmul},
      {"MatMulInteger", matmul},
      {"Gemm", gemm},
      {"Transpose", transpose},
      {"Reshape", reshape},
      {"Squeeze", squeeze},
      {"Unsqueeze", unsqueeze},
      {"Concat", concat},
      {"Gather", gather},
      {"Slice", slice},
      {"Flatten", flatten},
      {"LSTM", recurrent},
      {"GRU", recurrent},
      {"RNN", recurrent},
  });
  return *kTable;
}

Leaked<const std::set<std::string_view>> kSame({// clang-format off
    "Cast", "DequantizeLinear", "Dropout", "IsInf", "IsNaN", "PRelu", "Pad", "QuantizeLinear"});
// clang-format on
Leaked<const std::set<std::string_view>> kImages(
    {// clang-format off
    "AveragePool", "BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "DepthToSpace",
    "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GroupNormalization",
    "InstanceNormalization", "LRN", "LpPool", "MaxPool", "QLinearConv", "Resize",
    "SpaceToDepth", "Upsample"});
// clang-format on
Leaked<const std::set<std::string_view>> kBroadcasting({// clang-format off
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Expand",
    "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul",
    "Or", "Pow", "Sub", "Sum", "Where", "Xor"});
// clang-format on
Leaked<const std::unordered_map<std::string_view, std::int64_t>> kAlongAxis(
    {{"Softmax", -1},
     {"LogSoftmax", -1},
     {"Hardmax", -1},
     {"LayerNormalization", -1},
     {"RMSNormalization", -1},
     {"TopK", -1},
     {"Split", 0},
     {"LpNormalization", -1}});

}  // namespace

BatchStep follow_batch(const ::onnx::NodeProto& node, std::int64_t opset, std::int64_t batch,
                       const FactsTable& facts, const BatchAxes& axes, const FixedValues& fixed) {
  if (node.output_size() == 0) return {};
  const Follower f{node, opset, batch, facts, axes, fixed};
  const std::string& op = node.op_type();
  if (const auto it = handlers().find(op); it != handlers().end()) return it->second(f);
  if (is_unary(op) || kSame->contains(op)) return same(f);
  if (kImages->contains(op)) return images(f);
  if (kBroadcasting->contains(op)) return broadcasting(f);
  if (const auto it = kAlongAxis->find(op); it != kAlongAxis->end()) {
    // Before operator set 13 the axis of softmaxes is 1 unless given.
    const bool old_softmax = opset < 13 && op.find("max") != std::string::npos;
    return along_axis(f, old_softmax ? 1 : it->second);
  }
  if (op.starts_with("Reduce") || op == "ArgMax" || op == "ArgMin") return reduce(f);
  return unknown();
}

}  // namespace corelane::onnx
