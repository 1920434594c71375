// Rules for recurrent operators: batch-first layouts, peepholes, and Scan bodies that read values
// of the graph around them.
#include <algorithm>
#include <set>

#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_inline.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

Result<bool> batch_first(Rewriter& r, const ::onnx::NodeProto& node) {
  if (node.op_type() == "LSTM" && !input_of(node, 7).empty())
    return r.unfit(node, "peepholes are computed wrongly by the engine");
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

/// Names that the graph, or one below it, reads but does not make.
void collect_captures(const ::onnx::GraphProto& graph, std::set<std::string> known,
                      std::vector<std::string>& captures) {
  for (const auto& in : graph.input()) known.insert(in.name());
  for (const auto& t : graph.initializer()) known.insert(t.name());
  const auto read = [&](const std::string& name) {
    if (name.empty() || known.contains(name)) return;
    if (std::find(captures.begin(), captures.end(), name) == captures.end())
      captures.push_back(name);
  };
  for (const auto& node : graph.node()) {
    for (const auto& in : node.input()) read(in);
    for (const auto* below : subgraphs(node)) collect_captures(*below, known, captures);
    for (const auto& out : node.output()) known.insert(out);
  }
  for (const auto& out : graph.output()) read(out.name());
}

void declare(Rewriter& r, ::onnx::ValueInfoProto& value, const std::string& name,
             const std::string& like) {
  value.set_name(name);
  const auto& facts = r.of(like);
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(facts.elem);
  if (!facts.shape) return;
  auto& shape = *type.mutable_shape();
  for (const auto d : facts.shape->dims()) {
    auto& dim = *shape.add_dim();
    if (d >= 0) dim.set_dim_value(d);
  }
}

/// Moves the last `n` entries of a list to `at`.
template <class List>
void move_back_to(List& list, int at, std::size_t n) {
  std::rotate(list.begin() + at, list.end() - static_cast<std::ptrdiff_t>(n), list.end());
}

/// 0 for a count that the node cannot have.
int scan_inputs(const ::onnx::NodeProto& node) {
  const std::int64_t n = int_attribute(node, "num_scan_inputs", 0);
  return n < 0 || n > node.input_size() ? 0 : static_cast<int>(n);
}

/// The engine takes values of the graph around a Scan for states. They become states.
Result<bool> scan_captures(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto* body = find_attribute(node, "body");
  if (r.opset() < 9 || body == nullptr || !body->has_g()) return false;
  std::vector<std::string> captures;
  collect_captures(body->g(), {}, captures);
  // Inputs are the states, then what is scanned; outputs the states, then what is gathered.
  const int states = node.input_size() - scan_inputs(node);
  const bool known = std::all_of(captures.begin(), captures.end(),
                                 [&](const std::string& name) { return r.of(name).elem != 0; });
  const bool fits = states <= body->g().output_size() &&
                    node.output_size() <= body->g().output_size() &&
                    body->g().input_size() == node.input_size();
  if (captures.empty() || !known || !fits) return false;

  ::onnx::NodeProto fresh = node;
  // Outputs that the node leaves out at its end: states are put in before them.
  while (fresh.output_size() < body->g().output_size()) fresh.add_output("");
  remove_attribute(fresh, "body");
  auto& attribute = *fresh.add_attribute();
  attribute.set_name("body");
  attribute.set_type(::onnx::AttributeProto::GRAPH);
  ::onnx::GraphProto& graph = *attribute.mutable_g();
  graph = body->g();
  Renames renames;
  for (const auto& name : captures) renames[name] = r.fresh_name("state");
  for (auto& inner : *graph.mutable_node()) rename_reads(inner, renames);
  for (const auto& name : captures) {
    const std::string& state = renames[name];
    fresh.add_input(name);
    fresh.add_output(r.fresh_name("unused"));
    declare(r, *graph.add_input(), state, name);
    declare(r, *graph.add_output(), state + "_next", name);
    auto& identity = *graph.add_node();
    // A state that stays what it was.
    identity.set_op_type("Identity");
    identity.add_input(state);
    identity.add_output(state + "_next");
  }
  const std::size_t n = captures.size();
  move_back_to(*fresh.mutable_input(), states, n);
  move_back_to(*fresh.mutable_output(), states, n);
  move_back_to(*graph.mutable_input(), states, n);
  move_back_to(*graph.mutable_output(), states, n);
  r.emit(std::move(fresh));
  return true;
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

constexpr std::string_view kLayoutText = "batch-first layout: transposes around the plain form";

constexpr Rule kRules[] = {
    {"LSTM", batch_first, kLayoutText},
    {"GRU", batch_first, kLayoutText},
    {"RNN", batch_first, kLayoutText},
    {"Scan", unroll_scan, "few steps: written out"},
    {"Scan", scan_captures, "values of the graph around the body become states"},
};

}  // namespace

std::span<const Rule> recurrent_rules() { return kRules; }

}  // namespace corelane::onnx
