#include "onnx/shape/onnx_batch.h"

#include <algorithm>
#include <unordered_map>

#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_describe.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/shape/onnx_batch_axis.h"

namespace corelane::onnx {
namespace {

/// Stands for every size while nodes are followed: a large prime, so that a dimension which is a
/// multiple of it holds the copies.
constexpr std::int64_t kAnySize = 10007;

class BatchPass {
 public:
  /// `range`: for all its sizes, `batch` is kAnySize; else for `batch` alone.
  BatchPass(::onnx::ModelProto& model, ByteSpan constants, std::int64_t batch,
            std::optional<BatchRange> range, std::vector<ImportFinding>& findings)
      : graph_(*model.mutable_graph()),
        opset_(opset_of(model)),
        constants_(constants),
        batch_(batch),
        open_(range.has_value()),
        label_(range ? fmt::format("batch {} to {}", range->low, range->high)
                     : fmt::format("batch {}", batch)),
        findings_(findings) {}

  /// Follows the nodes in their order, so what is known of a node's inputs is complete.
  Status run() {
    for (const int i : real_inputs(graph_)) {
      CORELANE_TRY(widen(*graph_.mutable_input(i), "input"));
      axes_[graph_.input(i).name()] = 0;
      facts_.learn(graph_.input(i));
    }
    // Inner descriptions were made for one copy.
    graph_.clear_value_info();
    for (const auto& t : graph_.initializer()) {
      facts_.learn(t.name(), t, constants_);
      fixed_.insert(t.name());
    }
    for (int i = 0; i < graph_.node_size(); ++i) CORELANE_TRY(node(i));
    for (auto& out : *graph_.mutable_output()) CORELANE_TRY(output(out));
    if (open_) open_dimensions();
    return {};
  }

 private:
  /// What stood for every size becomes an open dimension.
  void open_dimensions() {
    const auto open = [](::onnx::ValueInfoProto& value) {
      auto& shape = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
      if (shape.dim_size() > 0 && shape.dim(0).dim_value() == kAnySize)
        shape.mutable_dim(0)->set_dim_param(kBatchDimension);
    };
    for (const int i : real_inputs(graph_)) open(*graph_.mutable_input(i));
    for (auto& out : *graph_.mutable_output())
      if (out.type().has_tensor_type()) open(out);
  }

  /// Dimension 0 becomes the batch: 1 or open before, since copies of several would mix with them.
  Status widen(::onnx::ValueInfoProto& value, const char* role) const {
    auto& shape = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
    if (shape.dim_size() == 0) {
      return error(Code::kUnsupportedModel, "{}: the {} '{}' has no dimension 0", label_, role,
                   value.name());
    }
    auto& dim = *shape.mutable_dim(0);
    const bool open = !dim.has_dim_value() || dim.dim_value() < 0;
    if (!open && dim.dim_value() != 1) {
      return error(Code::kUnsupportedModel,
                   "{}: dimension 0 of the {} '{}' is {}; 1 or an open one is allowed", label_,
                   role, value.name(), dim.dim_value());
    }
    dim.set_dim_value(batch_);
    return {};
  }

  /// What a Reshape's leading 1 becomes: the size, or where that is open, what takes it from the
  /// data. Nothing where the shape has no word for it.
  std::optional<std::int64_t> leading(const ::onnx::NodeProto& node,
                                      const std::vector<std::int64_t>& dims) const {
    if (!open_) return batch_;
    const auto& data = facts_.of(node.input(0)).shape;
    const bool zero_copies = int_attribute(node, "allowzero", 0) == 0;
    if (zero_copies && data && data->rank() > 0 && (*data)[0] == batch_) return 0;
    if (std::find(dims.begin(), dims.end(), -1) == dims.end()) return -1;
    return std::nullopt;
  }

  /// A constant leading 1 of a Reshape's shape becomes the batch, where the data carry it there.
  /// Returns what stands against it.
  std::string fix_reshape(::onnx::NodeProto& node) {
    const auto carried = axes_.find(node.input(0));
    const auto& shape = facts_.of(input_of(node, 1));
    if (carried == axes_.end() || carried->second != 0 || !shape.known_ints()) return {};
    if (shape.ints->empty() || shape.ints->front() != 1) return {};
    std::vector<std::int64_t> dims = *shape.ints;
    const auto first = leading(node, dims);
    if (!first) return "reshapes to one copy, with another dimension that is left to the data";
    dims[0] = *first;
    // A new constant: other nodes may read the old one.
    const std::string name = "corelane:batch/" + node.output(0);
    const auto length = static_cast<std::int64_t>(dims.size());
    *graph_.add_initializer() = make_ints(name, {length}, dims);
    facts_.learn(name, graph_.initializer(graph_.initializer_size() - 1), constants_);
    node.set_input(1, name);
    return {};
  }

  /// The node after which what an input of `n` holds is not known; empty where it is.
  std::string lost_before(const ::onnx::NodeProto& n) const {
    for (const auto& in : n.input())
      if (const auto found = lost_.find(in); found != lost_.end()) return found->second;
    return {};
  }

  /// What the claims of a step do not see: a constant or an attribute may fix the size there.
  std::string broken_claim(const std::string& output, std::size_t axis) const {
    const auto& shape = facts_.of(output).shape;
    if (!shape) return {};
    const std::int64_t size = axis < shape->rank() ? (*shape)[axis] : 0;
    if (size == Shape::kOpen || (size > 0 && size % batch_ == 0)) return {};
    return fmt::format("gives '{}' the shape {}, which does not keep {} copies along dimension {}",
                       output, shape->to_string(), batch_, axis);
  }

  Status node(int position) {
    auto& n = *graph_.mutable_node(position);
    if (n.output_size() == 0) return {};
    if (n.op_type() == "Constant") fixed_.insert(n.output(0));
    // Before inference, which shall see the shape for all copies.
    std::string refusal;
    if (n.op_type() == "Reshape" && n.input_size() == 2) refusal = fix_reshape(n);
    infer_node(n, opset_, constants_, facts_);
    std::string lost = lost_before(n);
    bool carries = false;
    for (const auto& in : n.input()) carries = carries || axes_.contains(in);
    // What no input reaches is the same for any number of copies.
    if (!carries) return lose(n, lost);
    BatchStep step = follow_batch(n, opset_, batch_, facts_, axes_, fixed_);
    if (!refusal.empty()) step.refusal = std::move(refusal);
    for (std::size_t k = 0; k < step.axes.size() && step.refusal.empty(); ++k) {
      const int i = static_cast<int>(k);
      if (!step.axes[k] || i >= n.output_size()) continue;
      step.refusal = broken_claim(n.output(i), *step.axes[k]);
    }
    if (!step.refusal.empty()) {
      return error(Code::kUnsupportedModel, "{}: node {} ({}) {}", label_, node_text(n, position),
                   op_text(n), step.refusal);
    }
    // Its outputs count as without copies; output() then claims nothing of them.
    if (!step.known) {
      findings_.push_back({ImportFinding::Kind::kWarning, node_text(n, position), op_text(n),
                           "whether it keeps the copies of a batch apart was not checked"});
      return lose(n, fmt::format("{} ({})", node_text(n, position), op_text(n)));
    }
    for (int i = 0; i < n.output_size(); ++i) {
      const auto k = static_cast<std::size_t>(i);
      if (k < step.axes.size() && step.axes[k]) axes_[n.output(i)] = *step.axes[k];
    }
    return lose(n, lost);
  }

  /// Nothing is known of the outputs, because of node `where` (of none where that is empty).
  Status lose(const ::onnx::NodeProto& n, const std::string& where) {
    if (where.empty()) return {};
    for (const auto& out : n.output()) lost_.emplace(out, where);
    return {};
  }

  Status output(::onnx::ValueInfoProto& out) const {
    const auto axis = axes_.find(out.name());
    const auto lost = lost_.find(out.name());
    if (open_ && lost != lost_.end()) {
      return error(Code::kUnsupportedModel,
                   "{}: whether the output '{}' keeps the copies apart is not known, since node {} "
                   "cannot be followed; compile with one size (--batch), or from a model whose "
                   "dimension 0 is open",
                   label_, out.name(), lost->second);
    }
    if (axis != axes_.end() && axis->second != 0) {
      return error(Code::kUnsupportedModel,
                   "{}: the output '{}' has its copies along dimension {}, not 0", label_,
                   out.name(), axis->second);
    }
    const auto& known = facts_.of(out.name()).shape;
    if (!out.type().has_tensor_type()) return {};
    auto& shape = *out.mutable_type()->mutable_tensor_type()->mutable_shape();
    if (axis != axes_.end() && shape.dim_size() > 0) {
      CORELANE_TRY(widen(out, "output"));
      if (!known || known->rank() == 0 || (*known)[0] == Shape::kOpen || (*known)[0] == batch_)
        return {};
      return error(Code::kUnsupportedModel,
                   "{}: dimension 0 of the output '{}' is {}, so the network fixes the number of "
                   "copies",
                   label_, out.name(), (*known)[0]);
    }
    // Not followed: nothing may be claimed of its first dimension.
    if (shape.dim_size() > 0 && axis == axes_.end() && known && known->rank() > 0) {
      if ((*known)[0] >= 0) shape.mutable_dim(0)->set_dim_value((*known)[0]);
    } else if (shape.dim_size() > 0 && axis == axes_.end()) {
      shape.mutable_dim(0)->clear_value();
    }
    return {};
  }

  ::onnx::GraphProto& graph_;
  std::int64_t opset_;
  ByteSpan constants_;
  std::int64_t batch_;
  bool open_;
  std::string label_;  ///< Of the sizes, in messages.
  std::vector<ImportFinding>& findings_;
  FactsTable facts_;
  BatchAxes axes_;
  FixedValues fixed_;
  /// By value: the first node that was not understood on the way to it.
  std::unordered_map<std::string, std::string> lost_;
};

/// True where every input leaves dimension 0 open. kUnsupportedModel where one leaves another open.
Result<bool> opens_rows(const ::onnx::GraphProto& graph, BatchRange range) {
  bool all = true;
  for (const int i : real_inputs(graph)) {
    const auto shape = shape_of(graph.input(i).type());
    const auto refuse = [&](const std::string& why) {
      return error(Code::kUnsupportedModel,
                   "batch {} to {}: the input '{}' {}; fix it first (--dim "
                   "or --shape)",
                   range.low, range.high, graph.input(i).name(), why);
    };
    if (!shape) return refuse("declares no shape");
    for (std::size_t k = 1; k < shape->rank(); ++k)
      if ((*shape)[k] == Shape::kOpen)
        return refuse(fmt::format("{} leaves dimension {} open", shape->to_string(), k));
    all = all && shape->rank() > 0 && (*shape)[0] == Shape::kOpen;
  }
  return all;
}

}  // namespace

Status apply_batch(::onnx::ModelProto& model, ByteSpan constants, std::uint32_t batch,
                   std::vector<ImportFinding>& findings) {
  if (batch <= 1) return {};
  return BatchPass(model, constants, batch, std::nullopt, findings).run();
}

Status open_batch(::onnx::ModelProto& model, ByteSpan constants, BatchRange range,
                  std::vector<ImportFinding>& findings) {
  CORELANE_ASSIGN(const bool open, opens_rows(model.graph(), range));
  if (open) return {};
  return BatchPass(model, constants, kAnySize, range, findings).run();
}

}  // namespace corelane::onnx
