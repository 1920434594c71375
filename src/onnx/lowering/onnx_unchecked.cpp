#include "onnx/lowering/onnx_unchecked.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_graph.h"

namespace corelane::onnx {
namespace {

/// Inputs that must be places, or sizes, of an operator.
struct Places {
  std::string_view op;
  unsigned inputs;  ///< Bits.
};
constexpr Places kPlaces[] = {{"ArrayFeatureExtractor", 0b10},
                              {"CenterCropPad", 0b10},
                              {"Col2Im", 0b110},
                              {"DFT", 0b10},
                              {"GatherElements", 0b10},
                              {"GatherND", 0b10},
                              {"NegativeLogLikelihoodLoss", 0b10},
                              {"Pad", 0b1010},
                              {"Range", 0b100},
                              {"ReduceL1", 0b10},
                              {"ReduceL2", 0b10},
                              {"ReduceLogSum", 0b10},
                              {"ReduceLogSumExp", 0b10},
                              {"ReduceMax", 0b10},
                              {"ReduceMean", 0b10},
                              {"ReduceMin", 0b10},
                              {"ReduceProd", 0b10},
                              {"ReduceSum", 0b10},
                              {"ReduceSumSquare", 0b10},
                              {"RotaryEmbedding", 0b1000},
                              {"Scatter", 0b10},
                              {"ScatterElements", 0b10},
                              {"ScatterND", 0b10},
                              {"SoftmaxCrossEntropyLoss", 0b10},
                              {"Squeeze", 0b10},
                              {"TensorScatter", 0b100},
                              {"Unsqueeze", 0b10}};

unsigned places_of(const ::onnx::NodeProto& node) {
  if (!is_onnx_domain(node.domain())) return 0;
  const auto* const places = std::ranges::find(kPlaces, node.op_type(), &Places::op);
  return places == std::end(kPlaces) ? 0 : places->inputs;
}

/// Operators that make sizes, places in their own input, or truth values.
constexpr std::string_view kTrusted[] = {"And",     "ArgMax",  "ArgMin",  "ConstantOfShape",
                                         "Equal",   "EyeLike", "Greater", "GreaterOrEqual",
                                         "IsInf",   "IsNaN",   "Less",    "LessOrEqual",
                                         "NonZero", "Not",     "OneHot",  "Or",
                                         "Shape",   "Sign",    "Size",    "NonMaxSuppression",
                                         "Xor"};
/// Operators whose values are those of their first input, and the rest says where.
constexpr std::string_view kMovers[] = {"Expand",  "Gather",    "Reshape", "Slice",
                                        "Squeeze", "Transpose", "Tile",    "Unsqueeze"};

bool is_trusted(const ::onnx::NodeProto& node, int output) {
  if (!is_standard_domain(node.domain())) return false;
  const std::string& op = node.op_type();
  if (op == "TopK" || op == "MaxPool") return output == 1;
  if (op == "Unique") return output > 0;
  return std::ranges::find(kTrusted, op) != std::end(kTrusted);
}

/// Inputs whose values may come out.
unsigned passed_on(const ::onnx::NodeProto& node) {
  if (!is_standard_domain(node.domain())) return ~0U;
  if (node.op_type() == "Where") return 0b110;
  return std::ranges::find(kMovers, node.op_type()) != std::end(kMovers) ? 1U : ~0U;
}

/// The names of one graph whose values may be anything, with those of the graphs around it.
class Scope {
 public:
  Scope(const Scope* outer, std::optional<ImportFinding>& found) : outer_(outer), found_(found) {}

  void add(const std::string& name) { wild_.insert(name); }
  /// An input of the network whose values are no integers.
  void add_floats(const std::string& name) { floats_.insert(name); }
  bool is_wild(std::string_view name) const {
    return wild_.contains(name) || (outer_ != nullptr && outer_->is_wild(name));
  }
  void walk(const ::onnx::GraphProto& graph) {
    for (int i = 0; i < graph.node_size(); ++i) see(graph.node(i), i);
  }

 private:
  void see(const ::onnx::NodeProto& node, int position) {
    check(node, position);
    bool wild = !is_bounded(node) && reads_wild(node, passed_on(node));
    for (const ::onnx::GraphProto* inner : subgraphs(node)) wild |= see_inner(node, *inner);
    if (!wild) return;
    for (int i = 0; i < node.output_size(); ++i)
      if (!node.output(i).empty() && !is_trusted(node, i)) add(node.output(i));
  }

  bool reads_wild(const ::onnx::NodeProto& node, unsigned inputs) const {
    for (int i = 0; i < node.input_size(); ++i)
      if ((inputs >> std::min(i, 31) & 1U) != 0 && is_wild(node.input(i))) return true;
    return false;
  }

  /// By bounds that the network has itself.
  bool is_bounded(const ::onnx::NodeProto& node) const {
    const bool clip = node.op_type() == "Clip" && node.input_size() == 3 &&
                      !node.input(1).empty() && !node.input(2).empty();
    const bool mod = node.op_type() == "Mod" && node.input_size() == 2;
    return is_standard_domain(node.domain()) && (clip || mod) && !reads_wild(node, 0b110);
  }

  /// True when an output of the graph may be anything.
  bool see_inner(const ::onnx::NodeProto& node, const ::onnx::GraphProto& graph) {
    Scope inner(this, found_);
    // A loop's counter and condition are its own; what else comes in goes round with the loop.
    const int own = node.op_type() == "Loop" ? 2 : 0;
    const auto is_output_wild = [&] {
      return std::ranges::any_of(graph.output(),
                                 [&](const auto& out) { return inner.is_wild(out.name()); });
    };
    for (int i = own; i < std::min(graph.input_size(), node.input_size()); ++i)
      if (is_wild(node.input(i))) inner.add(graph.input(i).name());
    inner.walk(graph);
    if (!is_output_wild()) return false;
    // Once more with all of the state that goes round.
    for (int i = own; i < graph.input_size(); ++i) inner.add(graph.input(i).name());
    inner.walk(graph);
    return true;
  }

  void check(const ::onnx::NodeProto& node, int position) {
    if (found_) return;
    const unsigned places = places_of(node);
    for (int i = 0; i < node.input_size(); ++i) {
      if ((places >> std::min(i, 31) & 1U) == 0 || !is_wild(node.input(i))) continue;
      if (floats_.contains(node.input(i))) continue;  // A step of 0.0 divides nothing.
      // Axes of a reduction are checked, but not where it reads an empty constant.
      if (node.op_type().starts_with("Reduce") && is_wild(node.input(0))) continue;
      found_ = ImportFinding{
          ImportFinding::Kind::kWarning, node_text(node, position), op_text(node),
          fmt::format("input {} comes with each run and says where to go in memory, which the "
                      "engine does not check",
                      i)};
      return;
    }
  }

  const Scope* outer_;
  std::optional<ImportFinding>& found_;
  std::unordered_set<std::string_view> wild_;
  std::unordered_set<std::string_view> floats_;
};

}  // namespace

std::optional<ImportFinding> unchecked_values(const ::onnx::GraphProto& graph) {
  std::optional<ImportFinding> found;
  Scope scope(nullptr, found);
  std::unordered_set<std::string_view> constants;
  for (const auto& tensor : graph.initializer()) constants.insert(tensor.name());
  for (const auto& input : graph.input()) {
    if (constants.contains(input.name())) continue;
    scope.add(input.name());
    const DType dtype = dtype_from_onnx(elem_type_of(input.type()));
    if (is_float(dtype)) scope.add_floats(input.name());
  }
  scope.walk(graph);
  return found;
}

}  // namespace corelane::onnx
