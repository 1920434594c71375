/// Rewrites of what the engine refuses or gets wrong: the tool that rules build nodes with.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_proto.h"
#include "onnx/infer/onnx_facts.h"
#include "onnx/infer/onnx_infer.h"
#include "onnx/lowering/onnx_exactness.h"

namespace corelane::onnx {

using Ints = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

/// 0, 1, ... n - 1.
Ints counted(std::size_t n);

/// An attribute of a node that a rule makes.
struct Attr {
  Attr(const char* n, int v) : name(n), value(std::int64_t{v}) {}
  Attr(const char* n, std::int64_t v) : name(n), value(v) {}
  Attr(const char* n, float v) : name(n), value(v) {}
  Attr(const char* n, const char* v) : name(n), value(std::string(v)) {}
  Attr(const char* n, std::string v) : name(n), value(std::move(v)) {}
  Attr(const char* n, Ints v) : name(n), value(std::move(v)) {}
  std::string name;
  std::variant<std::int64_t, float, std::string, Ints> value;
};
using Attrs = std::vector<Attr>;

class Rewriter;
class RuleTable;

/// Replaces one node: adds nodes that make all its outputs and returns true, or adds nothing and
/// returns false.
struct Rule {
  std::string_view op;
  Result<bool> (*apply)(Rewriter&, const ::onnx::NodeProto&);
  std::string_view text;  ///< For the finding: what is done.
};

/// What is the same for a graph and its subgraphs.
struct RewriteState {
  std::int64_t opset = 0;
  ByteSpan constants;
  const RuleTable& rules;
  std::vector<ImportFinding>& findings;
  std::string& unfit;  ///< LoweredGraph::unfit.
  std::string prefix;  ///< Of new names; no name of the model begins with it.
  std::uint64_t next_name = 0;
  std::uint64_t macs = 0;  ///< Of the top graph; meaningless unless macs_known.
  bool macs_known = true;
  std::uint64_t room = 0;  ///< Bytes that the rules may still add.
};

/// Goes through one graph in order; each node is kept, or replaced by what its rules add. Facts of
/// all values made so far are known. New nodes go through the rules as well.
class Rewriter {
 public:
  /// `outer`: of the graph around this one; null for the top graph. `judged`: by that one's look at
  /// the network as it was given; null for a graph that a rule has made.
  Rewriter(RewriteState& state, const Rewriter* outer, Exactness* judged)
      : state_(state),
        facts_(outer == nullptr ? nullptr : &outer->facts_),
        outer_(outer),
        exact_(judged),
        judges_(outer == nullptr || judged != nullptr) {}
  Status run(::onnx::GraphProto& graph);
  /// After run() of the top graph: what the engine computes wrongly by type. Warnings, and a
  /// verdict.
  void judge(const ::onnx::GraphProto& graph);

  std::int64_t opset() const { return state_.opset; }
  const ValueFacts& of(const std::string& name) const { return sound(facts_.of(name)); }
  const FactsTable& facts() const { return facts_; }
  /// The elements of a constant of any size; nullopt when it is not a constant of this graph.
  std::optional<std::vector<double>> constant_values(const std::string& name) const;
  /// The node that made a value, of this graph; null for inputs and constants.
  const ::onnx::NodeProto* maker(const std::string& name) const;
  /// Its operator; "" for inputs and constants.
  std::string made_by(const std::string& name) const;
  /// True for what the engine's compiler can compute: a constant, of an outer graph too, and what
  /// nodes make of constants alone.
  bool is_fixed(const std::string& name) const;
  /// Goes back from a value through operators that the engine may fuse into the one before them
  /// (each element by itself, or with fixed operands), or may take out where they change nothing
  /// (those on shapes). The node it ends at, of this graph; null for inputs and constants.
  const ::onnx::NodeProto* chain_head(const std::string& name) const;

  /// A new node with one new output, whose name is returned.
  std::string add(std::string_view op, const Names& inputs, const Attrs& attrs = {});
  /// The same with `n` outputs.
  Names add_many(std::string_view op, std::size_t n, const Names& inputs, const Attrs& attrs = {});
  /// A node that makes values of given names ("" leaves an output out).
  void define(const Names& outputs, std::string_view op, const Names& inputs,
              const Attrs& attrs = {});
  /// A node that makes output 0 of the node being replaced. True: the rule has applied.
  bool instead(const ::onnx::NodeProto& node, std::string_view op, const Names& inputs,
               const Attrs& attrs = {});
  /// Any node, through the rules.
  void emit(::onnx::NodeProto node);
  /// A name that nothing has.
  std::string fresh_name(std::string_view hint);
  /// True for the name of what a rule has added.
  bool is_new(std::string_view name) const {
    return !name.empty() && name.starts_with(state_.prefix);
  }
  /// A copy of a tensor under a new name, which is returned.
  std::string add_constant(const ::onnx::TensorProto& tensor);
  /// Constants.
  std::string ints(const Ints& values);
  std::string scalar_int(std::int64_t value);
  std::string values(std::int32_t elem, const Ints& dims, const std::vector<double>& data);
  std::string scalar(std::int32_t elem, double value);
  /// A constant of any declared size, `value(i)` its element i in row-major order. What goes beyond
  /// the room ends the rewriting before memory is taken; the name returned is then "".
  std::string sequence(std::int32_t elem, const Ints& dims,
                       const std::function<double(std::int64_t)>& value);
  /// 0, 1, 2, ...
  std::string counting(std::int32_t elem, const Ints& dims);
  /// One value everywhere; takes no room for large sizes.
  std::string filled(std::int32_t elem, const Ints& dims, double value);

  // Operators whose form depends on the operator set.
  std::string squeeze(const std::string& x, const Ints& axes);
  std::string unsqueeze(const std::string& x, const Ints& axes);
  std::string reduce(std::string_view op, const std::string& x, const Ints& axes, bool keep);
  std::string slice(const std::string& x, std::int64_t axis, std::int64_t begin, std::int64_t end);
  std::string reshape(const std::string& x, const Ints& dims);
  std::string cast(const std::string& x, std::int32_t elem);
  std::string transpose(const std::string& x, const Ints& perm);
  std::string concat(const Names& parts, std::int64_t axis);

  /// Writes what is known of the shapes of the graph's outputs into their declarations.
  void declare_outputs(::onnx::GraphProto& graph) const;

  /// A finding about the node being rewritten.
  void warn(const ::onnx::NodeProto& node, std::string text);
  /// For a pattern that the engine computes wrongly or cannot compute, and that cannot be written
  /// otherwise: a warning, and the verdict on the network where there is none yet. False, for the
  /// rule to return: the node is kept.
  bool unfit(const ::onnx::NodeProto& node, std::string_view text);

 private:
  /// At a node of the network as it was given, before anything is written otherwise.
  void look_at(const ::onnx::NodeProto& node);
  void visit(::onnx::NodeProto node, int depth);
  /// False, and an error of the whole rewriting, when the rules add more than there is room for.
  bool take_room(std::uint64_t bytes);
  /// Notes what is known of a node's outputs from how they are made.
  void learn_maker(const ::onnx::NodeProto& node);
  std::string constant(::onnx::TensorProto tensor);
  /// Axes are an attribute before operator set `since`, an input from it on.
  std::string along(std::string_view op, const std::string& x, const Ints& axes, std::int64_t since,
                    Attrs attrs);
  std::string position_text(const ::onnx::NodeProto& node) const {
    return node_text(node, origin_);
  }

  /// How a value came to be. The nodes are in the graph, where they stay.
  struct Maker {
    const ::onnx::NodeProto* node = nullptr;
    const ::onnx::NodeProto* head = nullptr;  ///< See chain_head().
    bool fixed = false;
  };

  RewriteState& state_;
  FactsTable facts_;
  const Rewriter* outer_;
  Exactness exact_;
  bool judges_;
  ::onnx::GraphProto* graph_ = nullptr;
  /// Initialisers and values of Constant nodes, in the graph.
  std::unordered_map<std::string, const ::onnx::TensorProto*> tensors_;
  std::unordered_map<std::string, Maker> makers_;
  int origin_ = 0;
  std::string origin_name_;
  int depth_ = 0;
  Status failed_;
};

/// What the walk over a model finds on its way.
struct RewriteReport {
  std::vector<ImportFinding> findings;  ///< One for each node that was written otherwise.
  std::uint64_t macs = 0;               ///< 0 when a shape is not known.
  bool changed = false;                 ///< Set by lower_model().
  std::string unfit;                    ///< LoweredGraph::unfit.
};

/// A finding as a reason why a network is unfit: what it names, and its text.
std::string text_of(const ImportFinding& finding);

/// Applies the rules to the model's graph, and fills open dimensions of its outputs where they
/// follow from the inputs. The model names a standard operator set.
Result<RewriteReport> rewrite(::onnx::ModelProto& model, ByteSpan constants,
                              const RuleTable& rules);

}  // namespace corelane::onnx
