#include "onnx/shape/onnx_work.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/leaked.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_walk.h"
#include "onnx/infer/onnx_macs.h"

namespace corelane::onnx {
namespace {

using Names = const std::set<std::string_view>;

/// Steps of an element that is read or made: a transcendental function takes that, and so does
/// memory that lies in no cache.
constexpr std::uint64_t kPerElement = 8;
/// Of a text, which is made in memory of its own.
constexpr std::uint64_t kPerText = 1024;

enum class Cost : std::uint8_t {
  kElements,  ///< What is read and what is made.
  /// It does not follow from the sizes of what is read and made. Calls of graphs that run many
  /// times are among them.
  kUnknown,
  kMade,       ///< As much is read as is made, however large the inputs are.
  kPool,       ///< An element takes a window.
  kRecurrent,  ///< Every step of a sequence takes all weights.
  kSampling,   ///< An element takes up to 16 others.
  kSorting,
  kNeighbours,  ///< An element takes those of `size` channels.
};

Leaked<const std::unordered_map<std::string_view, Cost>> kCosts([] {
  std::unordered_map<std::string_view, Cost> costs;
  const auto add = [&](Cost cost, std::initializer_list<std::string_view> operators) {
    for (const std::string_view op : operators) costs.emplace(op, cost);
  };
  add(Cost::kUnknown,
      {"Loop", "Scan", "SequenceMap", "NonMaxSuppression", "Einsum", "Det", "DFT", "STFT",
       "Attention", "RoiAlign", "MaxRoiPool", "DeformConv", "AffineGrid", "Multinomial",
       "StringSplit", "RegexFullMatch", "StringNormalizer", "TfIdfVectorizer"});
  add(Cost::kMade,
      {"Gather", "GatherND", "GatherElements", "Slice", "Split", "Shape", "Size", "Constant",
       "ConstantOfShape", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"});
  add(Cost::kPool, {"AveragePool", "MaxPool", "LpPool"});
  add(Cost::kRecurrent, {"LSTM", "GRU", "RNN"});
  add(Cost::kSampling, {"Resize", "Upsample", "GridSample"});
  add(Cost::kSorting, {"TopK", "Unique"});
  add(Cost::kNeighbours, {"LRN"});
  return costs;
}());

Cost cost_of(const ::onnx::NodeProto& node) {
  if (!is_standard_domain(node.domain())) {
    const bool known = node.domain() == "com.microsoft" && node.op_type() == "DynamicQuantizeLSTM";
    return known ? Cost::kRecurrent : Cost::kUnknown;
  }
  const auto found = kCosts->find(node.op_type());
  return found == kCosts->end() ? Cost::kElements : found->second;
}

/// What they make is not larger than their first input.
Leaked<Names> kShrinking({"ArgMax", "ArgMin", "Cast", "Compress", "Flatten", "Identity", "Reshape",
                          "Slice", "Softmax", "LogSoftmax", "Squeeze", "Transpose", "Unsqueeze"});
/// The same in ai.onnx.ml.
Leaked<Names> kShrinkingMl({"Binarizer", "CategoryMapper", "Imputer", "LabelEncoder", "Normalizer",
                            "Scaler", "ZipMap"});
/// What they make is not larger than the product of their inputs, however these broadcast.
Leaked<Names> kBroadcasting({"Add", "Sub", "Mul", "Div", "Equal", "Less", "Greater", "Where", "And",
                             "Or", "Max", "Min", "Pow"});

bool is_in(Leaked<Names>& names, const std::string& op) { return names->contains(op); }

std::uint64_t at_least_1(std::int64_t n) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1));
}

/// Elements of all lists that the attributes hold.
std::uint64_t listed(const ::onnx::NodeProto& node) {
  std::uint64_t n = 0;
  for (const auto& a : node.attribute()) {
    n += static_cast<std::uint64_t>(a.ints_size()) + static_cast<std::uint64_t>(a.floats_size()) +
         static_cast<std::uint64_t>(a.strings_size());
    if (a.has_t()) {
      std::uint64_t in_tensor = 1;
      for (const std::int64_t d : a.t().dims())
        if (d < 0 || __builtin_mul_overflow(in_tensor, static_cast<std::uint64_t>(d), &in_tensor))
          in_tensor = std::numeric_limits<std::uint32_t>::max();
      n += in_tensor;
    }
  }
  return n;
}

/// Numbers that an operator of ai.onnx.ml gives for a row.
std::uint64_t columns_of(const ::onnx::NodeProto& node) {
  std::uint64_t most = 1;
  for (const auto& a : node.attribute())
    if (a.name().starts_with("classlabels") || a.name().starts_with("cats"))
      most = std::max({most, static_cast<std::uint64_t>(a.ints_size()),
                       static_cast<std::uint64_t>(a.strings_size())});
  for (const char* name : {"n_targets", "targets"})
    most = std::max(most, at_least_1(int_attribute(node, name, 1)));
  return most;
}

/// Every step of a sequence takes all weights.
Count recurrent(const ::onnx::NodeProto& node, const FactsTable& facts) {
  const auto& x = facts.of(input_of(node, 0)).shape;
  const auto& r = facts.of(input_of(node, 2)).shape;
  const Count weights = sum_of(elements_of(facts.of(input_of(node, 1)).shape), elements_of(r));
  // The quantized one has its weights in another order.
  const Count gates =
      product_of(product_of(dim_of(r, 0), std::max(dim_of(r, 1), dim_of(r, 2))), kPerElement);
  return product_of(product_of(dim_of(x, 0), dim_of(x, 1)), sum_of(weights, gates));
}

/// Steps of each element that the node reads or makes.
std::uint64_t per_element(const ::onnx::NodeProto& node, const FactsTable& facts) {
  const auto is_text = [&](const std::string& name) {
    return facts.of(name).elem == ::onnx::TensorProto::STRING;
  };
  return std::ranges::any_of(node.input(), is_text) || std::ranges::any_of(node.output(), is_text)
             ? kPerText
             : kPerElement;
}

/// What one element of a pool takes.
std::uint64_t window(const ::onnx::NodeProto& node) {
  std::uint64_t n = 1;
  for (const std::int64_t d : ints_attribute(node, "kernel_shape"))
    if (d < 0 || __builtin_mul_overflow(n, static_cast<std::uint64_t>(d), &n))
      return std::numeric_limits<std::uint32_t>::max();
  return n;
}

}  // namespace

Count Work::elements(const std::string& name, const FactsTable& facts) const {
  if (const Count known = elements_of(facts.of(name).shape)) return known;
  const auto bound = bounds_.find(name);
  return bound == bounds_.end() ? std::nullopt : Count(bound->second);
}

Count Work::inputs_of(const ::onnx::NodeProto& node, const FactsTable& facts) const {
  Count all = 0;
  for (const auto& in : node.input())
    if (!in.empty()) all = sum_of(all, elements(in, facts));
  return all;
}

Count Work::made_by(const ::onnx::NodeProto& node, const FactsTable& facts) const {
  const std::string& op = node.op_type();
  const bool ml = node.domain() == "ai.onnx.ml";
  if (is_in(ml ? kShrinkingMl : kShrinking, op)) return elements(input_of(node, 0), facts);
  if (ml) return product_of(elements(input_of(node, 0), facts), columns_of(node));
  if (!is_in(kBroadcasting, op)) return std::nullopt;
  Count all = 1;
  for (const auto& in : node.input()) all = product_of(all, elements(in, facts));
  return all;
}

Count Work::steps_of(const ::onnx::NodeProto& node, const FactsTable& facts,
                     const Count& made) const {
  const std::uint64_t each = per_element(node, facts);
  const Count out = product_of(made, each);
  const auto in = [&] { return product_of(inputs_of(node, facts), each); };
  if (node.domain() == "ai.onnx.ml") {
    // A row may take everything that the attributes list.
    const ValueFacts& x = facts.of(input_of(node, 0));
    const Count rows = x.rank() > 1 ? dim_of(x.shape, 0) : elements(input_of(node, 0), facts);
    return sum_of(sum_of(in(), out), product_of(rows, listed(node)));
  }
  switch (cost_of(node)) {
    case Cost::kElements:
      break;
    case Cost::kUnknown:
      return std::nullopt;
    case Cost::kMade:
      return out;
    case Cost::kPool:
      return sum_of(out, product_of(made, window(node)));
    case Cost::kRecurrent:
      return sum_of(out, recurrent(node, facts));
    case Cost::kSampling:
      return product_of(sum_of(in(), out), 16);
    case Cost::kSorting:
      return sum_of(out, product_of(in(), 64));  // More than a logarithm.
    case Cost::kNeighbours:
      return sum_of(in(), product_of(out, at_least_1(int_attribute(node, "size", 1))));
  }
  const Count macs = macs_of(node, facts);
  return macs == 0 ? sum_of(in(), out) : sum_of(out, macs);
}

void Work::add(const ::onnx::NodeProto& node, const FactsTable& facts) {
  if (!steps_) return;
  Count made = 0;
  for (const auto& out : node.output()) {
    if (out.empty()) continue;
    Count own = elements_of(facts.of(out).shape);
    if (!own) {
      own = made_by(node, facts);
      if (own) bounds_[out] = *own;
    }
    made = sum_of(made, own);
  }
  steps_ = sum_of(steps_, steps_of(node, facts, made));
}

}  // namespace corelane::onnx
