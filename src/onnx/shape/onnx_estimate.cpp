#include "onnx/shape/onnx_estimate.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "base/guard.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_held_model.h"
#include "onnx/graph/onnx_stored.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/infer/onnx_facts.h"
#include "onnx/shape/onnx_freeze.h"
#include "onnx/shape/onnx_work.h"

namespace corelane::onnx {
namespace {

constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > kEndless - b ? kEndless : a + b; }

/// 0 where a dimension is open.
std::uint64_t size_of(const ValueFacts& facts) {
  if (!facts.is_static()) return 0;
  std::uint64_t bits = std::max<std::uint64_t>(onnx_type_bits(facts.elem), 1);
  // Shape::elements() knows no product without end.
  bool empty = false;
  for (const std::int64_t d : facts.shape->dims()) {
    empty = empty || d == 0;
    if (__builtin_mul_overflow(bits, static_cast<std::uint64_t>(d), &bits)) bits = kEndless;
  }
  return empty ? 0 : bits == kEndless ? kEndless : bits / 8 + (bits % 8 != 0 ? 1 : 0);
}

/// Walks the nodes of one graph in their order, with what is needed at each of them.
class GraphWalk {
 public:
  GraphWalk(const ::onnx::ModelProto& model, ByteSpan constants, RunEstimate& most)
      : opset_(opset_of(model)), constants_(constants), most_(most) {}

  const Work& work() const noexcept { return work_; }

  /// `around`: what the graphs around need meanwhile.
  void walk(const ::onnx::GraphProto& graph, const FactsTable* outer, std::uint64_t around) {
    FactsTable facts(outer);
    facts.reserve(static_cast<std::size_t>(graph.node_size()) +
                  static_cast<std::size_t>(graph.initializer_size()) +
                  static_cast<std::size_t>(graph.input_size()));
    for (const auto& t : graph.initializer()) facts.learn(t.name(), t, constants_);
    for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
      for (const auto& v : *list) facts.learn(v);
    std::uint64_t live = around;
    // Constants are counted as bytes of the file; inputs are the caller's for all of the run.
    if (outer == nullptr)
      for (const auto& in : graph.input()) live = sum(live, size_of(close(facts, in.name())));
    const auto last = last_reads(graph);
    most_.bytes = std::max(most_.bytes, live);
    std::unordered_map<int, std::uint64_t> ends;  // By the node that reads a value last.
    for (int i = 0; i < graph.node_size(); ++i) {
      const ::onnx::NodeProto& node = graph.node(i);
      infer_node(node, opset_, constants_, facts);
      take_most(node, facts);
      infer_more(node, facts);
      work_.add(node, facts);
      for (const auto& out : node.output()) {
        const std::uint64_t size = out.empty() ? 0 : size_of(facts.of(out));
        live = sum(live, size);
        name_largest(size, node, i);
        const auto read = last.find(out);
        if (read != last.end()) ends[read->second] = sum(ends[read->second], size);
      }
      most_.bytes = std::max(most_.bytes, live);
      for (const auto* inner : subgraphs(node)) walk(*inner, &facts, live);
      if (live != kEndless) live -= std::min(live, ends[i]);
    }
  }

 private:
  /// An open dimension is 1 at least, unless there is nothing to compute.
  static const ValueFacts& close(FactsTable& facts, const std::string& name) {
    ValueFacts closed = facts.of(name);
    if (closed.shape)
      for (std::size_t i = 0; i < closed.shape->rank(); ++i)
        if ((*closed.shape)[i] == Shape::kOpen) (*closed.shape)[i] = 1;
    facts.set(name, std::move(closed));
    return facts.of(name);
  }

  /// Assumes that operators which choose elements choose all of them.
  static void take_most(const ::onnx::NodeProto& node, FactsTable& facts) {
    const bool places = node.op_type() == "NonZero";
    if ((!places && node.op_type() != "Compress") || !has_output(node, 0)) return;
    ValueFacts most = facts.of(input_of(node, 0));
    if (!most.is_static() || facts.of(node.output(0)).is_static()) return;
    const auto elements = static_cast<std::int64_t>(most.shape->elements().value_or(0));
    if (places)
      most = {::onnx::TensorProto::INT64, Shape{most.rank(), elements}, {}, {}};
    else if (find_attribute(node, "axis") == nullptr)
      most.shape = Shape{elements};
    facts.set(node.output(0), {most.elem, most.shape, {}, {}});
  }

  /// Operators that infer_node() does not know, since no rewriting rule asks for their shapes.
  static void infer_more(const ::onnx::NodeProto& node, FactsTable& facts) {
    const std::string& op = node.op_type();
    const auto set = [&](int i, std::int32_t elem, std::optional<Shape> shape) {
      if (has_output(node, i) && shape && !facts.of(node.output(i)).is_static())
        facts.set(node.output(i), {elem, std::move(shape), {}, {}});
    };
    const std::optional<Shape> x = facts.of(input_of(node, 0)).shape;
    if (is_standard_domain(node.domain()) && op == "DynamicQuantizeLinear") {
      set(0, ::onnx::TensorProto::UINT8, x);
      set(1, ::onnx::TensorProto::FLOAT, Shape{});
      set(2, ::onnx::TensorProto::UINT8, Shape{});
    } else if (node.domain() == "ai.onnx.ml" &&
               (op == "Scaler" || op == "Imputer" || op == "Normalizer" || op == "Binarizer")) {
      set(0, ::onnx::TensorProto::FLOAT, x);
    } else if (node.domain() == "com.microsoft" && op == "DynamicQuantizeLSTM") {
      const std::int64_t directions =
          string_attribute(node, "direction", "forward") == "bidirectional" ? 2 : 1;
      const std::int64_t hidden = int_attribute(node, "hidden_size", 0);
      if (!x || x->rank() != 3 || hidden <= 0) return;
      const Shape state{directions, (*x)[1], hidden};
      set(0, ::onnx::TensorProto::FLOAT, Shape{(*x)[0], directions, (*x)[1], hidden});
      set(1, ::onnx::TensorProto::FLOAT, state);
      set(2, ::onnx::TensorProto::FLOAT, state);
    }
  }

  using Reads = std::unordered_map<std::string_view, int>;

  /// Positions of nodes; outputs of the graph are never let go.
  static Reads last_reads(const ::onnx::GraphProto& graph) {
    Reads last;
    for (int i = 0; i < graph.node_size(); ++i) add_reads(graph.node(i), i, last);
    for (const auto& out : graph.output()) last.erase(out.name());
    return last;
  }
  static void add_reads(const ::onnx::NodeProto& node, int at, Reads& last) {
    for (const auto& in : node.input()) last[in] = at;
    for (const auto* inner : subgraphs(node)) {
      for (const auto& below : inner->node()) add_reads(below, at, last);
      for (const auto& out : inner->output()) last[out.name()] = at;
    }
  }

  void name_largest(std::uint64_t size, const ::onnx::NodeProto& node, int position) {
    if (size <= largest_) return;
    largest_ = size;
    most_.node = node_text(node, position);
    most_.op = op_text(node);
  }

  std::int64_t opset_;
  ByteSpan constants_;
  RunEstimate& most_;
  std::uint64_t largest_ = 0;
  Work work_;
};

RunEstimate estimate_of(::onnx::ModelProto& model, std::size_t size, ByteSpan constants,
                        const std::map<std::string, Shape>& inputs) {
  ImportOptions fixed;
  fixed.input_shapes.insert(inputs.begin(), inputs.end());
  // Shapes that do not fit are the engine's to refuse; the estimate is a lower bound without them.
  static_cast<void>(freeze_dims(*model.mutable_graph(), fixed));
  RunEstimate most;
  GraphWalk walk(model, constants, most);
  walk.walk(model.graph(), nullptr, sum(size, constants.size()));
  most.steps = walk.work().steps();
  return most;
}

constexpr const char* kEstimate = "the estimate of memory";

}  // namespace

Result<RunEstimate> estimate_run(ByteSpan graph, ByteSpan constants,
                                 const std::map<std::string, Shape>& inputs) {
  return no_throw(kEstimate, [&]() -> Result<RunEstimate> {
    google::protobuf::Arena arena;
    CORELANE_ASSIGN(::onnx::ModelProto* const model, reread_stored(graph, arena));
    return estimate_of(*model, graph.size(), constants, inputs);
  });
}

Result<RunEstimate> estimate_run(std::shared_ptr<HeldModel> graph, std::size_t size,
                                 ByteSpan constants, const std::map<std::string, Shape>& inputs) {
  return no_throw(kEstimate, [&]() -> Result<RunEstimate> {
    // Here, so that it is left where it is after an exception.
    const std::shared_ptr<HeldModel> held = std::move(graph);
    return estimate_of(**held, size, constants, inputs);
  });
}

}  // namespace corelane::onnx
