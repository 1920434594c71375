// Cuts an imported network into the parts of a chain.
#include "corelane/onnx/onnx_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/guard.h"
#include "base/leaked.h"
#include "onnx/check/onnx_check.h"
#include "onnx/cut/onnx_cut_plan.h"
#include "onnx/cut/onnx_cut_values.h"
#include "onnx/graph/onnx_describe.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_held_model.h"
#include "onnx/graph/onnx_model_bytes.h"
#include "onnx/infer/onnx_graph_facts.h"
#include "onnx/onnx_complete.h"

namespace corelane {
namespace onnx {
namespace {

/// What holds values is bound as a flat form, whose length each run decides.
Status check_borders(const ProgramDescription& whole) {
  for (const auto* side : {&whole.inputs, &whole.outputs})
    for (const IoEntry& entry : *side)
      if (!entry.desc.value.empty() || entry.desc.dtype == DType::kString)
        return error(Code::kUnsupported,
                     "'{}' is not a tensor of numbers; a network with one cannot be cut into parts",
                     entry.desc.name);
  for (const IoEntry& output : whole.outputs)
    if (std::ranges::any_of(whole.inputs, [&](const IoEntry& input) {
          return input.desc.name == output.desc.name;
        }))
      return error(
          Code::kUnsupported,
          "output '{0}' is input '{0}' itself, which no part makes; leave that output out, "
          "or put an Identity before it, to cut the network",
          output.desc.name);
  return {};
}

/// Makes the models of the parts. `model` is the whole network, and stays as it is.
class PartMaker {
 public:
  PartMaker(const ::onnx::ModelProto& model, const FactsTable& facts, const CutPlan& plan)
      : model_(model),
        graph_(model.graph()),
        plan_(plan),
        facts_(facts),
        unsized_(unsized_values(graph_, facts)) {
    for (const auto& out : graph_.output()) outputs_.insert(out.name());
    for (const auto* list : {&graph_.input(), &graph_.output(), &graph_.value_info()})
      for (const auto& v : *list) taken_.insert(v.name());
    for (const auto& t : graph_.initializer()) taken_.insert(t.name());
    for (const auto& s : graph_.sparse_initializer()) taken_.insert(s.values().name());
    for (const auto& node : graph_.node())
      taken_.insert(node.output().begin(), node.output().end());
    for (const int i : real_inputs(graph_)) inputs_.push_back(&graph_.input(i));
    for (int part = 0; part < plan_.parts(); ++part)
      for (const std::string_view link : plan_.links_out_of(part))
        taken_.insert(names_.emplace(link, name(link)).first->second);
  }

  /// Into `made`, which is empty.
  Status make(int part, ::onnx::ModelProto& made) const {
    frame(part, made);
    ::onnx::GraphProto& graph = *made.mutable_graph();
    std::unordered_set<std::string_view> read;
    for (const std::string_view link : plan_.links_into(part)) {
      CORELANE_TRY(add_value(*graph.add_input(), link));
      if (link_name(link) != link) add_copy(graph, link_name(link), std::string(link));
    }
    for (const int i : plan_.nodes_of(part)) {
      *graph.add_node() = graph_.node(i);
      read.insert(plan_.reads(i).begin(), plan_.reads(i).end());
    }
    for (const auto& out : graph_.output())
      if (is_of(out.name(), part)) {
        *graph.add_output() = out;
        read.insert(out.name());
      }
    for (const std::string_view link : plan_.links_out_of(part)) {
      if (link_name(link) != link) add_copy(graph, std::string(link), link_name(link));
      CORELANE_TRY(add_value(*graph.add_output(), link));
    }
    add_borders(graph, part, read);
    return {};
  }

 private:
  /// Everything but the graph's own content.
  void frame(int part, ::onnx::ModelProto& made) const {
    made.set_ir_version(model_.ir_version());
    made.set_producer_name(model_.producer_name());
    made.set_producer_version(model_.producer_version());
    *made.mutable_opset_import() = model_.opset_import();
    *made.mutable_functions() = model_.functions();
    made.mutable_graph()->set_name(fmt::format("{}/{}", graph_.name(), part));
  }

  /// An output of the network that later parts read goes to them under another name, as a copy, so
  /// that each output of a part has one reader.
  std::string name(std::string_view link) const {
    std::string name(link);
    if (!outputs_.contains(link)) return name;
    do name += "/cut";
    while (taken_.contains(name));
    return name;
  }
  const std::string& link_name(std::string_view link) const { return names_.find(link)->second; }

  static void add_copy(::onnx::GraphProto& graph, const std::string& from, const std::string& to) {
    ::onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Identity");
    node.set_name(fmt::format("copy of {}", from));
    node.add_input(from);
    node.add_output(to);
  }

  /// Declares a link.
  Status add_value(::onnx::ValueInfoProto& value, std::string_view link) const {
    const ValueFacts& known = facts_.of(std::string(link));
    if (known.elem == ::onnx::TensorProto::STRING || is_no_tensor(link))
      return error(Code::kUnsupportedModel,
                   "cut value '{}': it is not a tensor of numbers, and nothing else crosses a cut; "
                   "cut elsewhere",
                   link);
    if (known.elem == 0 || !known.shape)
      return error(Code::kUnsupportedModel,
                   "cut value '{}': its type and rank are not known; cut elsewhere, or add a "
                   "value_info for it to the ONNX graph",
                   link);
    if (unsized_.contains(link))
      return error(Code::kUnsupportedModel,
                   "cut value '{}': only a run decides its size, and parts are made ready before "
                   "one; cut elsewhere",
                   link);
    value.set_name(link_name(link));
    declare(value, known);
    return {};
  }

  /// A sequence or an optional, by its maker or its declaration.
  bool is_no_tensor(std::string_view value) const {
    static Leaked<const std::unordered_set<std::string_view>> kMakers(
        {"SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceMap",
         "SplitToSequence", "Optional"});
    for (const auto& node : graph_.node())
      if (kMakers->contains(node.op_type()) &&
          std::ranges::find(node.output(), value) != node.output().end())
        return true;
    return std::ranges::any_of(graph_.value_info(), [&](const auto& v) {
      return v.name() == value && v.type().value_case() != ::onnx::TypeProto::VALUE_NOT_SET &&
             !v.type().has_tensor_type();
    });
  }

  /// An output that no node makes, or one of constants alone, is of the first part.
  bool is_of(const std::string& output, int part) const {
    const int made = plan_.part_of(output);
    return (made == CutPlan::kEverywhere ? 0 : made) == part;
  }

  /// The inputs and constants that it reads, and what is known of its values. Inputs that nobody
  /// reads are of the first part.
  void add_borders(::onnx::GraphProto& graph, int part,
                   const std::unordered_set<std::string_view>& read) const {
    for (const ::onnx::ValueInfoProto* input : inputs_)
      if (read.contains(input->name()) || (part == 0 && !is_read(input->name())))
        *graph.add_input() = *input;
    for (const auto& t : graph_.initializer())
      if (read.contains(t.name())) *graph.add_initializer() = t;
    for (const auto& s : graph_.sparse_initializer())
      if (read.contains(s.values().name())) *graph.add_sparse_initializer() = s;
    std::unordered_set<std::string_view> made;
    for (const auto& node : graph.node()) made.insert(node.output().begin(), node.output().end());
    for (const auto& out : graph.output()) made.erase(out.name());
    for (const auto& v : graph_.value_info())
      if (made.contains(v.name())) *graph.add_value_info() = v;
  }

  bool is_read(const std::string& input) const {
    if (outputs_.contains(input)) return true;
    for (int i = 0; i < graph_.node_size(); ++i)
      for (const std::string_view name : plan_.reads(i))
        if (name == input) return true;
    return false;
  }

  const ::onnx::ModelProto& model_;
  const ::onnx::GraphProto& graph_;
  const CutPlan& plan_;
  const FactsTable& facts_;
  const std::unordered_set<std::string_view> unsized_;
  std::vector<const ::onnx::ValueInfoProto*> inputs_;
  std::unordered_set<std::string_view> outputs_;
  std::unordered_set<std::string_view> taken_;
  std::unordered_map<std::string_view, std::string> names_;  ///< Of the links, between parts.
};

/// What is said of the whole network's inputs and outputs holds for the part that has them.
void take_entries(const std::vector<IoEntry>& whole, std::vector<IoEntry>& part) {
  for (IoEntry& entry : part)
    for (const IoEntry& own : whole)
      if (own.desc.name == entry.desc.name) entry = own;
}

bool has_operator(const ::onnx::GraphProto& graph, const CustomOperatorDecl& op) {
  return std::ranges::any_of(graph.node(), [&](const ::onnx::NodeProto& node) {
    if (node.op_type() == op.type && node.domain() == op.domain) return true;
    return std::ranges::any_of(subgraphs(node),
                               [&](const auto* below) { return has_operator(*below, op); });
  });
}

/// The options for one part, from those of the whole network: it is a mistake to declare a type
/// that the part does not have, and a standard one must be named.
ImportOptions part_options(const ImportedModel& whole, const ::onnx::GraphProto& graph,
                           const ImportOptions& options) {
  ImportOptions part;
  part.io_dtype = options.io_dtype;
  part.input_layout = options.input_layout;
  part.refuse_known_wrong = options.refuse_known_wrong;
  part.cores = options.cores;
  part.batch = options.batch;
  part.deadline = options.deadline;
  for (const CustomOperatorDecl& op : whole.description.custom_operators)
    if (has_operator(graph, op))
      part.custom_operators.push_back(op.domain.empty() ? op.type : op.domain + "." + op.type);
  return part;
}

Result<std::vector<ImportedModel>> cut(const ImportedModel& whole, std::span<const CutValues> cuts,
                                       const ImportOptions& options) {
  CORELANE_TRY(check_borders(whole.description));
  const HeldModel held;
  ::onnx::ModelProto& model = *held;
  CORELANE_TRY(read_model(whole.graph, model));
  const FactsTable facts = facts_with_bodies_of(model.graph(), opset_of(model), whole.constants);
  fold_known(*model.mutable_graph(), facts);
  CORELANE_ASSIGN(const CutPlan plan, CutPlan::make(model.graph(), cuts));
  const PartMaker maker(model, facts, plan);
  std::vector<ImportedModel> parts;
  for (int i = 0; i < plan.parts(); ++i) {
    const HeldModel held_part;
    ::onnx::ModelProto& part = *held_part;
    CORELANE_TRY(maker.make(i, part));
    const ImportOptions own = part_options(whole, part.graph(), options);
    ImportedModel& made = parts.emplace_back();
    CORELANE_TRY(complete_model(part, whole.constants, own, {}, made)
                     .wrap(fmt::format("part {} of {}", i, plan.parts())));
    take_entries(whole.description.inputs, made.description.inputs);
    take_entries(whole.description.outputs, made.description.outputs);
  }
  return parts;
}

}  // namespace
}  // namespace onnx

Result<std::vector<ImportedModel>> cut_network(const ImportedModel& whole,
                                               std::span<const std::vector<std::string>> cuts,
                                               const ImportOptions& options) {
  return no_throw("cutting a network", [&] { return onnx::cut(whole, cuts, options); });
}

}  // namespace corelane
