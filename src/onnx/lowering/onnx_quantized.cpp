#include "onnx/lowering/onnx_quantized.h"

#include <fmt/core.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_tensor.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;
using Node = ::onnx::NodeProto;

bool is_op(const Node& node, std::string_view type) {
  return node.op_type() == type && is_standard_domain(node.domain());
}

/// A QuantizeLinear and what reads its integers.
struct Pair {
  const Node* quantize = nullptr;
  std::vector<const Node*> dequantize;
};

/// All pairs of a graph; an index over it must not outlive a change of the graph.
std::vector<Pair> find_pairs(const ::onnx::GraphProto& graph, const GraphIndex& index) {
  std::vector<Pair> pairs;
  for (const Node& node : graph.node()) {
    // An integer that is an output keeps its type; a scale that is computed cannot be compared.
    if (!is_op(node, "QuantizeLinear") || node.input_size() < 2 || node.output_size() != 1 ||
        index.is_output(node.output(0)) || index.constant(input_of(node, 1)) == nullptr)
      continue;
    const auto& readers = index.readers(node.output(0));
    bool good = !readers.empty();
    for (const Node* reader : readers)
      good = good && is_op(*reader, "DequantizeLinear") && input_of(*reader, 0) == node.output(0) &&
             input_of(*reader, 1) == input_of(node, 1) &&
             input_of(*reader, 2) == input_of(node, 2) &&
             int_attribute(*reader, "axis", 1) == int_attribute(node, "axis", 1);
    // Only whole pairs: with one other reader the integers have to stay as they are.
    if (good) pairs.push_back({&node, {readers.begin(), readers.end()}});
  }
  return pairs;
}

/// Names that no value of the graph has.
class FreeNames {
 public:
  FreeNames(const ::onnx::GraphProto& graph, const GraphIndex& index) : index_(index) {
    for (const auto& input : graph.input()) inputs_.insert(input.name());
  }
  /// `wanted`, or with a number after it.
  std::string like(const std::string& wanted) const {
    std::string name = wanted;
    for (int k = 1; taken(name); ++k) name = fmt::format("{}_{}", wanted, k);
    return name;
  }

 private:
  bool taken(const std::string& name) const {
    return index_.constant(name) != nullptr || index_.producer(name) != nullptr ||
           index_.is_output(name) || !index_.readers(name).empty() || inputs_.contains(name);
  }

  const GraphIndex& index_;
  std::unordered_set<std::string_view> inputs_;
};

void add_finding(std::vector<ImportFinding>& findings, const Node& first, std::string text) {
  findings.push_back(
      {ImportFinding::Kind::kRewritten, first.name(), first.op_type(), std::move(text)});
}

// --- Signed pairs as unsigned ones. -------------------------------------------------------------

class UnsignedPairs {
 public:
  UnsignedPairs(::onnx::GraphProto& graph, ByteSpan constants)
      : graph_(graph), index_(graph), names_(graph, index_), constants_(constants) {}

  void run(std::vector<ImportFinding>& findings) {
    std::vector<std::pair<const Node*, std::string>> edits;
    const Node* first = nullptr;
    std::size_t count = 0;
    for (const Pair& pair : find_pairs(graph_, index_)) {
      const std::string zero = unsigned_zero(*pair.quantize);
      if (zero.empty()) continue;
      edits.emplace_back(pair.quantize, zero);
      for (const Node* node : pair.dequantize) edits.emplace_back(node, zero);
      if (first == nullptr) first = pair.quantize;
      ++count;
    }
    if (first == nullptr) return;
    add_finding(findings, *first,
                fmt::format("{} signed 8-bit pairs of QuantizeLinear and DequantizeLinear are "
                            "computed as unsigned ones, with equal results",
                            count));
    apply(edits);
  }

 private:
  /// The zero point 128 higher; "" when the pair is not signed.
  std::string unsigned_zero(const Node& node) {
    const std::string& name = input_of(node, 2);
    const T* const tensor = name.empty() ? nullptr : index_.constant(name);
    // Without a zero point the type is u8.
    if (tensor == nullptr || tensor->data_type() != T::INT8) return {};
    // Pairs often share a zero point.
    const auto known = made_.find(name);
    if (known != made_.end()) return known->second;
    const auto points = read_ints(*tensor, constants_);
    if (!points) return {};
    std::vector<double> higher;
    for (const std::int64_t point : *points) higher.push_back(static_cast<double>(point + 128));
    const std::string other = names_.like(name + "_unsigned");
    tensors_.push_back(
        make_values(other, T::UINT8, {tensor->dims().begin(), tensor->dims().end()}, higher));
    return made_.emplace(name, other).first->second;
  }

  void apply(const std::vector<std::pair<const Node*, std::string>>& edits) {
    std::unordered_map<const Node*, const std::string*> zeros;
    std::unordered_set<std::string_view> retyped;
    for (const auto& [node, zero] : edits) zeros.emplace(node, &zero);
    for (Node& node : *graph_.mutable_node()) {
      const auto found = zeros.find(&node);
      if (found == zeros.end()) continue;
      node.set_input(2, *found->second);
      if (node.op_type() == "QuantizeLinear") retyped.insert(node.output(0));
      // Of DequantizeLinear it is the type of the reals.
      if (node.op_type() == "QuantizeLinear" && int_attribute(node, "output_dtype", 0) != 0)
        set_attribute(node, "output_dtype", std::int64_t{T::UINT8});
    }
    for (auto& info : *graph_.mutable_value_info())
      if (retyped.contains(info.name()) && info.type().has_tensor_type())
        info.mutable_type()->mutable_tensor_type()->set_elem_type(T::UINT8);
    for (T& tensor : tensors_) *graph_.add_initializer() = std::move(tensor);
  }

  ::onnx::GraphProto& graph_;
  GraphIndex index_;
  FreeNames names_;
  ByteSpan constants_;
  std::unordered_map<std::string, std::string> made_;
  std::vector<T> tensors_;
};

// --- Pairs after a Concat as pairs before it. ---------------------------------------------------

/// Identities and Relus between a Concat and a pair, beyond which a model is not honest.
constexpr std::size_t kLongestChain = 8;
/// About what a node made here takes beside what is copied into it.
constexpr std::int64_t kNodeBytes = 96;

std::int64_t bytes_of(const Node& node) { return static_cast<std::int64_t>(node.ByteSizeLong()); }

class PairsBeforeConcat {
 public:
  /// `room`: how many bytes of nodes may still be made.
  PairsBeforeConcat(::onnx::GraphProto& graph, std::int64_t& room)
      : graph_(graph), index_(graph), names_(graph, index_), room_(room) {}

  /// False when there was nothing to do.
  bool run(std::vector<ImportFinding>& findings) {
    const Node* first = nullptr;
    std::size_t count = 0;
    for (const Pair& pair : find_pairs(graph_, index_)) {
      if (!move(pair)) continue;
      if (first == nullptr) first = pair.quantize;
      ++count;
    }
    if (first == nullptr) return false;
    add_finding(findings, *first,
                fmt::format("{} pairs of QuantizeLinear and DequantizeLinear after a Concat are "
                            "computed before it, with equal results",
                            count));
    rebuild();
    return true;
  }

 private:
  /// One scale for all elements, so that it does not matter where they lie.
  bool is_per_tensor(const Node& node) const {
    const T* const scale = index_.constant(input_of(node, 1));
    std::int64_t elements = 1;
    for (const std::int64_t dim : scale->dims()) elements *= dim;
    return elements == 1;
  }

  bool move(const Pair& pair) {
    if (!is_per_tensor(*pair.quantize)) return false;
    std::vector<const Node*> between;  // From the pair towards the Concat.
    const Node* node = index_.producer(pair.quantize->input(0));
    while (node != nullptr && (is_op(*node, "Identity") || is_op(*node, "Relu"))) {
      if (node->input_size() != 1 || node->output_size() != 1 || between.size() == kLongestChain)
        return false;
      between.push_back(node);
      node = index_.producer(node->input(0));
    }
    if (node == nullptr || !is_op(*node, "Concat") || node->output_size() != 1) return false;
    if (!take_room(*node, between, pair)) return false;
    std::vector<Node>& made = instead_[pair.quantize];
    Node whole = bare(*node);
    if (const auto* axis = find_attribute(*node, "axis"))
      set_attribute(whole, "axis", std::int64_t{axis->i()});
    for (const std::string& part : node->input())
      whole.add_input(
          quantized_part(part, between, *pair.quantize, *pair.dequantize.front(), made));
    whole.add_output(fresh());
    whole.set_name(whole.output(0));
    made.push_back(whole);
    // Every reader is given the same values, under the name that it had.
    for (const Node* reader : pair.dequantize) {
      Node& same = instead_[reader].emplace_back();
      same.set_op_type("Identity");
      same.set_name(reader->name());
      same.add_input(whole.output(0));
      same.add_output(reader->output(0));
    }
    between.push_back(node);
    drop_unread(between, pair.quantize);
    return true;
  }

  /// False when what `move` would make of these is more than there is room for.
  bool take_room(const Node& concat, const std::vector<const Node*>& between, const Pair& pair) {
    const auto nodes = static_cast<std::int64_t>(between.size()) + 2;
    const std::int64_t part =
        nodes * kNodeBytes + bytes_of(*pair.quantize) + bytes_of(*pair.dequantize.front());
    // Divided, since the product may overflow.
    if (part > room_ / std::max(concat.input_size(), 1)) return false;
    room_ -= part * concat.input_size();
    return true;
  }

  /// The same operator without anything that is read, written or said of it.
  static Node bare(const Node& like) {
    Node node;
    node.set_op_type(like.op_type());
    return node;
  }

  std::string quantized_part(std::string value, const std::vector<const Node*>& between,
                             const Node& quantize, const Node& dequantize,
                             std::vector<Node>& made) {
    const auto add = [&](Node&& node) {
      node.set_input(0, value);
      value = fresh();
      node.set_output(0, value);
      node.set_name(value);
      made.push_back(std::move(node));
    };
    // From the Concat towards the pair. An Identity does nothing, so it is left out.
    for (const Node* node : std::views::reverse(between)) {
      if (!is_op(*node, "Relu")) continue;
      Node relu = bare(*node);
      relu.add_input();
      relu.add_output();
      add(std::move(relu));
    }
    add(Node(quantize));
    add(Node(dequantize));
    return value;
  }

  /// Takes out what nothing but the moved pair reads; `chain` from the pair on.
  void drop_unread(const std::vector<const Node*>& chain, const Node* reader) {
    for (const Node* node : chain) {
      const auto& readers = index_.readers(node->output(0));
      // Another reader, or the graph's outputs, still need it and all before it.
      if (readers.size() != 1 || readers.front() != reader || index_.is_output(node->output(0)))
        return;
      instead_.try_emplace(node);
      reader = node;
    }
  }

  std::string fresh() {
    std::string name = names_.like(fmt::format("corelane_part_{}", next_));
    ++next_;
    return name;
  }

  /// In the old order: what stands in place of a node stands where it was.
  void rebuild() {
    google::protobuf::RepeatedPtrField<Node> nodes;
    for (Node& node : *graph_.mutable_node()) {
      const auto found = instead_.find(&node);
      if (found == instead_.end())
        *nodes.Add() = std::move(node);
      else
        for (Node& other : found->second) *nodes.Add() = std::move(other);
    }
    graph_.mutable_node()->Swap(&nodes);
  }

  ::onnx::GraphProto& graph_;
  GraphIndex index_;
  FreeNames names_;
  std::int64_t& room_;
  std::unordered_map<const Node*, std::vector<Node>> instead_;
  std::size_t next_ = 0;
};

}  // namespace

void rewrite_quantized(::onnx::GraphProto& graph, ByteSpan constants,
                       std::vector<ImportFinding>& findings) {
  // Most networks have none, and need no index of their values.
  if (std::ranges::none_of(graph.node(),
                           [](const Node& node) { return is_op(node, "QuantizeLinear"); }))
    return;
  UnsignedPairs(graph, constants).run(findings);
  // Some parts for each node of an honest model; a hostile one could ask for a square of them.
  std::int64_t room = std::int64_t{1} << 20;
  for (const Node& node : graph.node()) room += 8 * bytes_of(node);
  // A Concat of a Concat: once more, as deep as models go.
  constexpr int kDepth = 64;
  for (int depth = 0; depth < kDepth && PairsBeforeConcat(graph, room).run(findings); ++depth) {
  }
}

}  // namespace corelane::onnx
