// Rules for recurrent operators: batch-first layouts, peepholes, scans and loops.
#include <algorithm>
#include <set>

#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_inline.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

/// The engine divides by the number of samples: while it compiles where there are none, and in a
/// run where the weights come with it.
Result<bool> without_samples(Rewriter& r, const ::onnx::NodeProto& node) {
  const ValueFacts& x = r.of(node.input(0));
  if (x.shape && std::ranges::count(x.shape->dims(), 0) != 0)
    return r.unfit(node, "no steps or no samples end the process in the engine");
  const bool fixed = r.is_fixed(input_of(node, 1)) && r.is_fixed(input_of(node, 2));
  if (x.is_static() || fixed) return false;
  return r.unfit(node,
                 "runs without samples end the process in the engine where the weights come with "
                 "the run; fix the input shape");
}

Result<bool> batch_first(Rewriter& r, const ::onnx::NodeProto& node) {
  if (node.op_type() == "LSTM" && !input_of(node, 7).empty())
    return r.unfit(node, "peepholes are computed wrongly by the engine");
  if (node.op_type() == "LSTM" && int_attribute(node, "input_forget", 0) != 0)
    return r.unfit(node, "input_forget is not read by the engine");
  if (int_attribute(node, "layout", 0) == 0) return false;
  ::onnx::NodeProto plain = node;
  set_attribute(plain, "layout", std::int64_t{0});
  plain.set_input(0, r.transpose(node.input(0), {1, 0, 2}));
  // The initial states.
  for (const int i : {5, 6})
    if (!input_of(node, i).empty()) plain.set_input(i, r.transpose(node.input(i), {1, 0, 2}));
  for (int i = 0; i < node.output_size(); ++i)
    if (has_output(node, i)) plain.set_output(i, r.fresh_name("steps_first"));
  r.emit(plain);
  for (int i = 0; i < node.output_size(); ++i) {
    if (!has_output(node, i)) continue;
    r.define({node.output(i)}, "Transpose", {plain.output(i)},
             // Y is [steps, directions, batch, hidden] in the plain form, the states [directions,
             // batch, hidden].
             {{"perm", i == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2}}});
  }
  return true;
}

/// 0 for a count that the node cannot have.
int scan_inputs(const ::onnx::NodeProto& node) {
  const std::int64_t n = int_attribute(node, "num_scan_inputs", 0);
  return n < 0 || n > node.input_size() ? 0 : static_cast<int>(n);
}

/// A short Scan becomes its steps: the engine gets the shapes of its body wrong in many cases.
/// The first scanned input says how many; ONNX wants all of them alike. What is written out is
/// bounded: 64 steps, 4096 nodes. Direction 1 reads from the back and gathers towards the front.
Result<bool> unroll_scan(Rewriter& r, const ::onnx::NodeProto& node) {
  constexpr std::int64_t kMostSteps = 64;
  const auto* body = find_attribute(node, "body");
  if (r.opset() < 9 || body == nullptr || !body->has_g()) return false;
  const ::onnx::GraphProto& graph = body->g();
  const int scans = scan_inputs(node);
  const int states = node.input_size() - scans;
  const int outputs = graph.output_size() - states;
  const auto list = [&](const char* name, int n) {
    Ints values = ints_attribute(node, name);
    values.resize(static_cast<std::size_t>(std::max(n, 0)), 0);
    return values;
  };
  if (scans < 1 || outputs < 0 || graph.input_size() != node.input_size() ||
      node.output_size() > graph.output_size()) {
    return false;
  }
  const Ints in_axes = list("scan_input_axes", scans);
  const Ints in_reversed = list("scan_input_directions", scans);
  const Ints out_axes = list("scan_output_axes", outputs);
  const Ints out_reversed = list("scan_output_directions", outputs);
  std::vector<std::size_t> axes;
  for (int i = 0; i < scans; ++i) {
    const auto& x = r.of(node.input(states + i));
    const auto axis =
        x.shape ? normal_axis(in_axes[static_cast<std::size_t>(i)], x.shape->rank()) : std::nullopt;
    if (!axis) return false;
    axes.push_back(*axis);
  }
  const std::int64_t steps = (*r.of(node.input(states)).shape)[axes[0]];
  if (steps < 1 || steps > kMostSteps || graph.node_size() * steps > 4096) return false;

  const Renames constants = inline_constants(r, graph);
  Names carried(node.input().begin(), node.input().begin() + states);
  std::vector<Names> made(static_cast<std::size_t>(outputs));
  for (std::int64_t t = 0; t < steps; ++t) {
    Names inputs = carried;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<std::int64_t>(axes[i]);
      const std::int64_t at = in_reversed[i] != 0 ? steps - 1 - t : t;
      const std::string& x = node.input(states + static_cast<int>(i));
      inputs.push_back(r.squeeze(r.slice(x, axis, at, at + 1), {axis}));
    }
    const Names results = inline_graph(r, graph, inputs, constants);
    carried.assign(results.begin(), results.begin() + states);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const std::string one =
          r.unsqueeze(results[static_cast<std::size_t>(states) + i], {out_axes[i]});
      made[i].insert(out_reversed[i] != 0 ? made[i].begin() : made[i].end(), one);
    }
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (!has_output(node, i)) continue;
    const auto k = static_cast<std::size_t>(i);
    const auto s = static_cast<std::size_t>(states);
    r.define({node.output(i)}, "Identity",
             {k < s ? carried[k] : r.concat(made[k - s], out_axes[k - s])});
  }
  return true;
}

/// The engine takes values of the graph around a body for states and gets shapes in it wrong.
Result<bool> long_scan(Rewriter& r, const ::onnx::NodeProto& node) {
  return r.unfit(node, "a scan of many or unknown steps is computed wrongly by the engine");
}

/// What a Loop without a round collects, and its values of open size, are those of the run before
/// in the engine.
Result<bool> loop_without_rounds(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto is_positive = [&](int index) {
    const std::string& name = input_of(node, index);
    return name.empty() || r.of(name).one_int().value_or(0) > 0;
  };
  if (is_positive(0) && is_positive(1)) return false;
  const int states = std::max(node.input_size() - 2, 0);
  bool changes_size = false;
  for (int i = 0; i < node.output_size(); ++i)
    changes_size = changes_size ||
                   (has_output(node, i) && (i >= states || !r.of(node.input(2 + i)).is_static()));
  if (!changes_size) return false;
  return r.unfit(node, "a loop that makes no round gives what the run before it gave");
}

constexpr std::string_view kSamplesText = "without samples: for the other engine";
constexpr std::string_view kLayoutText = "batch-first layout: transposes around the plain form";

constexpr Rule kRecurrentRules[] = {
    {"LSTM", without_samples, kSamplesText},
    {"GRU", without_samples, kSamplesText},
    {"RNN", without_samples, kSamplesText},
    {"LSTM", batch_first, kLayoutText},
    {"GRU", batch_first, kLayoutText},
    {"RNN", batch_first, kLayoutText},
    {"Scan", unroll_scan, "few steps: written out, 0.7 to 0.95 of the other engine's time"},
    {"Scan", long_scan, "others: for the other engine"},
    {"Loop", loop_without_rounds, "may make no round: for the other engine"},
};

}  // namespace

std::span<const Rule> recurrent_rules() { return kRecurrentRules; }

}  // namespace corelane::onnx
