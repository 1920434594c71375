#include "onnx/lowering/onnx_rewriter.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/leaked.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_checked.h"
#include "onnx/graph/onnx_constants.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/graph/onnx_unary.h"
#include "onnx/graph/onnx_walk.h"
#include "onnx/infer/onnx_macs.h"
#include "onnx/lowering/onnx_contrib.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

/// How often what a rule adds may itself be rewritten.
constexpr int kMostDepth = 8;
/// Bytes that rules may add to any model; they may also double the graph.
constexpr std::uint64_t kRoom = std::uint64_t{128} << 20;
/// What a node or a constant takes besides its own bytes.
constexpr std::uint64_t kPerNode = 512;
/// Elements up to which a constant of one value is stored.
constexpr std::int64_t kMostFilled = 64;

/// Operators that the engine may fuse into the node before them, or take out as doing nothing.
bool is_chain_link(std::string_view op) {
  static Leaked<const std::unordered_set<std::string_view>> kOthers({// clang-format off
      "Add", "BatchNormalization", "Cast", "Concat", "DequantizeLinear", "Div", "Expand", "Flatten",
      "Max", "Mean", "Min", "Mod", "Mul", "PRelu", "Pad", "Pow", "QuantizeLinear", "Reshape",
      "Slice", "Squeeze", "Sub", "Sum", "Tile", "Transpose", "Unsqueeze"});
  // clang-format on
  return is_unary(op) || kOthers->contains(op);
}

/// The first of "corelane/", "corelane1/", ... that begins no name of the graph, nor of those in
/// it.
std::string free_prefix(::onnx::GraphProto& graph) {
  std::unordered_set<std::string_view> taken;
  const auto add = [&](std::string_view name) {
    const auto end = name.find('/');
    if (name.starts_with("corelane") && end != name.npos) taken.insert(name.substr(0, end + 1));
  };
  for_each_graph(graph, [&](const ::onnx::GraphProto& g) {
    for (const auto* list : {&g.input(), &g.output(), &g.value_info()})
      for (const auto& v : *list) add(v.name());
    for (const auto& t : g.initializer()) add(t.name());
    for (const auto& t : g.sparse_initializer()) add(t.values().name());
    for (const auto& node : g.node())
      for (const auto& out : node.output()) add(out);
  });
  std::string prefix = "corelane/";
  for (int k = 1; taken.contains(prefix); ++k) prefix = fmt::format("corelane{}/", k);
  return prefix;
}

}  // namespace

Ints counted(std::size_t n) {
  Ints values(n);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

std::optional<std::vector<double>> Rewriter::constant_values(const std::string& name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return std::nullopt;
  return read_floats(*it->second, state_.constants);
}

const ::onnx::NodeProto* Rewriter::maker(const std::string& name) const {
  const auto it = makers_.find(name);
  return it == makers_.end() ? nullptr : it->second.node;
}

std::string Rewriter::made_by(const std::string& name) const {
  const auto* node = maker(name);
  return node == nullptr ? std::string() : node->op_type();
}

bool Rewriter::is_fixed(const std::string& name) const {
  if (tensors_.contains(name)) return true;
  if (const auto it = makers_.find(name); it != makers_.end()) return it->second.fixed;
  return outer_ != nullptr && outer_->is_fixed(name);
}

const ::onnx::NodeProto* Rewriter::chain_head(const std::string& name) const {
  const auto it = makers_.find(name);
  return it == makers_.end() ? nullptr : it->second.head;
}

void Rewriter::learn_maker(const ::onnx::NodeProto& node) {
  Maker maker{&node, &node, node.op_type() == "Constant"};
  std::size_t fixed = 0;
  std::size_t given = 0;
  const std::string* varying = nullptr;
  for (const auto& in : node.input()) {
    if (in.empty()) continue;
    ++given;
    if (is_fixed(in))
      ++fixed;
    else
      varying = &in;
  }
  const bool shape_alone = node.op_type() == "Shape" && of(input_of(node, 0)).is_static();
  // A subgraph may read values that are no inputs of its node.
  const bool inputs_alone = std::ranges::none_of(
      node.attribute(), [](const auto& a) { return a.has_g() || a.graphs_size() > 0; });
  maker.fixed = maker.fixed || shape_alone || (given > 0 && fixed == given && inputs_alone);
  if (varying != nullptr && fixed + 1 == given && is_chain_link(node.op_type()))
    if (const auto* head = chain_head(*varying)) maker.head = head;
  for (const auto& out : node.output())
    if (!out.empty()) makers_[out] = maker;
}

Status Rewriter::run(::onnx::GraphProto& graph) {
  graph_ = &graph;
  const auto nodes = static_cast<std::size_t>(graph.node_size());
  const auto tensors = static_cast<std::size_t>(graph.initializer_size());
  facts_.reserve(nodes + tensors + static_cast<std::size_t>(graph.input_size()));
  tensors_.reserve(tensors);
  makers_.reserve(nodes);
  for (const auto& t : graph.initializer()) {
    facts_.learn(t.name(), t, state_.constants);
    tensors_.emplace(t.name(), &t);
  }
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const auto& v : *list) facts_.learn(v);
  if (judges_) exact_.begin(graph, state_.constants);
  // The nodes move out and come back one by one, in order: a rule sees what was made before its
  // node, and nothing after it.
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> old;
  old.Swap(graph.mutable_node());
  graph.mutable_node()->Reserve(old.size());
  for (origin_ = 0; origin_ < old.size() && failed_.ok(); ++origin_) {
    origin_name_ = old[origin_].name();
    if (judges_) look_at(old[origin_]);
    visit(std::move(old[origin_]), 0);
  }
  return failed_;
}

void Rewriter::visit(::onnx::NodeProto node, int depth) {
  if (!failed_.ok()) return;
  // A rule that applies to its own result is a defect of the rule.
  if (depth > kMostDepth) {
    failed_ = error(Code::kInternal, "node {}: rewritten without end", position_text(node));
    return;
  }
  // Nodes of the model itself are not counted, only what the rules add.
  if (depth > 0 && !take_room(kPerNode + node.ByteSizeLong())) return;
  // Inner graphs first: a rule may put their nodes into this one.
  for (auto* below : mutable_subgraphs(node))
    if (failed_ = Rewriter(state_, this, judges_ && depth == 0 ? &exact_ : nullptr).run(*below);
        !failed_.ok())
      return;
  for (const Rule* rule : state_.rules.rules_for(node)) {
    // emit() hands on the depth of the rule that calls it.
    const int outer_depth = depth_;
    depth_ = depth + 1;
    auto done = rule->apply(*this, node);
    depth_ = outer_depth;
    if (!done) {
      failed_ = done.error();
      return;
    }
    if (!failed_.ok()) return;
    // A rule that does not apply has added nothing, so the next one starts from the same graph.
    if (!*done) continue;
    // One finding per node of the model, whatever its rewriting takes.
    if (depth == 0) {
      state_.findings.push_back({ImportFinding::Kind::kRewritten, position_text(node),
                                 op_text(node), std::string(rule->text)});
    }
    return;
  }
  // Kept: no rule applies to it, so its facts are those of the operator itself.
  infer_node(node, state_.opset, state_.constants, facts_);
  // How often a subgraph runs is not known: its work does not count.
  if (outer_ == nullptr) {
    const auto macs = macs_of(node, facts_);
    state_.macs_known = state_.macs_known && macs.has_value();
    state_.macs += macs.value_or(0);
  }
  auto& kept = *graph_->add_node();
  kept = std::move(node);
  // After the move: the tables refer to the node's final place.
  learn_maker(kept);
  if (kept.op_type() == "Constant" && kept.output_size() == 1) {
    const auto* value = find_attribute(kept, "value");
    if (value != nullptr && value->has_t()) tensors_.emplace(kept.output(0), &value->t());
  }
}

bool Rewriter::take_room(std::uint64_t bytes) {
  if (!failed_.ok()) return false;
  if (bytes <= state_.room) {
    state_.room -= bytes;
    return true;
  }
  failed_ = error(Code::kUnsupportedModel,
                  "node {} '{}': what it, and the nodes before it, are written out as takes more "
                  "than {} bytes beyond the model; give the model smaller sizes",
                  origin_, origin_name_, kRoom);
  return false;
}

/// The prefix keeps them apart from the model's names, the number from each other.
std::string Rewriter::fresh_name(std::string_view hint) {
  return fmt::format("{}{}_{}", state_.prefix, hint, state_.next_name++);
}

void Rewriter::emit(::onnx::NodeProto node) { visit(std::move(node), depth_); }

void Rewriter::define(const Names& outputs, std::string_view op, const Names& inputs,
                      const Attrs& attrs) {
  ::onnx::NodeProto node;
  node.set_op_type(std::string(op));
  // For messages and profiles: what a node was made for.
  const std::string base = origin_name_.empty() ? fmt::format("node{}", origin_) : origin_name_;
  node.set_name(fmt::format("{}/{}_{}", base, op, state_.next_name++));
  for (const auto& in : inputs) node.add_input(in);
  for (const auto& out : outputs) node.add_output(out);
  for (const auto& attr : attrs)
    std::visit([&](const auto& value) { set_attribute(node, attr.name, value); }, attr.value);
  emit(std::move(node));
}

bool Rewriter::instead(const ::onnx::NodeProto& node, std::string_view op, const Names& inputs,
                       const Attrs& attrs) {
  define({node.output(0)}, op, inputs, attrs);
  return true;
}

std::string Rewriter::add(std::string_view op, const Names& inputs, const Attrs& attrs) {
  return add_many(op, 1, inputs, attrs).front();
}

Names Rewriter::add_many(std::string_view op, std::size_t n, const Names& inputs,
                         const Attrs& attrs) {
  Names outputs;
  for (std::size_t i = 0; i < n; ++i) outputs.push_back(fresh_name(op));
  define(outputs, op, inputs, attrs);
  return outputs;
}

std::string Rewriter::constant(::onnx::TensorProto tensor) {
  std::string name = tensor.name();
  // After the error the name is used no more.
  if (!take_room(kPerNode + tensor.ByteSizeLong())) return name;
  // Known before the tensor is moved away.
  facts_.learn(name, tensor, state_.constants);
  auto& kept = *graph_->add_initializer();
  kept = std::move(tensor);
  tensors_.emplace(name, &kept);
  return name;
}

std::string Rewriter::add_constant(const ::onnx::TensorProto& tensor) {
  ::onnx::TensorProto copy = tensor;
  copy.set_name(fresh_name("constant"));
  return constant(std::move(copy));
}

std::string Rewriter::ints(const Ints& list) {
  return constant(make_ints(fresh_name("ints"), {static_cast<std::int64_t>(list.size())}, list));
}

std::string Rewriter::scalar_int(std::int64_t value) {
  return constant(make_ints(fresh_name("int"), {}, {value}));
}

std::string Rewriter::values(std::int32_t elem, const Ints& dims, const std::vector<double>& data) {
  return constant(make_values(fresh_name("values"), elem, dims, data));
}

std::string Rewriter::scalar(std::int32_t elem, double value) {
  return constant(make_values(fresh_name("scalar"), elem, {}, {value}));
}

std::string Rewriter::sequence(std::int32_t elem, const Ints& dims,
                               const std::function<double(std::int64_t)>& value) {
  // Checked before the list of doubles is made, which is the larger of the two copies.
  const Checked bytes = checked_product(dims) * std::int64_t{sizeof(double)};
  if (!bytes.is_within(0, static_cast<std::int64_t>(state_.room))) {
    take_room(state_.room + 1);
    return "";
  }
  std::vector<double> data(static_cast<std::size_t>(bytes.or_open()) / sizeof(double));
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = value(static_cast<std::int64_t>(i));
  return values(elem, dims, data);
}

std::string Rewriter::counting(std::int32_t elem, const Ints& dims) {
  return sequence(elem, dims, [](std::int64_t i) { return static_cast<double>(i); });
}

std::string Rewriter::filled(std::int32_t elem, const Ints& dims, double value) {
  // A large one is left to the engine: it takes no room in the file.
  if (checked_product(dims).is_within(0, kMostFilled))
    return sequence(elem, dims, [&](std::int64_t) { return value; });
  return add("Expand", {scalar(elem, value), ints(dims)});
}

std::string Rewriter::along(std::string_view op, const std::string& x, const Ints& axes,
                            std::int64_t since, Attrs attrs) {
  if (opset() >= since) return add(op, {x, ints(axes)}, attrs);
  attrs.emplace(attrs.begin(), "axes", axes);
  return add(op, {x}, attrs);
}

std::string Rewriter::squeeze(const std::string& x, const Ints& axes) {
  return along("Squeeze", x, axes, 13, {});
}

std::string Rewriter::unsqueeze(const std::string& x, const Ints& axes) {
  return along("Unsqueeze", x, axes, 13, {});
}

std::string Rewriter::reduce(std::string_view op, const std::string& x, const Ints& axes,
                             bool keep) {
  return along(op, x, axes, op == "ReduceSum" ? 13 : 18, {{"keepdims", keep ? 1 : 0}});
}

std::string Rewriter::slice(const std::string& x, std::int64_t axis, std::int64_t begin,
                            std::int64_t end) {
  // Attributes before operator set 10, inputs since.
  if (opset() < 10)
    return add("Slice", {x}, {{"starts", Ints{begin}}, {"ends", Ints{end}}, {"axes", Ints{axis}}});
  return add("Slice", {x, ints({begin}), ints({end}), ints({axis})});
}

std::string Rewriter::reshape(const std::string& x, const Ints& dims) {
  return add("Reshape", {x, ints(dims)});
}

std::string Rewriter::cast(const std::string& x, std::int32_t elem) {
  return add("Cast", {x}, {{"to", elem}});
}

std::string Rewriter::transpose(const std::string& x, const Ints& perm) {
  return add("Transpose", {x}, {{"perm", perm}});
}

std::string Rewriter::concat(const Names& parts, std::int64_t axis) {
  return parts.size() == 1 ? parts.front() : add("Concat", parts, {{"axis", axis}});
}

void Rewriter::warn(const ::onnx::NodeProto& node, std::string text) {
  state_.findings.push_back(
      {ImportFinding::Kind::kWarning, position_text(node), op_text(node), std::move(text)});
}

bool Rewriter::unfit(const ::onnx::NodeProto& node, std::string_view text) {
  // The first reason is enough for a verdict; the findings have them all.
  if (state_.unfit.empty())
    state_.unfit = fmt::format("node {} ({}): {}", position_text(node), op_text(node), text);
  warn(node, std::string(text));
  return false;
}

void Rewriter::look_at(const ::onnx::NodeProto& node) {
  exact_.see(node, origin_, facts_);
  if (const char* flaw = contrib_flaw(node, facts_)) unfit(node, flaw);
}

std::string text_of(const ImportFinding& finding) {
  return fmt::format("{} {} ({}): {}", finding.op == "output" ? "output" : "node", finding.node,
                     finding.op, finding.text);
}

void Rewriter::judge(const ::onnx::GraphProto& graph) {
  for (ImportFinding& finding : exact_.finish(graph, facts_)) {
    if (state_.unfit.empty()) state_.unfit = text_of(finding);
    state_.findings.push_back(std::move(finding));
  }
}

void Rewriter::declare_outputs(::onnx::GraphProto& graph) const {
  for (auto& out : *graph.mutable_output()) {
    const auto& shape = facts_.of(out.name()).shape;
    if (!shape || !out.type().has_tensor_type()) continue;
    auto& declared = *out.mutable_type()->mutable_tensor_type()->mutable_shape();
    if (declared.dim_size() != static_cast<int>(shape->rank())) {
      declared.clear_dim();
      for (std::size_t i = 0; i < shape->rank(); ++i) declared.add_dim();
    }
    for (std::size_t i = 0; i < shape->rank(); ++i) {
      auto& dim = *declared.mutable_dim(static_cast<int>(i));
      // An open one keeps its symbol.
      if ((*shape)[i] >= 0) dim.set_dim_value((*shape)[i]);
    }
  }
}

Result<RewriteReport> rewrite(::onnx::ModelProto& model, ByteSpan constants,
                              const RuleTable& rules) {
  RewriteReport report;
  RewriteState state{.opset = opset_of(model),
                     .constants = constants,
                     .rules = rules,
                     .findings = report.findings,
                     .unfit = report.unfit,
                     .prefix = free_prefix(*model.mutable_graph()),
                     .room = kRoom + model.ByteSizeLong()};
  Rewriter rewriter(state, nullptr, nullptr);
  CORELANE_TRY(rewriter.run(*model.mutable_graph()));
  rewriter.judge(model.graph());
  rewriter.declare_outputs(*model.mutable_graph());
  // A sum that leaves nodes out would be taken for the whole.
  if (state.macs_known) report.macs = state.macs;
  return report;
}

}  // namespace corelane::onnx
